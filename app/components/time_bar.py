"""The time bar: play, a mark per checkpoint, linear or log steps; a component that runs in the page, not in a frame.

At each step, the bar dispatches the window event `embryo:step` ({detail: {step}}) and sets `window.embryoStep`, so that
everything drawn in the browser follows without a request. The server receives a step when the user releases the handle
or, while playing, as fast as it answers; parts of the page that it has yet to redraw are dimmed.
"""

from collections.abc import Callable, Collection, Sequence

import streamlit as st

from app.components.messages import field, member, message_of
from embryo_core.browser.component import TIME_BAR
from embryo_core.browser.time_bar import bar_data
from embryo_core.curves.phases import Phase
from embryo_core.curves.step_scales import SCALES, Scale
from embryo_core.curves.turns import Stretch
from embryo_core.figures.axis import StepAxis
from embryo_core.types import Checkpoint

KEY = "time_bar"  # Streamlit key of the component

_component = st.components.v2.component("embryo.time_bar", html=TIME_BAR.html, css=TIME_BAR.css, js=TIME_BAR.js)


def time_bar(
    checkpoints: Sequence[Checkpoint],
    step: int,
    axis: StepAxis,
    phases: Sequence[Phase | Stretch],
    on_step: Callable[[int, bool], None],
    on_scale: Callable[[Scale], None],
    stops: Collection[int] = (),
) -> None:
    """Draw the bar for these checkpoints, at a `step`, on the axis that the figures below share.

    The `phases` of the run are named below its marks. `on_step` is called with the chosen step, and with whether the
    bar only passes it while playing. Playing shows the steps in `stops`, or all steps if `stops` is empty.
    """

    steps = [checkpoint.step for checkpoint in checkpoints]

    def moved() -> None:
        message = message_of(KEY, "step")
        if (chosen := member(field(message, "step"), steps)) is not None:
            on_step(chosen, field(message, "passing") is True)

    def scaled() -> None:
        if scale := member(message_of(KEY, "scale"), SCALES, str):
            on_scale(scale)

    _component(
        key=KEY,
        data=bar_data(checkpoints, step, axis, phases, stops),
        on_step_change=moved,
        on_scale_change=scaled,
    )
