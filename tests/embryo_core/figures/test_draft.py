"""Tests of Draft, whose figures and files equal those of Plotly's own class."""

import json
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.figures import file_layout
from embryo_core.figures.downsampling import break_lines, downsample_curves, longest
from embryo_core.figures.draft import Draft
from embryo_core.figures.file_words import legible_columns


def in_json(values: Any) -> Any:
    """Return values as a browser receives them."""
    return json.loads(json.dumps(values, default=lambda array: array.tolist()))


def draw(figure: Any) -> Any:
    """Draw a curve, a grid of words and a line into a figure; names of settings are nested or joined by underscores."""
    curve = {"x": np.arange(500), "y": np.sin(np.arange(500)), "mode": "lines", "legendgroup": "a", "name": "a"}
    figure.add_scatter(**curve, line_width=2, marker={"size": 5}, customdata=None)
    figure.add_heatmap(x=[0, 1], z=np.eye(2), text=[["w" * 200] * 2] * 2, meta="words")
    figure.add_scatter(x=pd.Series([1, 2]), y=[0, 1], marker={"opacity": 0}, selected={"marker_opacity": 0})
    figure.add_shape(type="line", x0=0, x1=1, y0=0, y1=1, line_color="red", name=None)
    figure.add_annotation(x=0, y=0, text="here", showarrow=False)
    axes = {"xaxis": {"tickvals": [0, 1], "ticktext": ["0", "1"]}, "yaxis": {"tickvals": [*np.arange(2)]}}
    figure.update_layout(axes | {"height": 400}, overwrite=True)
    downsample_curves(figure, "linear")
    break_lines(figure, [250.0])
    return figure


def test_draft_equals_the_plotly_figure_of_the_same_calls() -> None:
    """Data and layout are equal, as are layouts of files, legible columns, and the number of points."""
    draft, figure = draw(Draft()), draw(go.Figure())
    assert draft.to_plotly() == figure and longest(draft) == longest(figure) == 500
    for columns, size in file_layout.SIZES.items():
        one, other = (file_layout.lay_out_file(plot, columns, "Title", "Print.").layout for plot in (draft, figure))
        assert json.loads(json.dumps(one)) == in_json(other)
        assert legible_columns(draft, size.pixels) == legible_columns(figure, size.pixels) == [1]


def test_file_layout_does_not_change_the_draft() -> None:
    """The layout is computed on a copy."""
    draft = draw(Draft())
    before = in_json(draft.to_dict())
    file_layout.lay_out_file(draft, "one", "Title", "Print.")
    assert in_json(draft.to_dict()) == before


def test_unknown_settings_are_found_by_plotly() -> None:
    """Pages skip this slow validation; the tests of figures call it."""
    with pytest.raises(ValueError, match="colour"):
        Draft([{"x": [0], "y": [0], "marker": {"colour": "red"}}]).to_plotly()
