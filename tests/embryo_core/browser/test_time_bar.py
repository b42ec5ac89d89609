"""Tests of the time bar: its positions agree with the axes of the figures."""

import numpy as np
import pytest

from embryo_core.browser.time_bar import WHOLE, bar_data
from embryo_core.curves.phases import Phase
from embryo_core.curves.step_scales import SCALES
from embryo_core.figures.axis import StepAxis
from embryo_core.types import Change, Checkpoint, StepUnit

STEPS = [0, 1, 8, 700]
CHECKPOINTS = [Checkpoint(None, step, None, 0, 10 * step, 0, has_weights=step != 8) for step in STEPS]


@pytest.mark.parametrize("scale", SCALES)
def test_marks_have_the_positions_of_figure_points(scale) -> None:
    """A mark's share of the bar, to half a unit, is that of its point between the ends of a figure."""
    data = bar_data(CHECKPOINTS, 8, StepAxis("log", step_unit=StepUnit.UPDATES))
    x = np.array(StepAxis(scale, step_unit=StepUnit.UPDATES).values(STEPS))
    x = np.log10(x) if scale == "log" else x  # as Plotly draws it
    expected = (x - x[0]) / (x[-1] - x[0])
    assert data["whole"] == WHOLE >= 10_000  # finer than the pixels of any screen
    np.testing.assert_allclose(np.divide(data["places"][scale], WHOLE), expected, rtol=0, atol=0.5001 / WHOLE)
    assert data["values"][scale] == StepAxis(scale, step_unit=StepUnit.UPDATES).values(STEPS)


def test_bar_has_the_chosen_step_and_scale() -> None:
    """The browser first draws what the page was opened with."""
    data = bar_data(CHECKPOINTS, 8, StepAxis("linear", step_unit=StepUnit.UPDATES))
    assert (data["step"], data["scale"], data["steps"]) == (8, "linear", STEPS)
    assert data["tokens"] == [0, 10, 80, 7000]


def test_playing_stops_at_steps_with_data() -> None:
    """If no step with data is a checkpoint, playing stops at every checkpoint."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    assert bar_data(CHECKPOINTS, 8, axis, stops={700, 1, 9})["stops"] == [1, 700]
    assert bar_data(CHECKPOINTS, 8, axis)["stops"] == bar_data(CHECKPOINTS, 8, axis, stops={9})["stops"] == STEPS


def test_checkpoints_without_weights_are_hollow() -> None:
    """The browser receives the steps that have only results."""
    assert bar_data(CHECKPOINTS, 8, StepAxis("linear", step_unit=StepUnit.UPDATES))["hollow"] == [8]


@pytest.mark.parametrize("scale", SCALES)
def test_change_of_training_has_the_position_of_its_step(scale) -> None:
    """A change after the last checkpoint is left out."""
    changes = (Change(8, "corpus: domain.txt"), Change(701, "learning rate falls"))
    data = bar_data(CHECKPOINTS, 8, StepAxis(scale, changes, step_unit=StepUnit.UPDATES))
    (mark,) = data["changes"]
    assert mark["what"] == "step 8: corpus: domain.txt"
    assert mark["places"][scale] == data["places"][scale][STEPS.index(8)]


@pytest.mark.parametrize("scale", SCALES)
def test_phases_reach_between_the_marks_of_their_steps(scale) -> None:
    """A phase that ends after the last checkpoint reaches to its mark; one that begins after it is left out."""
    phases = [Phase("start", 0, 0, 0, 8, 0.0), Phase("first fall", 8, 4, 16, 900, 1.0)]
    phases.append(Phase("plateau", 900, 800, 950, 999, 0.1))
    data = bar_data(CHECKPOINTS, 8, StepAxis(scale, step_unit=StepUnit.UPDATES), phases)
    assert [phase["name"] for phase in data["phases"]] == ["start", "first fall"]
    of_8 = data["places"][scale][STEPS.index(8)]
    assert data["phases"][0]["places"][scale] == [0, of_8]
    assert data["phases"][1]["places"][scale] == [of_8, WHOLE]
    assert data["phases"][1]["what"] == "first fall: steps 8 to 900"


def test_bar_names_its_unit() -> None:
    """Changes, phases and the reading of the browser name the words; updates need no unit."""
    axis = StepAxis("linear", (Change(8, "corpus: domain.txt"),), step_unit=StepUnit.WORDS)
    data = bar_data(CHECKPOINTS, 8, axis, [Phase("start", 0, 0, 0, 8, 0.0)])
    assert data["counted"] == "words" and data["changes"][0]["what"] == "8 words: corpus: domain.txt"
    assert data["phases"][0]["what"] == "start: 0 to 8 words"
    assert bar_data(CHECKPOINTS, 8, StepAxis("linear", step_unit=StepUnit.UPDATES))["counted"] == ""
