"""Curves as they were measured, bold with markers, and a smoothed line beside them where the reader asks for one."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.charts import style
from embryo_core import curves

WINDOWS = (1, 3, 5, 7, 9, 15, 25)  # points, of which the mean is taken; 1 is off, 3 is the paper's
SMOOTHED, WINDOW = "smoothed", "smoothed_over"  # columns that a table has where smoothing is on


def with_smoothed(table: pd.DataFrame, value: str, window: int, by: Iterable[str] = ()) -> pd.DataFrame:
    """The table with the column `value` smoothed along its rows, curve `by` curve; unchanged where smoothing is off."""
    if window == 1:
        return table
    groups = table.groupby([*by], sort=False, dropna=False)[value] if by else table[value]
    means = groups.transform(lambda values: curves.smooth(values, window))
    return table.assign(**{SMOOTHED: means.astype(float), WINDOW: window})


def add_curve(
    figure: go.Figure, x: list[float], rows: pd.DataFrame, value: str, name: str, colour: str, **measured: Any
) -> None:
    """The column `value` of `rows` as measured, bold with markers, with which its smoothed line comes and goes.

    Where `rows` are smoothed, the line is the smoothed one's, and the measured points are joined by a faint one.
    `measured` are further settings of the measured trace; its line may have a width and a dash.
    """
    smoothed = SMOOTHED in rows
    line = {"color": colour, "width": 2.2} | measured.pop("line", {})
    behind = line | {"color": style.faint(colour, 0.35), "width": 1}
    figure.add_scatter(
        x=x,
        y=rows[value],
        name=name,
        legendgroup=name,
        mode="lines+markers",
        line=behind if smoothed else line,
        marker={"color": colour} | measured.pop("marker", {}),
        unselected_marker_opacity=1,
        **measured,
    )
    if smoothed:
        add_smoothed(figure, x, rows, name, line)


def add_smoothed(figure: go.Figure, x: list[float], rows: pd.DataFrame, name: str, line: dict[str, Any]) -> None:
    """The smoothed line alone of the curve of this name."""
    figure.add_scatter(
        x=x,
        y=rows[SMOOTHED],
        name=f"{name}, smoothed",
        legendgroup=name,
        showlegend=False,
        mode="lines",
        line=line,
        hoverinfo="skip",
    )
