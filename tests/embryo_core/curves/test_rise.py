"""The paper's "faster": who rises from zero earlier, then who is steeper."""

import pytest

from embryo_core.curves import difference_interval
from embryo_core.curves.rise import Rise, Slope, ranks, rise

STEPS = (0, 100, 200, 400, 800)


def test_a_straight_rise_has_its_slope() -> None:
    """From the checkpoint before it leaves zero to nine tenths, in shares of the last value per step."""
    found = rise(STEPS, [0.0, 0.0, 0.2, 0.4, 0.4], [10_000] * 5)
    assert found.step == 200 and found.earliest == 200 and found.latest == 200
    assert found.slope.value == pytest.approx(1 / 300)  # from 0 at step 100 to the last value at step 400
    assert found.slope.low < found.slope.value < found.slope.high


def test_scale_does_not_matter() -> None:
    """A curve of half the height has the same slope."""
    one, half = (rise(STEPS, [0.0, 0.0, k * 0.1, k * 0.3, k * 0.4], [10**6] * 5) for k in (1, 0.5))
    assert one.step == half.step and one.slope.value == pytest.approx(half.slope.value)


def test_it_rises_at_a_tenth_of_its_last_value_and_is_up_at_nine_tenths() -> None:
    """Of 0.4 these are 0.04 and 0.36; the slope's interval is that of the difference, each share with its own cases."""
    n = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000]
    found = rise((0, 100, 200, 400, 800, 900, 1000), [0.0, 0.02, 0.06, 0.30, 0.34, 0.38, 0.4], n)
    low, high = difference_interval(0.38, 0.02, 60_000, n_second=20_000)
    scale = 0.4 * (900 - 100)
    assert found.step == 200 and found.slope.value == pytest.approx((0.38 - 0.02) / scale)
    assert (found.slope.low, found.slope.high) == pytest.approx((low / scale, high / scale), rel=1e-9)


def test_the_slope_begins_before_the_step_and_not_before_the_earliest() -> None:
    """None of 20 right may be chance, so that it may have risen at once; it is measured to rise from step 100."""
    found = rise(STEPS, [0.0, 0.0, 0.4, 0.4, 0.4], [20] * 5)
    assert (found.step, found.earliest) == (200, 0)
    assert found.slope.value == pytest.approx(1 / 100)


def test_what_is_there_from_the_first_step_has_no_slope() -> None:
    """And what ends at 0 does not rise."""
    assert rise(STEPS, [0.4] * 5, [10_000] * 5).slope is None
    assert rise(STEPS, [0.1, 0.2, 0.2, 0.1, 0.0], [10_000] * 5) is None


def risen(step: int, slope: float | None, reach: float = 0.1) -> Rise:
    return Rise(step, step, step, None if slope is None else Slope(slope, slope - reach, slope + reach))


def test_the_earlier_is_faster_and_then_the_steeper() -> None:
    """However steep the later one is."""
    assert ranks([risen(200, 9.0), risen(100, 0.5), risen(100, 2.0)]) == [3, 2, 1]


def test_slopes_that_cannot_be_told_apart_share_a_place() -> None:
    """The next place counts all of a tie; one below the interval of the steepest begins it."""
    assert ranks([risen(100, 1.0), risen(100, 1.15), risen(100, 0.9), risen(200, 1.0)]) == [1, 1, 3, 4]


def test_without_a_slope_a_curve_is_first_of_its_checkpoint() -> None:
    """Several of them share the place."""
    assert ranks([risen(0, 5.0), risen(0, None), risen(0, None)]) == [3, 1, 1]
