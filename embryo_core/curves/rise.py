"""When a curve rises from zero, and how steeply: the paper's definition of "faster" (Appendix C.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embryo_core.curves.scores import Onset, difference_interval, onset

FOOT_SHARE, TOP_SHARE = 0.1, 0.9  # shares of the last value between which a curve rises


@dataclass(frozen=True)
class Slope:
    """A slope of a rescaled curve, in shares of the last value per step, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Rise(Onset):
    """The step at which a curve has risen from zero, with its interval of steps, and its slope."""

    slope: Slope | None  # None if the curve had risen at the first step


def rise(steps: Sequence[int] | NDArray[np.integer], values: ArrayLike, n: ArrayLike) -> Rise | None:
    """Return the rise of raw `values` [S] at `steps` [S], shares of `n` [S] cases; None if the last value is 0.

    As in docs/metrics.md, it is the onset at a tenth of the last value, and the slope from the checkpoint before this
    onset to the onset at nine tenths.
    """
    foot, top = onset(steps, values, n, FOOT_SHARE), onset(steps, values, n, TOP_SHARE)
    if foot is None or top is None:
        return None
    steps, values, n = np.asarray(steps), np.asarray(values, float), np.asarray(n)
    first = max(0, int(np.searchsorted(steps, foot.step)) - 1)
    last = int(np.searchsorted(steps, top.step))
    slope = None
    if last > first:  # slope of the values divided by the last one
        low, high = difference_interval(values[last], values[first], n[last], n_second=n[first])
        scale = float(values[-1] * (steps[last] - steps[first]))
        slope = Slope(float(values[last] - values[first]) / scale, float(low) / scale, float(high) / scale)
    return Rise(foot.step, foot.earliest, foot.latest, slope)


def ranks(rises: Sequence[Rise]) -> list[int]:
    """Return the rank of each curve, 1 for the fastest, by the rule of docs/metrics.md; ties share a rank."""
    curve_ranks = [0] * len(rises)
    slopes = [-np.inf if curve.slope is None else -curve.slope.value for curve in rises]
    order = sorted(range(len(rises)), key=lambda curve: (rises[curve].step, slopes[curve]))
    while order:
        leader, *others = order
        tied = [leader, *(curve for curve in others if _is_tied(rises[leader], rises[curve]))]
        for curve in tied:
            curve_ranks[curve] = len(rises) - len(order) + 1
        order = [curve for curve in others if curve not in tied]
    return curve_ranks


def _is_tied(leader: Rise, other: Rise) -> bool:
    """Return whether a curve rises at the leader's checkpoint and may be equally steep."""
    if leader.step != other.step or leader.slope is None or other.slope is None:
        return leader.step == other.step and leader.slope is other.slope
    return other.slope.high >= leader.slope.low
