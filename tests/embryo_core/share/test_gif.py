"""Tests of the GIF of a head: one frame per step, in the colours of all other renderers."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from embryo_core.share import HeadHistory, gif_bytes, map_style
from embryo_core.share.gif import COLOURS, HEADER_HEIGHT
from embryo_core.types import StepUnit


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
    assert open_gif(long, "log").width >= map_style.TOKEN_MARGINS.left + map_style.legend(1.0, "log").room[0]


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
