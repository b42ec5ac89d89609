"""Curves that break where a step is missing or faulty, so that no line claims what was not measured."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go


def break_lines(figure: go.Figure, gaps: Sequence[float]) -> None:
    """Break every curve of a figure at the positions `gaps` on its x-axis; a point at such a position stands alone.

    Curves have a legend group; bands are filled, and stay whole. An entry of the legend alone lies nowhere.
    """
    for trace in figure.data:
        if trace.type == "scatter" and "lines" in (trace.mode or "") and trace.legendgroup and not trace.fill:
            _break(trace, gaps)


def _break(trace: go.Scatter, gaps: Sequence[float]) -> None:
    x = [*trace.x]
    if x == [None]:
        return
    cuts = sorted({cut for gap in gaps for cut in (bisect_left(x, gap), bisect_right(x, gap))} - {0, len(x)})
    if not cuts:
        return
    empty: dict[str, Any] = {"x": [x[place] for place in cuts], "y": None, "customdata": None}
    for name, value in empty.items():
        if trace[name] is not None:
            trace[name] = np.insert(np.asarray(trace[name], object), cuts, value, axis=0)
    for name in ("size", "symbol", "color"):  # of each marker, where they differ
        if isinstance(own := trace.marker[name], list | tuple | np.ndarray):
            trace.marker[name] = np.insert(np.asarray(own), cuts, [own[place] for place in cuts])
