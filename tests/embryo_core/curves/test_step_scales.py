"""Tests of step scales: positions on an axis are Plotly's, and selected steps are evenly spaced on a log axis."""

import math

import numpy as np
import pytest

from embryo_core.curves import step_scales


def test_step_0_is_one_halving_before_step_1():
    """On a log axis 0, 1, 2, 4, ... are evenly spaced; on a linear axis every step is at its own value."""
    steps = [0, 1, 2, 4, 8, 16]
    np.testing.assert_allclose(step_scales.axis_shares(steps, "log"), np.linspace(0, 1, 6))
    assert step_scales.axis_values(steps, "linear").tolist() == steps
    np.testing.assert_array_equal(step_scales.axis_shares(steps, "linear"), np.divide(steps, 16))


@pytest.mark.parametrize("scale", step_scales.SCALES)
@pytest.mark.parametrize("steps", [[0, 1, 2, 1000, 20_000], [500, 1000, 1500], np.array([0, 50])])
def test_axis_shares_match_a_plotly_axis(scale, steps):
    """Plotly places x on a log axis by log10(x)."""
    drawn = [math.log10(x) if scale == "log" else x for x in step_scales.axis_values(steps, scale)]
    expected = [(x - drawn[0]) / (drawn[-1] - drawn[0]) for x in drawn]
    np.testing.assert_allclose(step_scales.axis_shares(steps, scale), expected, atol=1e-15, rtol=1e-12)


@pytest.mark.parametrize("scale", step_scales.SCALES)
@pytest.mark.parametrize("only", [0, 7])
def test_single_step_is_at_the_start_of_its_axis(scale, only):
    """A single checkpoint has no span to divide by."""
    assert step_scales.axis_shares([only], scale).tolist() == [0]


@pytest.mark.parametrize("steps", [range(0, 122_000, 122), range(1000), [0, *(2**k for k in range(60))], [7, 9, 40]])
@pytest.mark.parametrize("count", [2, 3, 32])
def test_log_spaced_steps_include_first_and_last(steps, count: int) -> None:
    """The steps ascend without repetition, gaps between many even steps grow, and few steps are all selected."""
    steps = list(steps)
    selected_steps = step_scales.log_spaced(steps, count)
    assert selected_steps[0] == steps[0] and selected_steps[-1] == steps[-1] and set(selected_steps) <= set(steps)
    assert len(selected_steps) <= count and (selected_steps == steps or len(selected_steps) > count * 0.75)
    if len(steps) >= 1000:
        gaps = np.diff([steps.index(step) for step in selected_steps])
        assert gaps.min() > 0 and (np.diff(gaps) >= -1).all()  # rounding to the nearest step may lose one


def test_log_spaced_steps_of_a_late_series_are_evenly_spaced() -> None:
    """Without step 0, the steps are spaced by their ratios, wherever the series begins."""
    steps = [1000 * 2**k for k in range(7)]
    assert step_scales.log_spaced(steps, 3) == [1000, 8000, 64_000]
    assert step_scales.log_spaced(steps, 4) == [1000, 4000, 16_000, 64_000]
