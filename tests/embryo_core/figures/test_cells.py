"""Cells of heat maps answer the pointer everywhere, lines enclose them, and their steps stay readable."""

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.colors import sample_colorscale

from embryo_core.figures import cells
from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit


def test_points_answer_anywhere_in_their_cell() -> None:
    """A point per cell, not drawn before or after a click, with what a click brings as a list."""
    figure = go.Figure()
    cells.add_points(figure, [0, 1], [1, 1], [[3, 0], [3, 8]], "layer %{customdata[0]}", ["a", "b"])
    (points,) = figure.data
    assert (list(points.x), list(points.y), list(points.text)) == ([0, 1], [1, 1], ["a", "b"])
    assert points.customdata == ([3, 0], [3, 8])
    assert points.hovertemplate == "layer %{customdata[0]}<extra></extra>"
    assert {points.marker.opacity, points.selected.marker.opacity, points.unselected.marker.opacity} == {0}
    assert figure.layout.hoverdistance == -1


def test_a_line_goes_round_whole_cells() -> None:
    """From half a cell before the first to half a cell after the last."""
    figure = go.Figure()
    cells.outline(figure, (2, 4), (0, 0), color="red", width=3)
    (shape,) = figure.layout.shapes
    assert (shape.x0, shape.x1, shape.y0, shape.y1) == (1.5, 4.5, -0.5, 0.5)
    assert (shape.line.color, shape.line.width) == ("red", 3)


@pytest.mark.parametrize(("count", "shown"), [(3, 3), (26, 26), (27, 14), (154, 26)])
def test_step_labels_fit_side_by_side(count: int, shown: int) -> None:
    """Every step where there is room, else every second, third and so on; each under its own column."""
    steps = [1000 * i for i in range(count)]
    names = [f"{step:,}" for step in steps]
    figure = cells.finish_by_step(
        go.Figure(), StepAxis("log", step_unit=StepUnit.UPDATES), names, ["embeddings", "layer 1"], "", 300
    )
    places, labels = figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext
    assert len(places) == len(labels) == shown
    assert labels[1] == {3: "1,000", 26: "1,000", 27: "2,000", 154: "6,000"}[count]
    assert steps[places[1]] == int(labels[1].replace(",", ""))
    assert list(figure.layout.yaxis.ticktext) == ["embeddings", "layer 1"]


@pytest.mark.parametrize("scale", ["Viridis", [[0, "#eef4f8"], [1, "#08457c"]]], ids=["Viridis", "lens"])
def test_what_is_written_in_a_cell_stands_out(scale) -> None:
    """By 4.5 : 1 or more on every colour, black or white; an empty cell stays empty."""
    shares = np.linspace(0, 1, 101)
    texts = cells.with_readable_colours([["x"] * 101, [""] * 101], np.array([shares, shares]), scale)
    assert texts[1] == [""] * 101 and {*texts[0]} == {"x", f'<span style="color: {cells.WHITE}">x</span>'}
    for text, colour in zip(texts[0], sample_colorscale(scale, shares, colortype="tuple")):
        light = cells.luminance(colour) + 0.05
        assert (light / 0.05 if text == "x" else 1.05 / light) >= 4.5


def test_texts_of_cells_without_a_colour_are_left_alone() -> None:
    """Nothing was measured, or all is the same."""
    assert cells.with_readable_colours([["x"]], np.array([[np.nan]]), "Viridis") == [["x"]]
    assert cells.with_readable_colours([["x", "x"]], np.array([[3.0, 3.0]]), "Viridis")[0][0].endswith("x")
