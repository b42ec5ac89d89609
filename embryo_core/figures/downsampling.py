"""Lines for the screen: downsample long curves to what a screen can show, and break curves where a step is missing."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from embryo_core.curves.step_scales import Scale

STRETCH_COUNT = 100  # number of stretches of an axis, each a few pixels wide
POINT_SETTINGS = ("x", "y", "customdata", "text", "hovertext")  # settings of a trace with a value for each point
MARKER_SETTINGS = ("size", "symbol", "color")  # settings of markers, some with a value for each point


def downsample_curves(figure: go.Figure, scale: Scale) -> None:
    """Remove points of long curves from a figure whose x-axis has this scale.

    Of each stretch of the axis a curve keeps its first, last, lowest and highest point. A band keeps the points of its
    curve. The `meta` of a downsampled curve is its former number of points.
    """
    kept_points: dict[str, tuple[int, np.ndarray]] = {}
    for trace in _curves(figure):
        point_count = len(trace.x)
        indices = points_kept(np.asarray(trace.x, float), np.asarray(trace.y, float), scale)
        if len(indices) < point_count:
            kept_points.setdefault(trace.legendgroup, (point_count, indices))
            _select_points(trace, indices)
            trace.meta = point_count
    for trace in figure.data:
        if trace.type == "scatter" and trace.fill and trace.legendgroup in kept_points:
            point_count, indices = kept_points[trace.legendgroup]
            if len(trace.x) == 2 * point_count:  # forward along its upper edge, and back along the lower
                _select_points(trace, np.concatenate([indices, 2 * point_count - 1 - indices[::-1]]))


def _curves(figure: go.Figure) -> list[go.Scatter]:
    """Return the curves of a figure: lines in a legend group, but neither filled bands nor bare legend entries."""
    scatters = (trace for trace in figure.data if trace.type == "scatter" and trace.legendgroup and not trace.fill)
    return [trace for trace in scatters if "lines" in (trace.mode or "") and len(trace.x) and trace.x[0] is not None]


def points_kept(x: np.ndarray, y: np.ndarray, scale: Scale) -> np.ndarray:
    """Return the indices [K] of the kept points of a curve (`x` [N] ascending, `y` [N]); a short curve keeps all."""
    indices = np.arange(len(x))
    if len(x) <= 4 * STRETCH_COUNT or (np.diff(x) < 0).any():
        return indices
    position = np.log(x) if scale == "log" else x
    stretch = ((position - position[0]) / ((position[-1] - position[0]) or 1) * STRETCH_COUNT).astype(int)
    index_groups = [_stretch_ends(indices, stretch), indices[np.isnan(y)]]
    finite = indices[~np.isnan(y)]
    by_height = finite[np.lexsort((y[finite], stretch[finite]))]
    return np.unique(np.concatenate([*index_groups, _stretch_ends(by_height, stretch)]))


def _stretch_ends(indices: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return the first and the last of the points in each stretch; the points are sorted by stretch."""
    starts = np.flatnonzero(np.diff(stretch[indices])) + 1
    return indices[np.concatenate([[0], starts, starts - 1, [len(indices) - 1]])] if len(indices) else indices


def longest(figure: go.Figure) -> int | None:
    """Return the number of points of the longest curve that was downsampled; None if none was."""
    return max((trace.meta for trace in figure.data if isinstance(trace.meta, int)), default=None)


def _select_points(trace: go.Scatter, indices: np.ndarray) -> None:
    """Reduce a trace and its markers to the points with the indices `indices`."""
    for part, names in ((trace, POINT_SETTINGS), (trace.marker, MARKER_SETTINGS)):
        for name in names:
            values = part[name]
            if isinstance(values, np.ndarray):
                part[name] = values[indices]
            elif isinstance(values, Sequence) and not isinstance(values, str):
                part[name] = [values[i] for i in indices]


def break_lines(figure: go.Figure, gaps: Sequence[float]) -> None:
    """Break every curve of a figure, but no band, at positions of its x-axis; a point there is cut off on each side."""
    for trace in _curves(figure):
        x = [*trace.x]
        cuts = cuts_at(x, gaps)
        if not cuts:
            continue
        empty: dict[str, Any] = {"x": [x[i] for i in cuts], "y": None, "customdata": None}
        for name, value in empty.items():
            if trace[name] is not None:
                trace[name] = np.insert(np.asarray(trace[name], object), cuts, value, axis=0)
        for name in MARKER_SETTINGS:
            if isinstance(values := trace.marker[name], list | tuple | np.ndarray):
                trace.marker[name] = np.insert(np.asarray(values), cuts, [values[i] for i in cuts])


def cuts_at(x: Sequence[float], gaps: Sequence[float]) -> list[int]:
    """Return the indices of the ascending `x` before which a curve breaks: on both sides of each gap."""
    return sorted({cut for gap in gaps for cut in (bisect_left(x, gap), bisect_right(x, gap))} - {0, len(x)})
