"""Tests of phases, which begin where fitted lines turn and are absent if no line turns."""

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest

from embryo_core.curves.phases import MIN_DISTANCE, MIN_POINTS, Phase, _interval, _Lines, phases, phases_of_log

STEPS = [2**power for power in range(16)]
KNOTS = [0, 3, 6, 10, 12, 15]  # a start, a fall, a plateau, a take-off, and slower again


def loss(falls: list[float], knots: list[int], noise: float = 0.01) -> np.ndarray:
    """Return a loss that falls by given amounts per doubling between knots, with a little noise."""
    line = 9 - np.interp(range(16), knots, np.concatenate([[0], np.cumsum(np.diff(knots) * falls)]))
    return line + np.random.default_rng(1).normal(0, noise, 16)


def test_planted_phases_are_found_where_they_begin() -> None:
    """The interval of each phase's start contains it."""
    detected = phases(STEPS, loss([0, 1, 0.05, 1.2, 0.1], KNOTS))
    assert [phase.name for phase in detected] == ["start", "first fall", "plateau", "take-off", "later plateau"]
    assert [phase.start for phase in detected] == [STEPS[knot] for knot in KNOTS[:-1]]
    assert [phase.end for phase in detected] == [STEPS[knot] for knot in KNOTS[1:]]
    assert all(phase.earliest <= phase.start <= phase.latest for phase in detected)


def test_finished_run_has_all_six_phases() -> None:
    """A learning rate that decays at the end makes the loss fall once more, and the take-off is still found."""
    knots, steps = [0, 3, 6, 11, 13, 17, 20], [2**power for power in range(21)]
    line = 9 - np.interp(range(21), knots, np.cumsum([0, *np.diff(knots) * [0, 1, 0.2, 0.6, 0.05, 0.4]]))
    detected = phases(steps, line + np.random.default_rng(1).normal(0, 0.01, 21))
    named = ["start", "first fall", "plateau", "take-off", "later plateau", "later fall"]
    assert [phase.name for phase in detected] == named
    assert [phase.start for phase in detected] == [steps[knot] for knot in knots[:-1]]


def test_run_without_take_off_ends_in_a_plateau() -> None:
    """The loss falls once and then continues slowly."""
    detected = phases(STEPS, loss([0, 1, 0.05], [0, 3, 6, 15]))
    assert [phase.name for phase in detected] == ["start", "first fall", "plateau"]


def test_late_fall_of_three_points_is_found() -> None:
    """The learning rate of the demo's runs falls over the last fifth of the steps, which is a third of a doubling."""
    doublings = np.arange(100) / 6
    steps = np.unique(np.round(2**doublings))[-90:]
    knots = [0, 6.5, 8, 11.5, 12.5, 16.2, 16.5]
    line = 9 - np.interp(np.log2(steps), knots, np.cumsum([0, *np.diff(knots) * [0, 1.2, 0.25, 1, 0.15, 1]]))
    detected = phases(steps.tolist(), line + np.random.default_rng(1).normal(0, 0.02, len(steps)))
    assert [phase.name for phase in detected][-3:] == ["take-off", "later plateau", "later fall"]
    assert detected[-1].start == steps[-3] and detected[-1].earliest <= 2**16.2 <= detected[-1].latest


def test_plateau_may_fall_faster_than_the_mean() -> None:
    """The mean fall per doubling is small if the start is long."""
    knots = [0, 8, 10, 14, 15, 18]
    line = 9 - np.interp(range(19), knots, np.cumsum([0, *np.diff(knots) * [0, 1, 0.3, 1, 0.1]]))
    detected = phases([2**power for power in range(19)], line + np.random.default_rng(1).normal(0, 0.01, 19))
    assert (line[0] - line[-1]) / 18 < 0.3
    assert [phase.name for phase in detected] == ["start", "first fall", "plateau", "take-off", "later plateau"]


def test_loss_that_hardly_turns_has_no_phases() -> None:
    """No stretch is much faster than the whole run."""
    assert phases(STEPS, loss([0.5, 0.55], [0, 8, 15], 0.001)) == []


@pytest.mark.parametrize("seed", range(5))
def test_search_ends_for_extremely_close_or_distant_steps(seed) -> None:
    """The phases that are found follow one another without gaps."""
    draw = np.random.default_rng(seed)
    for steps in (10**12 + np.arange(40), np.r_[1:9, 10**6 + np.arange(40)], np.unique(draw.integers(1, 2**40, 40))):
        detected = phases(steps.tolist(), draw.normal(0, 1, len(steps)).cumsum())
        assert all(one.end == other.start for one, other in pairwise(detected))


@pytest.mark.parametrize("count", range(MIN_POINTS, 20))
def test_short_logs_have_phases(count) -> None:
    """A transformers Trainer, for example, may log ten losses; the last phase ends at the last step."""
    steps = 500 * np.arange(1, count + 1)
    assert phases(steps.tolist(), 7 - np.arange(count) / 10)[-1].end == steps[-1]


@pytest.mark.parametrize("fall", [0.0, 0.3, -0.3])
def test_straight_line_has_no_phases(fall) -> None:
    assert phases(STEPS, 9 - fall * np.arange(16.0)) == []


def test_rising_loss_has_no_phases() -> None:
    """A diverging run does not learn."""
    assert phases(STEPS, loss([0, -1, 0], [0, 5, 10, 15])) == []


@pytest.mark.parametrize("seed", [0, 1, 2, 39, 49, 51])  # some are found only upwards, the last three downwards
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_best_line_equals_that_of_an_exhaustive_search(count, seed) -> None:
    """The exhaustive search solves least squares for every choice of breakpoints."""
    points, values = np.arange(14.0), np.random.default_rng(seed).normal(0, 1, 14).cumsum()
    squares = {}
    for turns in combinations(range(MIN_DISTANCE, 14 - MIN_DISTANCE), count):
        if all(b - a >= MIN_DISTANCE for a, b in pairwise(turns)):
            columns = [np.ones(14), points, *(np.where(points > turn, points - turn, 0) for turn in turns)]
            squares[turns] = float(np.linalg.lstsq(np.stack(columns, axis=1), values)[1][0])
    lines = _Lines(points)
    turns = lines.fits(values)[count][0]
    assert tuple(turns) == min(squares, key=squares.get)
    assert ((values - lines.line(values, turns)) ** 2).sum() == pytest.approx(squares[tuple(turns)])


def test_interval_of_a_turn_uses_the_nearest_breakpoints() -> None:
    """One breakpoint of each resample counts: the nearest, whatever its position among the others."""
    draw = np.random.default_rng(0)
    moved = np.sort(draw.normal(0, 4, (400, 3)), axis=1)
    low, high = _interval(moved, 1.5)
    nearest = sorted(min(row, key=lambda turn: abs(turn - 1.5)) for row in moved.tolist())
    assert (low, high) == (nearest[10], nearest[389])  # of 0 to 399, the places nearest to 2.5 and 97.5 %


def test_log_without_held_out_loss_uses_the_training_loss() -> None:
    """Rows without a loss are left out, and so is step 0, which has no logarithm."""
    rows = {"step": [0, *STEPS, 99], "masked_lm_loss": [9.0, *loss([0, 1, 0.05], [0, 3, 6, 15]), np.nan]}
    detected = phases_of_log(pd.DataFrame(rows).assign(split="train"))
    assert detected == phases(STEPS, rows["masked_lm_loss"][1:-1])
    assert phases_of_log(pd.DataFrame()) == []


def test_phases_of_a_long_log_cover_the_whole_run() -> None:
    """Long logs are averaged; the phases run from the first step to the last without gaps."""
    steps = np.arange(1, 3001)
    values = np.interp(np.log2(steps), [0, 4, 8, 11.6], [9, 9, 5, 4.9])
    detected = phases(steps.tolist(), values)
    assert isinstance(detected[0], Phase) and (detected[0].start, detected[-1].end) == (1, 3000)
    assert all(one.end == other.start for one, other in pairwise(detected))
    assert [phase.name for phase in detected] == ["start", "first fall", "plateau"]


def test_intervals_cover_a_turn_between_two_measured_steps() -> None:
    """At least 90 % of the intervals contain the take-off, which is drawn between steps in 40 curves."""
    held, take_off_count = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        knots = [0, 3, 6, rng.uniform(9, 10), 12.5, 15]
        falls = [0, 1, 0.05, 1.2, 0.1]
        line = 9 - np.interp(range(16), knots, np.concatenate([[0], np.cumsum(np.diff(knots) * falls)]))
        named = {phase.name: phase for phase in phases(STEPS, line + rng.normal(0, 0.02, 16))}
        if "take-off" in named:
            take_off_count, held = (
                take_off_count + 1,
                held + (named["take-off"].earliest <= 2 ** knots[3] <= named["take-off"].latest),
            )
    assert take_off_count >= 36 and held >= 0.9 * take_off_count
