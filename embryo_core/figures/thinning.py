"""Lines for the screen: thin long curves to what a screen can show, and break curves where a step is missing."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from embryo_core.curves.step_scales import Scale

STRETCHES = 100  # number of stretches of an axis, each a few pixels wide
OF_POINTS = ("x", "y", "customdata", "text", "hovertext")  # settings of a trace with a value for each point
OF_MARKERS = ("size", "symbol", "color")  # settings of markers, some with a value for each point


def thin_curves(figure: go.Figure, scale: Scale) -> None:
    """Remove points of long curves from a figure whose x-axis has this scale.

    Of each stretch of the axis a curve keeps its first, last, lowest and highest point. A band keeps the points of its
    curve. The `meta` of a thinned curve is its former number of points.
    """
    kept: dict[str, tuple[int, np.ndarray]] = {}
    for trace in _curves(figure):
        points = len(trace.x)
        few = points_kept(np.asarray(trace.x, float), np.asarray(trace.y, float), scale)
        if len(few) < points:
            kept.setdefault(trace.legendgroup, (points, few))
            _keep(trace, few)
            trace.meta = points
    for trace in figure.data:
        if trace.type == "scatter" and trace.fill and trace.legendgroup in kept:
            points, few = kept[trace.legendgroup]
            if len(trace.x) == 2 * points:  # forward along its upper edge, and back along the lower
                _keep(trace, np.concatenate([few, 2 * points - 1 - few[::-1]]))


def _curves(figure: go.Figure) -> list[go.Scatter]:
    """Return the curves of a figure: lines in a legend group, but neither filled bands nor bare legend entries."""
    scatters = (trace for trace in figure.data if trace.type == "scatter" and trace.legendgroup and not trace.fill)
    return [trace for trace in scatters if "lines" in (trace.mode or "") and len(trace.x) and trace.x[0] is not None]


def points_kept(x: np.ndarray, y: np.ndarray, scale: Scale) -> np.ndarray:
    """Return the indices [K] of the kept points of a curve (`x` [N] ascending, `y` [N]); a short curve keeps all."""
    everything = np.arange(len(x))
    if len(x) <= 4 * STRETCHES or (np.diff(x) < 0).any():
        return everything
    place = np.log(x) if scale == "log" else x
    stretch = ((place - place[0]) / ((place[-1] - place[0]) or 1) * STRETCHES).astype(int)
    kept = [_ends(everything, stretch), everything[np.isnan(y)]]
    present = everything[~np.isnan(y)]
    by_height = present[np.lexsort((y[present], stretch[present]))]
    return np.unique(np.concatenate([*kept, _ends(by_height, stretch)]))


def _ends(points: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return the first and the last of the points in each stretch; the points are sorted by stretch."""
    new = np.flatnonzero(np.diff(stretch[points])) + 1
    return points[np.concatenate([[0], new, new - 1, [len(points) - 1]])] if len(points) else points


def longest(figure: go.Figure) -> int | None:
    """Return the number of points of the longest curve that was thinned; None if none was."""
    return max((trace.meta for trace in figure.data if isinstance(trace.meta, int)), default=None)


def _keep(trace: go.Scatter, few: np.ndarray) -> None:
    """Reduce a trace and its markers to the points with the indices `few`."""
    for holder, names in ((trace, OF_POINTS), (trace.marker, OF_MARKERS)):
        for name in names:
            held = holder[name]
            if isinstance(held, np.ndarray):
                holder[name] = held[few]
            elif isinstance(held, Sequence) and not isinstance(held, str):
                holder[name] = [held[i] for i in few]


def break_lines(figure: go.Figure, gaps: Sequence[float]) -> None:
    """Break every curve of a figure, but no band, at places of its x-axis; a point there is cut off on both sides."""
    for trace in _curves(figure):
        x = [*trace.x]
        cuts = sorted({cut for gap in gaps for cut in (bisect_left(x, gap), bisect_right(x, gap))} - {0, len(x)})
        if not cuts:
            continue
        empty: dict[str, Any] = {"x": [x[place] for place in cuts], "y": None, "customdata": None}
        for name, value in empty.items():
            if trace[name] is not None:
                trace[name] = np.insert(np.asarray(trace[name], object), cuts, value, axis=0)
        for name in OF_MARKERS:
            if isinstance(values := trace.marker[name], list | tuple | np.ndarray):
                trace.marker[name] = np.insert(np.asarray(values), cuts, [values[place] for place in cuts])
