"""Tests of heat map cells: hovering and clicks, outlines, step labels, and readable text."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.colors import sample_colorscale

from embryo_core.figures import cells
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.curves import by_layer
from embryo_core.types import StepUnit


def test_hovering_works_anywhere_in_a_cell() -> None:
    """Each cell has a point that stays invisible after a click and carries its data as a list."""
    figure = go.Figure()
    cells.add_points(figure, [0, 1], [1, 1], [[3, 0], [3, 8]], "layer %{customdata[0]}", ["a", "b"])
    (points,) = figure.data
    assert (list(points.x), list(points.y), list(points.text)) == ([0, 1], [1, 1], ["a", "b"])
    assert points.customdata == ([3, 0], [3, 8])
    assert points.hovertemplate == "layer %{customdata[0]}<extra></extra>"
    assert {points.marker.opacity, points.selected.marker.opacity, points.unselected.marker.opacity} == {0}
    assert figure.layout.hoverdistance == -1


def test_outline_encloses_whole_cells() -> None:
    """The outline runs from half a cell before the first to half a cell after the last."""
    figure = go.Figure()
    cells.outline(figure, (2, 4), (0, 0), color="red", width=3)
    (shape,) = figure.layout.shapes
    assert (shape.x0, shape.x1, shape.y0, shape.y1) == (1.5, 4.5, -0.5, 0.5)
    assert (shape.line.color, shape.line.width) == ("red", 3)


@pytest.mark.parametrize(("count", "shown"), [(3, 3), (26, 26), (27, 14), (154, 26)])
def test_step_labels_fit_side_by_side(count: int, shown: int) -> None:
    """If there is no room for every step, every second, third, ... is labelled, each below its own column."""
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


def test_labels_of_near_steps_differ() -> None:
    """Both steps would be 12.3 k."""
    data = pd.DataFrame({"layer": 1, "step": [12288, 12299], "value": [0.1, 0.2], "n": 9})
    plot = cells.plot_layer_map(data, StepAxis("log", step_unit=StepUnit.UPDATES), 1, by_layer(y_title="F1"))
    assert list(plot.layout.xaxis.ticktext) == ["12,288", "12,299"]


@pytest.mark.parametrize("scale", ["Viridis", [[0, "#eef4f8"], [1, "#08457c"]]], ids=["Viridis", "lens"])
def test_text_is_readable_on_every_cell_colour(scale) -> None:
    """Black or white text has a contrast of at least 4.5 : 1; an empty cell stays empty."""
    shares = np.linspace(0, 1, 101)
    texts = cells.with_readable_colours([["x"] * 101, [""] * 101], np.array([shares, shares]), scale)
    assert texts[1] == [""] * 101 and {*texts[0]} == {"x", f'<span style="color: {cells.WHITE}">x</span>'}
    for text, colour in zip(texts[0], sample_colorscale(scale, shares, colortype="tuple")):
        light = cells.luminance(colour) + 0.05
        assert (light / 0.05 if text == "x" else 1.05 / light) >= 4.5


def test_cells_without_a_range_of_colours_keep_their_text() -> None:
    """The text survives if nothing was measured or all values are equal."""
    assert cells.with_readable_colours([["x"]], np.array([[np.nan]]), "Viridis") == [["x"]]
    assert cells.with_readable_colours([["x", "x"]], np.array([[3.0, 3.0]]), "Viridis")[0][0].endswith("x")
