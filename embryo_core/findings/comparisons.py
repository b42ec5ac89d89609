"""The kinds of comparison used by findings: an earlier onset, rising together, a fall from the peak, rank agreement."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from embryo_core import curves
from embryo_core.curves import Onset
from embryo_core.curves.agreement import rank_agreement
from embryo_core.findings.evidence import Curve
from embryo_core.findings.finding import Comparison

CHECKPOINT_UNIT = "checkpoints"
SCORE_UNIT = "score"


def compare_onsets(
    label: str, first: Curve, second: Curve, onsets: tuple[Onset | None, Onset | None]
) -> Comparison | None:
    """Compare by how many evaluated steps the onset of `first` precedes that of `second`; None if neither has one.

    The interval is the range of differences between any points of the two onsets' intervals. An onset may have happened
    at any time since the step at which its curve was evaluated before, so its interval begins after that step. The
    onset of a curve without one is taken to follow the last step.
    """
    if onsets == (None, None):
        return None
    grid = np.union1d(first.steps, second.steps)
    (i, i_low, i_high), (j, j_low, j_high) = (
        _onset_indices(onset, curve.steps, grid) for onset, curve in zip(onsets, (first, second), strict=True)
    )
    cases = min(first.cases, second.cases)
    return Comparison(label, j - i, j_low - i_high, j_high - i_low, CHECKPOINT_UNIT, cases, i == j)


def _onset_indices(onset: Onset | None, steps: np.ndarray, grid: np.ndarray) -> tuple[int, int, int]:
    """Return the onset of a curve over `steps` and the ends of its interval as indices of `grid`, the steps of both.

    Unknown ones follow the last step.
    """
    if onset is None:
        return len(grid), len(grid), len(grid)
    steps_before = int(np.searchsorted(steps, onset.earliest))
    low = int(np.searchsorted(grid, steps[steps_before - 1], side="right")) if steps_before else 0
    high = len(grid) if onset.latest is None else int(np.searchsorted(grid, onset.latest))
    return int(np.searchsorted(grid, onset.step)), low, high


def compare_rises(label: str, first: Curve, second: Curve, factor: float) -> Comparison | None:
    """Compare whether two curves complete half of their rise at steps that differ by less than a factor.

    The value is the margin in doublings of the step; None if one of the curves does not rise. A rise may have happened
    at any time since the previous evaluated step, so its interval begins there.
    """
    first_rise, second_rise = first.rise(), second.rise()
    if first_rise is None or second_rise is None:
        return None
    log_factor = np.log2(factor)
    unknown_end = 2 * max(first.steps[-1], second.steps[-1])  # replaces an unknown end, which is after the last step
    low = _doublings(first_rise.latest or unknown_end, second.before(second_rise.earliest))
    high = _doublings(first.before(first_rise.earliest), second_rise.latest or unknown_end)
    farthest = max(abs(low), abs(high))
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    value = log_factor - abs(_doublings(first_rise.step, second_rise.step))
    cases = min(first.cases, second.cases)
    is_tied = first_rise.step == second_rise.step and farthest >= log_factor
    return Comparison(
        label, value, log_factor - farthest, log_factor - nearest, "doublings of the step", cases, is_tied
    )


def _doublings(first: int, second: int) -> float:
    return float(np.log2((second + 1) / (first + 1)))


def compare_with_peak(label: str, curve: Curve) -> Comparison:
    """Compare how far the last value of a curve of shares is below its best earlier value.

    The best of many values is too high by chance, so the intervals of all differences are joint (Bonferroni).
    """
    z = NormalDist().inv_cdf(1 - 0.025 / (len(curve.values) - 1))
    earlier_values, last = curve.values[:-1], curve.values[-1]
    low, high = curves.difference_interval(earlier_values, np.full(len(earlier_values), last), curve.cases, z)
    return Comparison(
        label, float(earlier_values.max() - last), float(low.max()), float(high.max()), SCORE_UNIT, curve.cases
    )


def agreement_with_paper(first: Sequence[float], second: Sequence[float]) -> str:
    """Describe Spearman's rho between an order and the paper's, with interval and n (`agreement.rank_agreement`)."""
    agreement = rank_agreement(first, second)
    if agreement is None:
        return f"No rank agreement can be computed from n = {len(first)}."
    ends = f"{agreement.low:.2f} to {agreement.high:.2f}"
    return f"Spearman's rho with the paper's order {agreement.rho:.2f} ({ends}, n = {agreement.n})."
