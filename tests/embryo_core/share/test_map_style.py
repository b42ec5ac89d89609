"""How a map looks: colours, the scale of weights, and labels that have room."""

import json
from dataclasses import replace

import numpy as np
import pytest

from embryo_core.share import HeadHistory, map_style
from embryo_core.types import StepUnit


def history(size: int, tokens: tuple[str, ...] = ()) -> HeadHistory:
    """Return a head that looks at all of its positions alike."""
    return HeadHistory(
        "tiny",
        2,
        1,
        "Attention weights",
        np.array([0]),
        np.full((1, size, size), 1 / size),
        tokens,
        step_unit=StepUnit.UPDATES,
    )


def texts(labels: list[map_style.Label], side: float) -> list[str]:
    """Return what is written beside the rows of a map of this side, from the top."""
    rows = [label for label in labels if label.align == "right" and label.share[0] == 0 and side >= label.least]
    return [label.text for label in sorted(rows, key=lambda label: label.share[1])]


# === Colours ===


def test_colours_run_evenly_through_the_stops():
    """Of 10 colours each is a stop; of 256 the first, the last, and those between two neighbouring stops."""
    np.testing.assert_array_equal(map_style.colours(10), map_style.VIRIDIS)
    many = map_style.colours()
    assert many.shape == (256, 3) and many.dtype == np.uint8
    np.testing.assert_array_equal(many[[0, 85, 170, 255]], map_style.VIRIDIS[[0, 3, 6, 9]])


def test_weights_lie_on_the_colours_by_their_share_or_its_logarithm():
    """Half of the end is in the middle on the linear scale, near the end on the other; a larger weight at the end."""
    weights = np.array([0, 1e-6, 0.0005, 0.05, 0.25, 0.5, 0.9])
    np.testing.assert_allclose(map_style.colour_positions(weights, 0.5, "linear"), np.minimum(weights * 2, 1))
    decades = np.array([-3, -3, -3, -1, np.log10(0.5), 0, 0])
    np.testing.assert_allclose(map_style.colour_positions(weights, 0.5, "log"), 1 + decades / 3, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "wanted"),
    [
        ("linear", ["0", "0.25", "0.5", "weight, linear scale"]),
        ("log", ["≤ 0.0005", "0.016", "0.5", "weight, log scale"]),
    ],
)
def test_the_legend_tells_the_weights_of_its_ends_and_its_middle(scale, wanted):
    """On either scale, those whose position is 0, a half and 1."""
    assert [label.text for label in map_style.legend(0.5, scale).labels] == wanted


def test_a_few_large_weights_do_not_darken_the_others():
    """Colours end at the 99th percentile of a head's weights, and the share above it is given."""
    weights = np.full((1, 20, 20), 0.01)
    weights[0, 0, :3] = 0.9
    shown = replace(history(20), weights=weights)
    assert map_style.end_of(shown) == 0.01
    assert map_style.clipping(shown).endswith("this head over 1 step; 0.8 % of this head's are larger.")
    twice = replace(shown, steps=np.array([0, 8]), weights=np.concatenate([weights, weights]))
    assert "this head over all 2 steps; " in map_style.clipping(twice)
    texts = [label.text for label in map_style.legend_of(shown, "linear").labels]
    assert "≥ 0.01" in texts and "0.8 % are larger" in texts
    assert "end at 0.5" in map_style.clipping(replace(shown, shared_end=0.5))


# === Labels ===


@pytest.mark.parametrize(("size", "every"), [(5, 1), (12, 1), (13, 4), (32, 4), (64, 8)])
def test_positions_are_numbered_at_round_distances(size, every):
    """Short maps at each position, longer ones at every fourth or eighth."""
    assert texts(map_style.axis_labels(history(size)), 440) == [str(i) for i in range(0, size, every)]


@pytest.mark.parametrize("side", [160, 300, 440])
@pytest.mark.parametrize("size", [4, 14, 50, 128, 512])
def test_labels_have_room(size, side):
    """On no map are two labels nearer than one is high, and none is missing that would have room at that distance."""
    labels = map_style.axis_labels(history(size, tuple(map(str, range(size)))))
    shown = [int(text) for text in texts(labels, side)]
    spacing = shown[1] - shown[0]
    assert shown == list(range(0, size, spacing))
    assert spacing * side / size >= map_style.LABEL_ROOM
    assert spacing == 1 or spacing / 2 * side / size < map_style.LABEL_ROOM


def test_pieces_label_rows_and_columns_and_long_ones_are_cut():
    """Twelve characters are the most, the ellipsis counted; columns read upwards."""
    labels = map_style.axis_labels(history(3, ("[CLS]", "incomprehensible", "[SEP]")))
    wanted = ["[CLS]", "incomprehen…", "[SEP]"]
    assert texts(labels, 440) == wanted
    assert [label.text for label in labels if label.share[1] == 1 and label.turned] == wanted


def test_a_note_is_broken_into_lines_within_the_picture():
    """No word is lost."""
    note = "Attention weights, averaged over 2,075 sentences of a-file-with-a-name-that-is-long-enough.conllu.xz " * 2
    long = replace(history(4), note=note.strip())
    lines = map_style.note_lines(long)
    assert len(lines) > 1 and " ".join(lines) == long.note


# === What the browser is given ===


@pytest.mark.parametrize("tokens", [(), ("[CLS]", "a", "[SEP]")], ids=("averaged maps", "a sentence"))
def test_a_drawing_is_json_and_holds_the_style(tokens):
    """Colours, margins, labels and legend are those of Python, number by number."""
    shown = history(3, tokens)
    drawing = json.loads(json.dumps(map_style.drawing(shown, "log")))
    assert drawing["colours"] == map_style.colours(256).tolist() and drawing["decades"] == map_style.DECADES
    assert map_style.Margins(**drawing["margins"]) == map_style.margins(shown)
    assert [label["text"] for label in drawing["labels"]] == [label.text for label in map_style.axis_labels(shown)]
    assert drawing["legend"]["width"] == map_style.legend_of(shown, "log").width
    assert map_style.drawing(shown, "linear")["decades"] is None
