"""Tests of the tiles of the Overview: they contain the stored numbers at the positions of the axis."""

import json

import numpy as np
import pandas as pd
import pytest

from embryo_core.browser import growth
from embryo_core.curves.step_scales import SCALES
from embryo_core.runs.schema import BestAnswers, ExampleQuestion
from embryo_core.types import Run


def test_empty_tiles_are_left_out(own_run: Run) -> None:
    """The browser hides a tile that is not in the payload; a run without results has none."""
    payload, places = growth.make_tiles(own_run, "log")
    assert json.loads(payload[4:]) == {} == places and int.from_bytes(payload[:4], "little") == len(payload) - 4


def test_sentence_tile_has_answers_of_each_step() -> None:
    """The tile has the text on both sides of the mask, and no answers where no word was probable."""
    answers = [BestAnswers(0, {}), BestAnswers(8, {"a": 0.5, "b": 0.25})]
    tile = growth.sentence_tile(ExampleQuestion("It is [MASK] cat .", "a", 8, answers))
    assert (tile["before"], tile["after"], tile["steps"]) == ("It is ", " cat.", [0, 8])
    assert tile["answers"] == [[], [("a", 0.5), ("b", 0.25)]]


def test_head_colours_end_at_the_99th_percentile() -> None:
    """The weight at the 99th percentile of all maps of the head, and any above it, has the last colour."""
    weights = np.random.default_rng(0).random((3, 6, 6)).astype(np.float32)
    about, levels = growth.head_tile("Layer 1, head 2", "next token", [0, 8, 16], weights, [0.1, 0.2, 0.3])
    expected = np.rint(255 * np.minimum(weights / np.percentile(weights, 99), 1))
    assert np.array_equal(levels, expected) and about["size"] == 6
    assert about["steps"] == [0, 8, 16] and about["values"] == [0.1, 0.2, 0.3]


CURVES = pd.DataFrame(
    {"group": ["noun"] * 3 + ["verb"] * 3, "step": [0, 1, 16] * 2, "accuracy": [0.0, 0.1, 0.4, 0.0, 0.2, 0.3]}
)


@pytest.mark.parametrize("scale", SCALES)
def test_curves_have_the_positions_of_the_axis(scale) -> None:
    """Positions run from 0 at the first step to 1 at the last, on every scale."""
    tile = growth.curves_tile(CURVES, scale)
    assert [curve["values"] for curve in tile["curves"]] == [[0.0, 0.1, 0.4], [0.0, 0.2, 0.3]]
    middle = 1 / 16 if scale == "linear" else np.log(2) / np.log(32)
    assert tile["places"] == pytest.approx([0, middle, 1])
