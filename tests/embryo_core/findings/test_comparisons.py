"""Tests that each kind of comparison agrees with its definition, computed the long way."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from embryo_core import curves
from embryo_core.findings.comparisons import agreement_with_paper, compare_onsets, compare_rises, compare_with_peak
from embryo_core.findings.evidence import Curve
from tests.embryo_core.findings.conftest import STEPS, N, risen

RNG = np.random.default_rng(2020)


def curve(values, n=N) -> Curve:
    """Return a curve over STEPS."""
    return Curve(np.array(STEPS), np.array(values, float), np.full(len(STEPS), n))


def onsets(*all_curves: Curve):
    """Return the onsets of curves."""
    return tuple(curve.onset() for curve in all_curves)


# === Earlier ===


def test_comparison_counts_checkpoints_between_onsets():
    """There are three checkpoints from step 2 to step 16; exchanging the curves changes the sign."""
    first, second = curve(risen(2)), curve(risen(16))
    comparison = compare_onsets("a before b", first, second, onsets(first, second))
    assert (comparison.value, comparison.low, comparison.high) == (3, 3, 3) and comparison.holds and comparison.n == N
    back = compare_onsets("b before a", second, first, onsets(second, first))
    assert back.value == -3 and back.opposed


def test_checkpoints_are_those_of_either_curve():
    """Between the onsets at 2 and 16 one curve has step 8 and the other step 4; n is the smaller last n.

    The second curve may have its onset at step 8, where it was not evaluated.
    """
    first = Curve(np.array([0, 2, 8, 128]), np.array([0, 0.8, 0.8, 0.8]), np.array([9_000, 9_000, 9_000, 8_000]))
    second = Curve(np.array([0, 4, 16, 128]), np.array([0, 0, 0.8, 0.8]), np.array([50, 50, 50, 5_000]))
    for one, two, ends in ((first, second, (3, 2, 3)), (second, first, (-3, -3, -2))):
        comparison = compare_onsets("", one, two, onsets(one, two))
        assert (comparison.value, comparison.low, comparison.high, comparison.n) == (*ends, 5_000)
        assert compare_rises("", one, two, factor=2).n == 5_000


def test_fewer_steps_of_one_curve_do_not_decide_the_order():
    """A curve evaluated at 0 and 1000 alone may have its onset before the other one's at 500."""
    rare = Curve(np.array([0, 1000]), np.array([0, 0.8]), np.full(2, N))
    steps = np.arange(0, 1001, 100)
    often = Curve(steps, np.where(steps < 500, 0, 0.8), np.full(len(steps), N))
    comparison = compare_onsets("", rare, often, onsets(rare, often))
    assert (comparison.value, comparison.low, comparison.high) == (-5, -5, 4)


def test_interval_of_a_comparison_spans_the_ends_of_both_onsets():
    """With few cases the onsets are uncertain; the interval goes from the nearest ends to the farthest."""
    for _ in range(50):
        first, second = (curve(np.sort(RNG.random(len(STEPS))), n=30) for _ in range(2))
        one, two = onsets(first, second)
        comparison = compare_onsets("", first, second, (one, two))
        index = {step: i for i, step in enumerate(STEPS)} | {None: len(STEPS)}
        assert comparison.low == index[two.earliest] - index[one.latest]
        assert comparison.high == index[two.latest] - index[one.earliest]


def test_curve_never_acquired_comes_last():
    """A curve that ends at 0 comes after the last step; two such curves are not compared."""
    first, never = curve(risen(16)), curve([0] * len(STEPS))
    assert compare_onsets("", first, never, onsets(first, never)).low == len(STEPS) - STEPS.index(16)
    assert compare_onsets("", never, never, onsets(never, never)) is None


# === Together ===


@pytest.mark.parametrize(("first", "second", "side"), [(16, 16, "holds"), (2, 64, "opposed"), (64, 2, "opposed")])
def test_curves_rise_together_within_the_factor(first: int, second: int, side: str):
    """Two curves that rise at the same step hold; five doublings apart, in either order, they are opposed."""
    comparison = compare_rises("", curve(risen(first, 0.4)), curve(risen(second, 0.4)), factor=2)
    assert getattr(comparison, side)
    assert comparison.value == pytest.approx(1 - abs(np.log2((second + 1) / (first + 1))))


def test_interval_of_joint_rises_spans_all_pairs_of_steps():
    """With few cases both rises are uncertain; the ends are the extremes over all pairs of possible steps."""
    for _ in range(200):
        first, second = (curve([0.4, *np.sort(RNG.uniform(0.4, 0.7, len(STEPS) - 1))], n=60) for _ in range(2))
        comparison = compare_rises("", first, second, factor=2)
        if comparison is None:
            continue
        before = dict(zip(STEPS[1:], STEPS)) | {STEPS[0]: STEPS[0]}  # a rise may be at any step after it
        ends = [(before[rise.earliest], rise.latest or 256) for rise in (first.rise(), second.rise())]
        between = [[step for step in (*range(129), 256) if low <= step <= high] for low, high in ends]
        spare = [
            1 - abs(np.log2((second_step + 1) / (first_step + 1)))
            for first_step in between[0]
            for second_step in between[1]
        ]
        assert (
            comparison.low == pytest.approx(min(spare)) and comparison.low <= comparison.value <= comparison.high <= 1
        )
        if not set(between[0]) & set(between[1]):
            assert comparison.high == pytest.approx(max(spare))


def test_rises_at_one_step_after_a_gap_are_tied():
    """Nothing was evaluated between steps 8 and 128, so one curve may rise four doublings after the other."""
    steps, n = np.array([0, 8, 128, 256]), np.full(4, N)
    late = Curve(steps, np.array([0.4, 0.4, 0.9, 0.9]), n)
    comparison = compare_rises("", late, late, factor=2)
    assert comparison.tied and not comparison.holds and not comparison.opposed
    assert not compare_rises("", curve(risen(16, 0.4)), curve(risen(16, 0.4)), factor=2).tied


def test_curve_that_does_not_rise_is_not_compared():
    """A rise is measured from the value at step 0, whereas an onset is measured from 0."""
    level = curve([0.5] * len(STEPS))
    assert compare_rises("", level, curve(risen(8)), factor=2) is None
    assert curve(risen(8, low=0.5)).rise().step == 8 and curve(risen(8, low=0.5)).onset().step == 0


# === Fallen ===


def test_fall_is_tested_simultaneously_over_all_steps():
    """The reference is Newcombe's interval for each step, whose error of 5 % is divided by the number of steps."""
    from scipy.stats import norm

    for _ in range(50):
        values = RNG.random(len(STEPS)).round(2)
        comparison = compare_with_peak("", curve(values, n=200))
        z = norm.ppf(1 - 0.025 / (len(STEPS) - 1))
        ends = [_newcombe(value, values[-1], 200, z) for value in values[:-1]]
        assert comparison.low == pytest.approx(max(low for low, _ in ends))
        assert comparison.high == pytest.approx(max(high for _, high in ends))
        assert comparison.value == pytest.approx(max(values[:-1]) - values[-1])


def test_rising_curve_opposes_a_fall():
    """The last value is significantly above every earlier one."""
    assert compare_with_peak("", curve(np.linspace(0, 0.9, len(STEPS)))).opposed
    assert compare_with_peak("", curve([*np.linspace(0, 0.9, len(STEPS) - 1), 0.5])).holds


def test_noise_seldom_counts_as_a_fall():
    """Of 300 constant curves counted on 100 cases at most 10 % have fallen, although each uses its worst step."""
    falls = [compare_with_peak("", curve(RNG.binomial(100, 0.5, len(STEPS)) / 100, n=100)).holds for _ in range(300)]
    assert sum(falls) <= 30


def _newcombe(first: float, second: float, n: int, z: float) -> tuple[float, float]:
    (a, b), (c, d) = ([float(end) for end in curves.interval(share, n, z)] for share in (first, second))
    difference = first - second
    return (
        difference - ((first - a) ** 2 + (d - second) ** 2) ** 0.5,
        difference + ((b - first) ** 2 + (second - c) ** 2) ** 0.5,
    )


# === Ranks ===


def test_agreement_with_paper_is_spearmans_rho():
    """The reference is scipy's rho on tied ranks."""
    for _ in range(50):
        first, second = RNG.integers(0, 6, 9), RNG.integers(0, 6, 9)
        rho = spearmanr(first, second).statistic
        assert f"order {rho:.2f} (" in agreement_with_paper(first, second)


def test_agreement_needs_four_ranks_and_an_order():
    """The sentence then gives only n, as for three items or for ranks that are all equal."""
    assert "n = 3" in agreement_with_paper([1, 2, 3], [1, 2, 3])
    assert "n = 5" in agreement_with_paper([1] * 5, range(5))
