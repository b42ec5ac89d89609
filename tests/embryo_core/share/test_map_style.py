"""Tests of the style of an attention map: colours, the scale of weights, and labels that fit."""

import json
from dataclasses import replace

import numpy as np
import pytest

from embryo_core.share import HeadHistory, map_style
from embryo_core.types import StepUnit


def history(size: int, tokens: tuple[str, ...] = ()) -> HeadHistory:
    """Return a head that attends to all of its positions equally."""
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
    """Return the row labels of a map with sides of `side` pixels, from top to bottom."""
    rows = [label for label in labels if label.align == "right" and label.share[0] == 0 and side >= label.least]
    return [label.text for label in sorted(rows, key=lambda label: label.share[1])]


# === Colours ===


def test_colours_interpolate_evenly_between_the_stops():
    """Ten colours are the ten stops; of 256, every 85th is a stop."""
    np.testing.assert_array_equal(map_style.colours(10), map_style.VIRIDIS)
    many = map_style.colours()
    assert many.shape == (256, 3) and many.dtype == np.uint8
    np.testing.assert_array_equal(many[[0, 85, 170, 255]], map_style.VIRIDIS[[0, 3, 6, 9]])


def test_colour_positions_are_linear_or_logarithmic():
    """Half of the end is in the middle of the linear scale; weights above the end are clipped to it on both scales."""
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
def test_legend_labels_both_ends_and_the_middle(scale, wanted):
    """The labels are the weights at positions 0, 0.5 and 1 of either scale."""
    assert [label.text for label in map_style.legend(replace(history(20), shared_end=0.5), scale).labels] == wanted


def test_a_few_large_weights_do_not_darken_the_rest():
    """The colours end at the 99th percentile of a head's weights, and the caption gives the share of larger weights."""
    weights = np.full((1, 20, 20), 0.01)
    weights[0, 0, :3] = 0.9
    shown = replace(history(20), weights=weights)
    assert map_style.end_of(shown) == 0.01
    assert map_style.clipping(shown).endswith("this head over 1 step; 0.8 % of this head's are larger.")
    twice = replace(shown, steps=np.array([0, 8]), weights=np.concatenate([weights, weights]))
    assert "this head over all 2 steps; " in map_style.clipping(twice)
    texts = [label.text for label in map_style.legend(shown, "linear").labels]
    assert "≥ 0.01" in texts and "0.8 % are larger" in texts
    assert " at 0.5" in map_style.clipping(replace(shown, shared_end=0.5))


# === Labels ===


@pytest.mark.parametrize(("size", "every"), [(5, 1), (12, 1), (13, 4), (32, 4), (64, 8)])
def test_positions_are_numbered_at_round_intervals(size, every):
    """Short maps number each position, longer maps every fourth or eighth."""
    assert texts(map_style.axis_labels(history(size)), 440) == [str(i) for i in range(0, size, every)]


@pytest.mark.parametrize("side", [160, 300, 440])
@pytest.mark.parametrize("size", [4, 14, 50, 128, 512])
def test_labels_are_as_dense_as_they_fit(size, side):
    """Labels are at least one label height apart, and half that spacing would be too close."""
    labels = map_style.axis_labels(history(size, tuple(map(str, range(size)))))
    shown = [int(text) for text in texts(labels, side)]
    spacing = shown[1] - shown[0]
    assert shown == list(range(0, size, spacing))
    assert spacing * side / size >= map_style.MIN_LABEL_DISTANCE
    assert spacing == 1 or spacing / 2 * side / size < map_style.MIN_LABEL_DISTANCE


def test_tokens_label_both_axes_and_long_ones_are_cut():
    """A label has at most 12 characters, including the ellipsis; column labels are turned."""
    labels = map_style.axis_labels(history(3, ("[CLS]", "incomprehensible", "[SEP]")))
    expected = ["[CLS]", "incomprehen…", "[SEP]"]
    assert texts(labels, 440) == expected
    assert [label.text for label in labels if label.share[1] == 1 and label.turned] == expected


def test_axis_title_names_the_token_at_position_0():
    """Texts of an encoder open with a special token; a decoder's texts may have none."""
    titles = {
        opening: map_style.axis_labels(replace(history(4), opening=opening))[0].text for opening in ("[CLS]", None)
    }
    assert titles == {"[CLS]": "to position (0 is [CLS])", None: "to position"}


# === Drawing for the browser ===


@pytest.mark.parametrize("tokens", [(), ("[CLS]", "a", "[SEP]")], ids=("averaged maps", "a sentence"))
def test_drawing_for_the_browser_has_the_same_style(tokens):
    """Colours, margins, labels and the legend's width in the JSON equal those that Python draws with."""
    shown = history(3, tokens)
    drawing = json.loads(json.dumps(map_style.drawing(shown, "log")))
    assert drawing["colours"] == map_style.colours(256).tolist() and drawing["decades"] == map_style.DECADES
    assert map_style.Margins(**drawing["margins"]) == map_style.margins(shown)
    assert [label["text"] for label in drawing["labels"]] == [label.text for label in map_style.axis_labels(shown)]
    assert drawing["legend"]["width"] == map_style.legend(shown, "log").width
    assert map_style.drawing(shown, "linear")["decades"] is None


def test_long_maps_are_averaged_over_blocks():
    """A map of 70 positions becomes one of 23, each the mean of 3 x 3 weights; the last position is left out."""
    weights = np.random.default_rng(1).random((70, 70)).astype(np.float32)
    small = map_style.shrink(weights, 32)
    assert small.shape == (23, 23)
    assert small[1, 2] == pytest.approx(weights[3:6, 6:9].mean())
    assert np.array_equal(map_style.shrink(weights[:32, :32], 32), weights[:32, :32])
