"""Every figure draws steps at the same places, and marks the chosen one."""

import plotly.graph_objects as go
import pytest

from app.charts.step_axis import STEP_LINE, StepAxis
from embryo_core.curves import SCALES, STEP_0


def test_steps_lie_where_the_rule_of_the_axis_puts_them() -> None:
    """A linear axis has the steps themselves, a log axis a place for step 0 too."""
    assert StepAxis(8, "linear").values([0, 8, 16]) == [0, 8, 16]
    assert StepAxis(8, "log").values([0, 8, 16]) == [STEP_0, 8, 16]


@pytest.mark.parametrize("scale", SCALES)
def test_the_chosen_step_is_marked_by_the_line_that_the_time_bar_moves(scale) -> None:
    """One dotted line through the whole height, at the place of the chosen step."""
    axis = StepAxis(0, scale)
    (line,) = axis.draw(go.Figure(), [0, 8, 16]).layout.shapes
    assert line.name == STEP_LINE and line.x0 == line.x1 == axis.values([0])[0]
    assert not axis.set_range(go.Figure(), [0, 8, 16]).layout.shapes


@pytest.mark.parametrize("scale", SCALES)
def test_the_title_says_what_a_step_counts(scale) -> None:
    """The unit stands in the title, the scale is that of the axis."""
    axis = StepAxis(8, scale, unit="sequences").draw(go.Figure(), [0, 8]).layout.xaxis
    assert axis.title.text == "step (sequences)" and axis.type == scale


def test_one_checkpoint_has_an_axis() -> None:
    """A run that has just begun, at step 0."""
    for scale in SCALES:
        StepAxis(0, scale).draw(go.Figure(), [0])
