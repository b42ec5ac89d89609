"""Tests of the paper's "faster": the curve that rises from zero earlier or, at the same step, more steeply."""

import pytest

from embryo_core.curves import difference_interval
from embryo_core.curves.rise import Rise, Slope, ranks, rise

STEPS = (0, 100, 200, 400, 800)


def test_straight_rise_has_its_slope() -> None:
    """The slope runs from the checkpoint before the rise to nine tenths, in shares of the last value per step."""
    steep = rise(STEPS, [0.0, 0.0, 0.2, 0.4, 0.4], [10_000] * 5)
    assert steep.step == 200 and steep.earliest == 200 and steep.latest == 200
    assert steep.slope.value == pytest.approx(1 / 300)  # from 0 at step 100 to the last value at step 400
    assert steep.slope.low < steep.slope.value < steep.slope.high


def test_scale_does_not_change_the_slope() -> None:
    """The two curves differ by a factor of two."""
    one, half = (rise(STEPS, [0.0, 0.0, k * 0.1, k * 0.3, k * 0.4], [10**6] * 5) for k in (1, 0.5))
    assert one.step == half.step and one.slope.value == pytest.approx(half.slope.value)


def test_rise_runs_from_one_tenth_to_nine_tenths() -> None:
    """Of 0.4 these are 0.04 and 0.36; the slope's interval is that of the difference, each share with its own n."""
    n = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000]
    result = rise((0, 100, 200, 400, 800, 900, 1000), [0.0, 0.02, 0.05, 0.30, 0.34, 0.38, 0.4], n)
    low, high = difference_interval(0.38, 0.02, 60_000, n_second=20_000)
    scale = 0.4 * (900 - 100)
    assert result.step == 200 and result.slope.value == pytest.approx((0.38 - 0.02) / scale)
    assert (result.slope.low, result.slope.high) == pytest.approx((low / scale, high / scale), rel=1e-9)


def test_slope_begins_at_the_checkpoint_before_the_rise() -> None:
    """With 20 cases, 0 right may be chance, so the rise may be as early as 0; the slope still begins at step 100."""
    result = rise(STEPS, [0.0, 0.0, 0.4, 0.4, 0.4], [20] * 5)
    assert (result.step, result.earliest) == (200, 0)
    assert result.slope.value == pytest.approx(1 / 100)


def test_curve_without_a_start_at_zero_has_no_slope() -> None:
    """The curve is at its last value from the first step; one that ends at 0 does not rise at all."""
    assert rise(STEPS, [0.4] * 5, [10_000] * 5).slope is None
    assert rise(STEPS, [0.1, 0.2, 0.2, 0.1, 0.0], [10_000] * 5) is None


def risen(step: int, slope: float | None, reach: float = 0.1) -> Rise:
    return Rise(step, step, step, None if slope is None else Slope(slope, slope - reach, slope + reach))


def test_ranks_compare_the_step_before_the_slope() -> None:
    """A later curve is slower, however steep it is."""
    assert ranks([risen(200, 9.0), risen(100, 0.5), risen(100, 2.0)]) == [3, 2, 1]


def test_slopes_within_an_interval_share_a_rank() -> None:
    """The next rank counts all tied curves; it begins with the first slope below the interval of the steepest."""
    assert ranks([risen(100, 1.0), risen(100, 1.15), risen(100, 0.9), risen(200, 1.0)]) == [1, 1, 3, 4]


def test_wide_interval_shares_the_rank_of_the_steepest() -> None:
    """It does so although a curve between them is clearly slower than the steepest."""
    assert ranks([risen(100, 10.0, 1), risen(100, 6.0, 0.5), risen(100, 5.0, 4.5)]) == [1, 3, 1]


def test_curve_without_a_slope_is_first_at_its_checkpoint() -> None:
    """Several of them share the rank."""
    assert ranks([risen(0, 5.0), risen(0, None), risen(0, None)]) == [3, 1, 1]
