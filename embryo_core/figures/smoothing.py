"""Smoothing: measured curves with markers, and a smoothed line next to them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves
from embryo_core.figures import style

WINDOWS = (1, 3, 5, 7, 9, 15, 25)  # points of the running mean; 1 is off, 3 is the paper's
SMOOTHED, WINDOW = "smoothed", "smoothed_over"  # columns that smoothing adds to a table
COLUMNS = (SMOOTHED, WINDOW)
SMOOTHABLE = "smoothable"  # `meta` of a curve that a static site can smooth, unless downsampling replaces it


def with_smoothed(table: pd.DataFrame, value: str, window: int, by: Iterable[str] = ()) -> pd.DataFrame:
    """Add columns with the running mean of `value` in each curve (`by`) and its window; unchanged for a window of 1."""
    if window == 1:
        return table
    means = pd.Series(0.0, table.index)
    for _, rows in table.groupby([*by], sort=False) if by else [("", table)]:
        means[rows.index] = curves.smooth(rows[value], window)
    return table.assign(**{SMOOTHED: means, WINDOW: window})


def curve(
    x: Sequence[float],
    rows: pd.DataFrame | Mapping[str, np.ndarray],
    value: str,
    name: str,
    colour: str,
    **measured: Any,
) -> list[dict[str, Any]]:
    """Return traces of the column `value` of `rows`: as measured, with markers, and the smoothed line if it exists.

    With a smoothed line, only a faint line joins the measured points. `measured` has further settings of the measured
    trace. A static site smooths it (site/curves.js), unless its `meta` is None.
    """
    line = {"color": colour, "width": 2.2} | measured.pop("line", {})
    marker = {"color": colour} | measured.pop("marker", {})
    common = {"type": "scatter", "x": np.asarray(x), "legendgroup": name}
    trace = {"y": np.asarray(rows[value]), "name": name, "mode": "lines+markers", "line": line, "marker": marker}
    measured_trace = common | trace | {"unselected": {"marker": {"opacity": 1}}, "meta": SMOOTHABLE} | measured
    if SMOOTHED not in rows:
        return [measured_trace]
    smoothed_settings = {"name": f"{name}, smoothed", "mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    faint_line = line | {"color": style.with_opacity(colour, 0.35), "width": 1}
    return [
        measured_trace | {"line": faint_line},
        common | smoothed_settings | {"y": np.asarray(rows[SMOOTHED]), "line": line},
    ]


def add_curve(figure: go.Figure, *arguments: Any, **measured: Any) -> None:
    """Add the traces of `curve` to a figure."""
    figure.add_traces(curve(*arguments, **measured))
