"""What every page is made of: the view and the one rule that chooses a step."""

import pytest

from app.charts.step_axis import StepAxis
from app.widgets import View


@pytest.mark.parametrize(
    ("chosen", "shown"), [(0, 4), (3, 4), (4, 4), (7, 4), (8, 8), (100, 16)], ids=lambda step: f"{step}"
)
def test_the_last_evaluated_step_up_to_the_chosen_one_is_shown(chosen: int, shown: int) -> None:
    """Before the first evaluated step, it is the first; steps come in any order and more than once."""
    assert View(None, (0, 4, 8, 16), chosen, "log").evaluated([8, 4, 16, 4]) == shown


def test_the_axis_of_a_view_is_that_of_its_step_and_scale() -> None:
    """Figures are handed the axis, not the step and the scale."""
    assert View(None, (0, 8), 8, "linear").axis == StepAxis(8, "linear")
