"""The kinds of comparison that findings are made of: earlier, together, fallen from its peak, and ranks that agree."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from embryo_core import curves
from embryo_core.curves import Onset
from embryo_core.curves.agreement import rank_agreement
from embryo_core.findings.evidence import Curve
from embryo_core.findings.finding import Comparison

CHECKPOINTS = "checkpoints"
ACCURACY = "score"


def earlier(what: str, first: Curve, second: Curve, onsets: tuple[Onset | None, Onset | None]) -> Comparison | None:
    """By how many evaluated steps the onset of `first` precedes that of `second`; None where neither has one.

    The interval goes from the two ends that lie nearest to each other to those that lie farthest apart. What has no
    onset is taken to come after the last step.
    """
    if onsets == (None, None):
        return None
    grid = np.union1d(first.steps, second.steps)
    (one, one_from, one_to), (two, two_from, two_to) = (_indices(onset, grid) for onset in onsets)
    cases = min(first.cases, second.cases)
    return Comparison(what, two - one, two_from - one_to, two_to - one_from, CHECKPOINTS, cases)


def _indices(onset: Onset | None, grid: np.ndarray) -> tuple[int, int, int]:
    """An onset and its two ends as indices of evaluated steps; what lies beyond the last is one after it."""
    steps = (None,) * 3 if onset is None else (onset.step, onset.earliest, onset.latest)
    return tuple(len(grid) if step is None else int(np.searchsorted(grid, step)) for step in steps)


def together(what: str, first: Curve, second: Curve, factor: float) -> Comparison | None:
    """Whether two curves have made half of their way at steps that differ by less than a factor; None if one has not.

    The value is how many doublings of the step there are to spare.
    """
    one, two = first.rise(), second.rise()
    if one is None or two is None:
        return None
    spare = np.log2(factor)
    end = 2 * max(first.steps[-1], second.steps[-1])  # where an end beyond the last step is put
    low = _doublings(one.latest or end, two.earliest)
    high = _doublings(one.earliest, two.latest or end)
    farthest = max(abs(low), abs(high))
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    value = spare - abs(_doublings(one.step, two.step))
    cases = min(first.cases, second.cases)
    return Comparison(what, value, spare - farthest, spare - nearest, "doublings of the step", cases)


def _doublings(first: int, second: int) -> float:
    return float(np.log2((second + 1) / (first + 1)))


def fallen(what: str, curve: Curve) -> Comparison:
    """How far the last value of a share lies below the best one before it.

    The best of many values is too high by chance. So the intervals of all differences hold together (Bonferroni).
    """
    z = NormalDist().inv_cdf(1 - 0.025 / (len(curve.values) - 1))
    before, last = curve.values[:-1], curve.values[-1]
    low, high = curves.difference_interval(before, np.full(len(before), last), curve.cases, z)
    return Comparison(what, float(before.max() - last), float(low.max()), float(high.max()), ACCURACY, curve.cases)


def agreement_with_paper(first: Sequence[float], second: Sequence[float]) -> str:
    """Spearman's rho of an order and the paper's, with its n and 95 % interval (see `agreement.rank_agreement`)."""
    found = rank_agreement(first, second)
    if found is None:
        return f"No rank agreement can be told from n = {len(first)}."
    ends = f"{found.low:.2f} to {found.high:.2f}"
    return f"Spearman's rho with the paper's order {found.rho:.2f} ({ends}, n = {found.n})."
