"""Tests of smoothing, which adds a line and two columns and keeps the measured points with their markers."""

import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves
from embryo_core.figures import smoothing

TABLE = pd.DataFrame({"name": ["a"] * 3 + ["b"] * 3, "step": [0, 1, 2] * 2, "value": [0, 0.9, 0.9, 1, 1, 0.1]})


def test_curves_are_smoothed_separately() -> None:
    """Means do not cross from one curve to the next, and the table has their window."""
    table = smoothing.with_smoothed(TABLE, "value", 3, ["name"])
    for _, rows in table.groupby("name"):
        assert list(rows[smoothing.SMOOTHED]) == curves.smooth(rows["value"], 3).tolist()
    assert set(table[smoothing.WINDOW]) == {3}


def test_window_of_one_changes_nothing() -> None:
    """It is the default: the table has no further columns, and the figure one bold line with markers."""
    assert smoothing.WINDOWS[0] == 1 and 3 in smoothing.WINDOWS
    table = smoothing.with_smoothed(TABLE, "value", 1, ["name"])
    assert table.equals(TABLE)
    (line,) = smoothing.curve([0, 1, 2], table[:3], "value", "a", "#1F83C6")
    assert line["mode"] == "lines+markers" and list(line["y"]) == [0, 0.9, 0.9] and line["line"]["width"] > 2


def test_measured_points_keep_their_markers_beside_a_smoothed_line() -> None:
    """The markers are at the measurements, and the bold line without markers is the mean."""
    rows = smoothing.with_smoothed(TABLE[:3], "value", 3)
    figure = go.Figure()
    smoothing.add_curve(figure, [0, 1, 2], rows, "value", "a", "#1F83C6", line={"width": 3})
    measured, mean = figure.data
    assert measured.mode == "lines+markers" and list(measured.y) == [0, 0.9, 0.9]
    assert mean.mode == "lines" and list(mean.y) == list(rows[smoothing.SMOOTHED])
    assert measured.line.width < mean.line.width == 3 and measured.legendgroup == mean.legendgroup
