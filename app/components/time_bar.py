"""The time bar: play, a mark per checkpoint, linear or log steps; a component that runs in the page, not in a frame.

While the user drags or plays, the window hears `embryo:step` events ({detail: {step}}), so that whatever is drawn in
the browser follows without asking the server; the server hears of a step when the user lets go, or at the pace at
which it answers while playing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts.step_axis import STEP_LINE, StepAxis
from app.components.messages import field, member
from embryo_core.curves import SCALES, Scale, axis_shares, axis_values

HERE = Path(__file__).parent
KEY = "time_bar"

_component = st.components.v2.component(
    "embryo.time_bar",
    html=(HERE / "time_bar.html").read_text(encoding="utf-8"),
    css=(HERE / "time_bar.css").read_text(encoding="utf-8"),
    js=(HERE / "time_bar.js").read_text(encoding="utf-8"),
)


def time_bar(
    steps: Sequence[int],
    tokens: Sequence[int],
    axis: StepAxis,
    on_step: Callable[[int, bool], None],
    on_scale: Callable[[Scale], None],
) -> None:
    """Draw the bar for these checkpoints (tokens seen at each) along the axis that the figures below share.

    `on_step` gets the step that the user chose, and whether it is only passed through, as while playing.
    """

    def moved() -> None:
        message = st.session_state[KEY].step
        if (step := member(field(message, "step"), steps)) is not None:
            on_step(step, field(message, "passing") is True)

    def scaled() -> None:
        if scale := member(st.session_state[KEY].scale, SCALES, str):
            on_scale(scale)

    _component(
        key=KEY,
        data=bar_data(steps, tokens, axis),
        on_step_change=moved,
        on_scale_change=scaled,
    )


def bar_data(steps: Sequence[int], tokens: Sequence[int], axis: StepAxis) -> dict[str, Any]:
    """What the browser is given: for both scales where each step lies on the bar (0 to 1) and on a figure's axis."""
    return {
        "steps": list(steps),
        "tokens": list(tokens),
        "step": axis.chosen,
        "scale": axis.scale,
        "shares": {scale: axis_shares(steps, scale).tolist() for scale in SCALES},
        "values": {scale: axis_values(steps, scale).tolist() for scale in SCALES},
        "line": STEP_LINE,
    }
