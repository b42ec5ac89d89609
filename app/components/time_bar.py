"""The time bar: play, a mark per checkpoint, linear or log steps; a component that runs in the page, not in a frame.

While the user drags or plays, the window hears `embryo:step` events ({detail: {step}}), so that whatever is drawn in
the browser follows without asking the server; the server hears of a step when the user lets go, or at the pace at
which it answers while playing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
KEY = "time_bar"
SCALES = ("linear", "log")

_component = st.components.v2.component(
    "embryo.time_bar",
    html=(HERE / "time_bar.html").read_text(encoding="utf-8"),
    css=(HERE / "time_bar.css").read_text(encoding="utf-8"),
    js=(HERE / "time_bar.js").read_text(encoding="utf-8"),
)


def time_bar(
    steps: Sequence[int],
    tokens: Sequence[int],
    step: int,
    scale: str,
    on_step: Callable[[int, bool], None],
    on_scale: Callable[[str], None],
) -> None:
    """Draw the bar for these checkpoints (tokens seen at each) with one of them chosen.

    `on_step` gets the step that the user chose, and whether it is only passed through, as while playing.
    """

    def moved() -> None:
        if (chosen := st.session_state[KEY].step)["step"] in steps:
            on_step(chosen["step"], chosen["passing"])

    def scaled() -> None:
        if (chosen := st.session_state[KEY].scale) in SCALES:
            on_scale(chosen)

    _component(
        key=KEY,
        data={"steps": list(steps), "tokens": list(tokens), "step": step, "scale": scale},
        on_step_change=moved,
        on_scale_change=scaled,
    )
