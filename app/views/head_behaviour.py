"""The section "What a head does": one pattern in all heads, at the chosen step, over the steps, and its first step."""

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import LineChartColumn

from app import figures, notices, permalink, pickers, results
from app.tables import show_rows, steps_in_unit
from app.view import View
from embryo_core.figures import head_behaviour, patterns
from embryo_core.figures.head_behaviour import BASELINE_RULE, METRIC, Head, describe_rule
from embryo_core.figures.patterns import PATTERNS


def show(view: View) -> None:
    """Draw the section."""
    frame = results.head_scores(view.run)
    if frame.empty:
        message = f"What the heads of run '{view.run.name}' do has not been measured yet."
        notices.stop_uncomputed(view.run, METRIC, message)
    pattern, selected_head, change = _pick_pattern_and_head(view, frame)
    step = view.evaluated_step(frame["step"].unique())
    chosen: dict[str, Any] = {"pattern": pattern, "selected_head": selected_head}
    left, right = st.columns(2, gap="large")
    with left:
        figures.plot(view, head_behaviour.at_step, pickers.choose_head, True, **chosen, step=step)
    with right:
        st.header(view.axis.step_heading("Present since"), anchor=False)
        figures.plot(view, head_behaviour.presence, pickers.choose_head, **chosen, change=change)
    st.header("Over the steps", anchor=False)
    figures.plot(view, head_behaviour.over_steps, _choose_point, **chosen, change=change)
    _show_profile(view, frame, selected_head, step)


def _pick_pattern_and_head(view: View, frame: pd.DataFrame) -> tuple[str, Head, float | None]:
    """Pick and return a pattern, a head, and the change after which the pattern counts as present (see `Pattern`)."""
    measured_patterns = set(frame["what"])
    first_pattern, *first_head = results.strongest_head(view.run)
    names = {name: PATTERNS[name].label for name in PATTERNS if name in measured_patterns}
    pattern = pickers.pick_one(
        "pattern", "Pattern", names, first_pattern, segmented=True, then=partial(_choose_best, frame)
    )
    with pickers.row():
        selected_head = pickers.pick_head(int(frame["layer"].max()), int(frame["head"].max()), first_head)
        changes = {BASELINE_RULE if change is None else f"{change:+g}": change for change in PATTERNS[pattern].changes}
        first_step, unit = int(frame["step"].min()), view.run.step_unit
        options = sorted(changes, key=lambda option: abs(changes[option] or 0))
        rules = {option: describe_rule(option, first_step, unit) for option in options}
        option = pickers.pick_one("change", "Present once it has", rules, next(iter(changes)), width=300)
        pickers.pick_smoothing()
    return pattern, selected_head, changes[option]


def _choose_best(frame: pd.DataFrame, pattern: str) -> None:
    """Choose the head in which a pattern is strongest at the last step."""
    if best := patterns.strongest(frame, (pattern,)):
        pickers.choose_head(*best[1:])


def _show_profile(view: View, frame: pd.DataFrame, selected_head: Head, step: int) -> None:
    """Draw a table with a row for each pattern: the head's values over the steps, and when the pattern appears."""
    layer, head = selected_head
    st.header(f"All patterns of layer {layer}, head {head}", anchor=False)
    table, axis = patterns.profile(frame, layer, head, step), view.axis
    steps = {"first": frame["step"].min(), "now": step, "last": frame["step"].max()}
    # one column instead of two if the chosen step is also the first or the last
    step_columns = {number: name for name, number in steps.items()}.values()
    since_column = {"label": axis.step_heading("present since")}
    visible_table, since = steps_in_unit(
        table[["pattern", *step_columns, "history", "appears"]], axis, {"appears": since_column}
    )
    show_rows(
        visible_table,
        f"All patterns of layer {layer}, head {head}",
        f"profile_{layer}_{head}",
        lambda row: permalink.choose("pattern", table["what"].iloc[row]),
        {
            **{name: view.name_step(int(number)) for name, number in steps.items()},
            "history": LineChartColumn(
                "over the steps",
                help="One point per evaluated step; the axis spans the pattern's lowest and highest values in any head",
                y_min=0,
                y_max=1,
            ),
            **since,
        },
    )
    notices.show_caption("Click a row to see that pattern in all heads.")


def _choose_point(layer: int, head: int, step: int) -> None:
    permalink.choose_all(layer=layer, head=head, step=step)
