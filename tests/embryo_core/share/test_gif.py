"""Tests of the GIFs of one head and of all heads: one frame per step, in the colours of all other renderers."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from embryo_core.share import HeadHistory, all_heads_gif, gif_bytes, map_style
from embryo_core.share.gif import COLOURS, GRID_LEFT, GRID_TOP, HEADER_HEIGHT, MAP_GAP, MAP_SIDE
from embryo_core.types import StepUnit

STEPS = np.array([0, 8, 16])


def open_gif(history: HeadHistory, scale: str = "linear") -> Image.Image:
    """Open the GIF of a history."""
    return Image.open(io.BytesIO(gif_bytes(history, scale)))


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_gif_has_one_frame_per_step_and_loops(history, scale):
    """The last frame is shown longest."""
    image = open_gif(history, scale)
    assert (image.format, image.n_frames, image.info["loop"]) == ("GIF", 3, 0)
    times = []
    for i in range(3):
        image.seek(i)
        times.append(image.info["duration"])
    assert times[0] == times[1] < times[2]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_each_weight_has_the_colour_of_the_scale(history, scale):
    """In every frame the middle pixel of each square has the colour nearest to the weight's position on the scale."""
    rows = np.random.default_rng(0).dirichlet(np.ones(5), size=(3, 5)).astype(np.float32)
    history = replace(history, weights=rows)
    image = open_gif(history, scale)
    positions = map_style.colour_positions(rows, map_style.end_of(history), scale)
    left, cell = map_style.EDGE + map_style.POSITION_MARGINS.left, 440 // 5
    middles = np.arange(5) * cell + cell // 2
    for i in range(3):
        image.seek(i)
        pixels = np.asarray(image.convert("RGB"))[np.ix_(HEADER_HEIGHT + middles, left + middles)]
        np.testing.assert_array_equal(
            pixels, map_style.colours(COLOURS)[np.rint(positions[i] * (COLOURS - 1)).astype(int)]
        )


def test_title_and_labels_surround_the_map(history):
    """Dark pixels appear above the map, to its left and below it."""
    dark = np.asarray(open_gif(history).convert("L")) < 100
    left, side = map_style.EDGE + map_style.POSITION_MARGINS.left, 440
    assert (
        dark[:HEADER_HEIGHT].any()
        and dark[HEADER_HEIGHT : HEADER_HEIGHT + side, :left].any()
        and dark[HEADER_HEIGHT + side :].any()
    )


def test_colour_bar_shows_the_whole_scale(history):
    """The bar is below the map and runs evenly from the first colour to the last."""
    pixels = np.asarray(open_gif(history).convert("RGB"))
    left = map_style.EDGE + map_style.POSITION_MARGINS.left
    levels = np.rint(np.linspace(0, COLOURS - 1, 208)).astype(int)
    for y in (6, 17):
        row = pixels[HEADER_HEIGHT + 440 + map_style.POSITION_MARGINS.bottom + y, left : left + 208]
        np.testing.assert_array_equal(row, map_style.colours(COLOURS)[levels])


def test_long_sentences_and_foreign_tokens_are_drawn(sentence):
    """Tokens label the axes; with 300 tokens of a pixel or two each, the picture is wide enough for the legend."""
    assert open_gif(sentence).n_frames == 3
    weights = np.random.default_rng(0).dirichlet(np.ones(300), size=(1, 300)).astype(np.float32)
    long = HeadHistory(
        "tiny", 1, 1, "One sentence", np.array([0]), weights, ("piece",) * 300, step_unit=StepUnit.UPDATES
    )
    assert open_gif(long, "log").width >= map_style.TOKEN_MARGINS.left + map_style.legend(long, "log").room[0]


def test_unchanging_start_is_shortened(history):
    """Frames that look like the first pass quickly, except for the last of them."""
    first, middle, last = history.weights
    still = replace(history, steps=np.arange(6), weights=np.stack([first] * 4 + [middle, last]))
    image = open_gif(still)
    times = []
    for i in range(6):
        image.seek(i)
        times.append(image.info["duration"])
    assert sum(times[:3]) < times[3] == times[4] < times[5]


# === All heads ===


@pytest.fixture
def weights() -> np.ndarray:
    """Return weights of two layers of three heads at three steps, [3, 2, 3, 4, 4]; the heads differ in magnitude."""
    rows = np.random.default_rng(0).random((3, 2, 3, 4, 4)) ** 3
    return rows * np.arange(1, 7).reshape(2, 3, 1, 1)


@pytest.mark.parametrize("shared", [False, True])
def test_each_head_is_drawn_in_its_cell_and_colours(weights, shared):
    """The colour scale ends at the head's own percentile or, if shared, at the percentile of all heads."""
    image = Image.open(io.BytesIO(all_heads_gif("tiny", STEPS, weights, "linear", shared, unit=StepUnit.UPDATES)))
    assert image.n_frames == 3
    image.seek(1)
    pixels = np.asarray(image.convert("RGB"))
    middles = (np.arange(4) * MAP_SIDE + MAP_SIDE // 2) // 4
    for layer, head in np.ndindex(2, 3):
        end = np.percentile(weights if shared else weights[:, layer, head], map_style.CLIP_PERCENTILE)
        levels = np.rint(np.minimum(weights[1, layer, head] / end, 1) * (COLOURS - 1)).astype(int)
        corner = GRID_TOP + layer * (MAP_SIDE + MAP_GAP), GRID_LEFT + head * (MAP_SIDE + MAP_GAP)
        drawn = pixels[np.ix_(corner[0] + middles, corner[1] + middles)]
        np.testing.assert_array_equal(drawn, map_style.colours(COLOURS)[levels])


def test_frame_title_names_the_step_unit(weights):
    """Runs that count words and runs that count updates get frames that differ only in the title."""
    frames = []
    for unit in (StepUnit.UPDATES, StepUnit.WORDS):
        image = Image.open(io.BytesIO(all_heads_gif("tiny", STEPS, weights, unit=unit))).convert("RGB")
        frames.append(np.asarray(image))
    assert (frames[0][:GRID_TOP] != frames[1][:GRID_TOP]).any() and (frames[0][GRID_TOP:] == frames[1][GRID_TOP:]).all()


NOTE = "averaged over 2,075 sentences of a treebank, each row divided by its sum; rows are layers, columns are heads"


@pytest.mark.parametrize(("run", "note"), [("tiny", NOTE), ("tiny", "x" * 200), ("a-run-with-a-long-name" * 3, "")])
def test_texts_are_not_cut_off(weights, run, note):
    """A long note has several lines, of which none reaches the edge of the picture; a long title makes it wider."""
    image = Image.open(io.BytesIO(all_heads_gif(run, STEPS, weights, note=note, unit=StepUnit.UPDATES)))
    grey = np.asarray(image.convert("L"))
    assert (grey[:, -map_style.EDGE + 1 :] > 250).all()
    assert (grey[GRID_TOP + 2 * (MAP_SIDE + MAP_GAP) :] < 200).any() == bool(note)


def test_note_on_the_data_is_drawn_below_the_maps(weights):
    """More dark pixels are below the maps with a note than without one."""
    ink = []
    for note in ("", "averaged over 2,075 sentences"):
        image = Image.open(io.BytesIO(all_heads_gif("tiny", STEPS, weights, note=note, unit=StepUnit.UPDATES))).convert(
            "L"
        )
        ink.append((np.asarray(image)[GRID_TOP + 2 * (MAP_SIDE + MAP_GAP) :] < 200).sum())
    assert ink[0] < ink[1]
