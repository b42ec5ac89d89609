"""The paper's "faster": who rises from zero earlier, then who is steeper."""

import pytest

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
