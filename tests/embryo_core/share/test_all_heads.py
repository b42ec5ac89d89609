"""Tests of the GIF of all heads: a grid of small maps in the colours of the large map."""

import io

import numpy as np
import pytest
from PIL import Image

from embryo_core.share import all_heads_gif, map_style
from embryo_core.share.all_heads import LEFT, MAP_GAP, MAP_SIDE, MARGIN, TOP
from embryo_core.share.gif import COLOURS
from embryo_core.types import StepUnit

STEPS = np.array([0, 8, 16])


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
        corner = TOP + layer * (MAP_SIDE + MAP_GAP), LEFT + head * (MAP_SIDE + MAP_GAP)
        drawn = pixels[np.ix_(corner[0] + middles, corner[1] + middles)]
        np.testing.assert_array_equal(drawn, map_style.colours(COLOURS)[levels])


def test_frame_title_names_the_step_unit(weights):
    """Runs that count words and runs that count updates get frames that differ only in the title."""
    frames = []
    for unit in (StepUnit.UPDATES, StepUnit.WORDS):
        image = Image.open(io.BytesIO(all_heads_gif("tiny", STEPS, weights, unit=unit))).convert("RGB")
        frames.append(np.asarray(image))
    assert (frames[0][:TOP] != frames[1][:TOP]).any() and (frames[0][TOP:] == frames[1][TOP:]).all()


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("note", ["", "averaged over 2,075 sentences of a treebank, each row divided by its sum"])
def test_note_is_not_cut_off(weights, scale, shared, note):
    """Every line of the note ends before the edge of the picture."""
    picture = all_heads_gif("tiny", STEPS, weights, scale, shared, note=note, unit=StepUnit.UPDATES)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    pixels = np.asarray(image)[TOP + 2 * (MAP_SIDE + MAP_GAP) :]
    assert (pixels < 200).any() and (pixels[:, -MARGIN + 1 :] > 250).all()


def test_note_on_the_data_is_drawn_below_the_maps(weights):
    """More dark pixels are below the maps with a note than without one."""
    ink = []
    for note in ("", "averaged over 2,075 sentences"):
        image = Image.open(io.BytesIO(all_heads_gif("tiny", STEPS, weights, note=note, unit=StepUnit.UPDATES))).convert(
            "L"
        )
        ink.append((np.asarray(image)[TOP + 2 * (MAP_SIDE + MAP_GAP) :] < 200).sum())
    assert ink[0] < ink[1]
