"""Tests of the lens: a grid with a word and a colour per cell, outlines, folded steps, and escaped tokens."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.figures import lens, style
from embryo_core.figures.axis import STEP_MARK, StepAxis
from embryo_core.figures.query import MARKED
from embryo_core.types import StepUnit
from tests.app.conftest import words_of

STEPS = (0, 8, 16)


def grid(*arguments: Any) -> go.Figure:
    """Return the grid of a lens, validated by Plotly."""
    return lens.grid(*arguments).to_plotly()


def table(word: str = "<b>a</b>") -> pd.DataFrame:
    """Return two layers at three steps with two ranks each; the word is on top in all cells but the last."""
    rows = [
        (step, layer, rank, "rome" if (step, layer, rank) == (16, 1, 1) else word if rank == 1 else "b", 0.5 / rank)
        for step in STEPS
        for layer in (0, 1)
        for rank in (1, 2)
    ]
    return pd.DataFrame(rows, columns=["step", "layer", "rank", "token", "probability"])


def outlines(figure, colour: str) -> list[tuple[float, float]]:
    """Return the middles of the cells outlined in this colour, as (place of the step, place of the layer)."""
    return [((s.x0 + s.x1) / 2, (s.y0 + s.y1) / 2) for s in figure.layout.shapes if s.line.color == colour]


def test_cells_have_the_top_word_and_its_probability() -> None:
    """Rows are layers and columns are steps; words are escaped, and colour is the square root of the probability."""
    figure = grid(table(), StepAxis("log", step_unit=StepUnit.UPDATES), (1, 8), {})
    cells = figure.data[0]
    assert words_of(cells) == [["&lt;b&gt;a&lt;/b&gt;"] * 3, ["&lt;b&gt;a&lt;/b&gt;"] * 2 + ["rome"]]
    assert np.asarray(cells.z) == pytest.approx(np.full((2, 3), np.sqrt(0.5)))
    assert (cells.zmin, cells.zmax) == (0, 1)


def test_cells_can_be_clicked() -> None:
    """Every cell has a point that carries its layer and step."""
    points = grid(table(), StepAxis("log", step_unit=StepUnit.UPDATES), (1, 8), {}).data[1]
    assert {(x, y): tuple(data[:2]) for x, y, data in zip(points.x, points.y, points.customdata)} == {
        (i, layer): (layer, step) for i, step in enumerate(STEPS) for layer in (0, 1)
    }


def test_pin_chosen_step_and_marked_words_are_outlined() -> None:
    """The column of the chosen step is grey; the line of the pin has no name, so the time bar does not move it."""
    figure = grid(table(), StepAxis("log", step_unit=StepUnit.UPDATES), (1, 0), {"rome": "true object"})
    assert outlines(figure, style.VERMILION) == [(0, 1)]
    assert outlines(figure, style.GREY) == [(2, 0.5)]
    assert outlines(figure, MARKED["true object"][0]) == [(2, 1)]
    assert [shape.name for shape in figure.layout.shapes if shape.line.color == style.VERMILION] == [None]


def test_without_a_pin_the_last_layer_follows_the_step() -> None:
    """The time bar moves the outlines of the chosen column and of its top cell over the columns of the grid."""
    figure = grid(table(), StepAxis("log", step_unit=StepUnit.UPDATES), None, {})
    moved = [shape.line.color for shape in figure.layout.shapes if shape.name == STEP_MARK]
    assert moved == [style.GREY, style.VERMILION] and outlines(figure, style.VERMILION) == [(2, 1)]
    assert figure.layout.meta == {"steps": list(STEPS), "points": [[0], [1], [2]]}


def test_words_are_never_cut_off() -> None:
    """A long word makes the columns, and with them the figure, wider."""
    short, long = (
        grid(table(word), StepAxis("log", step_unit=StepUnit.UPDATES), (1, 8), {}) for word in ("a", "a" * 100)
    )
    assert words_of(long.data[0])[0][0] == "a" * 100
    assert long.layout.width >= 3 * 100 * 6 > short.layout.width


def test_unsure_first_steps_are_folded_into_one_column() -> None:
    """Steps are unsure until a layer gives a word 10 %; without such a layer no step is folded."""
    noisy = table().assign(probability=lambda rows: rows["probability"].where(rows["step"] == STEPS[2], 0.09))
    assert lens.unsure_steps(noisy) == list(STEPS[:2]) and lens.unsure_steps(table()) == []
    assert lens.unsure_steps(noisy.assign(probability=0.01)) == []
    figure = grid(noisy, StepAxis("log", step_unit=StepUnit.UPDATES), None, {}, STEPS[:2])
    assert list(figure.layout.xaxis.ticktext) == ["0 … 8", "16"] and list(figure.data[0].x) == [1]
    assert figure.layout.meta == {"steps": list(STEPS), "points": [[0], [0], [1]]}
    assert {point[1] for point in figure.data[1].customdata} == {STEPS[2]}
    assert [note.text for note in figure.layout.annotations] == [lens.FOLDED_TEXT]
    assert not grid(noisy, StepAxis("log", step_unit=StepUnit.UPDATES), None, {}).layout.annotations


def test_colour_scale_is_outside_the_grid() -> None:
    """The scale stays visible when a wide grid is scrolled; its places are square roots of the probabilities."""
    assert grid(table(), StepAxis("log", step_unit=StepUnit.UPDATES), None, {}).data[0].showscale is False
    scale = lens.colour_scale()
    assert all(f'left: {place}%">{share}' in scale for place, share in ((10, "1%"), (50, "25%"), (100, "100%")))
