"""What a head does: any score of every head at one step and over all, and since when each pattern is present."""

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.tables import show_rows
from app.view import View
from embryo_core.figures import head_behaviour as charts
from embryo_core.figures import patterns
from embryo_core.figures.captions import head_behaviour as captions
from embryo_core.figures.patterns import PATTERNS
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.words import headed

METRIC = "head_behaviour"
Head = tuple[int, int]  # layer and head, both from 1


def show(view: View) -> None:
    """Draw the section."""
    frame = results.head_scores(view.run)
    if frame.empty:
        message = f"What the heads of run '{view.run.name}' do has not been measured yet."
        widgets.stop_uncomputed(view.run, METRIC, message)
    what, chosen, change = _pick(view, frame)
    step = view.evaluated(frame["step"].unique())
    left, right = st.columns(2, gap="large")
    with left:
        _at_step(view, frame, what, step, chosen)
    with right:
        _since(view, frame, what, change, chosen)
    _over_steps(view, frame, what, change, chosen)
    _one_head(view, frame, chosen, step)


def _pick(view: View, frame: pd.DataFrame) -> tuple[str, Head, float | None]:
    """A pattern, a head, and the change by which the pattern counts as present (None: see `Pattern`)."""
    measured = set(frame["what"])
    usual, layer, head = results.strongest_head(view.run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        options = [name for name in PATTERNS if name in measured]
        what = pickers.pick_one("pattern", "Pattern", options, usual, lambda name: PATTERNS[name].label, width=240)
        layer = pickers.pick_layer(int(frame["layer"].max()), layer)
        head = pickers.pick_head(int(frame["head"].max()), head)
        changes = {captions.BASELINE if change is None else f"{change:+g}": change for change in PATTERNS[what].changes}
        options = sorted(changes, key=lambda option: abs(changes[option] or 0))
        first = int(frame["step"].min())
        option = pickers.pick_one(
            "change",
            "Present once it has",
            options,
            next(iter(changes)),
            lambda option: captions.change(option, first, view.run.step_unit),
            width=300,
        )
        pickers.pick_smoothing()
    return what, (layer, head), changes[option]


def _at_step(view: View, frame: pd.DataFrame, what: str, step: int, chosen: Head) -> None:
    rows = patterns.of_pattern(frame, what)
    here = rows[rows["step"] == step]
    note = results.note(view.run, METRIC, f"{here['n'].max():,} cases")
    st.header(f"{PATTERNS[what].label}, {view.point(step)}", anchor=False)
    figures.show_plot(
        charts.value_figure(rows, what, step, chosen),
        here.assign(pattern=what),
        f"{view.run.name}-{what}-heads",
        captions.value(PATTERNS[what], note, here),
        f"{PATTERNS[what].label}, {view.point(step)}",
        view,
        METRIC,
        on_point=pickers.choose_head,
        at=f"step{step}",
    )


def _since(view: View, frame: pd.DataFrame, what: str, change: float | None, chosen: Head) -> None:
    since = patterns.appearances(frame, what, change)
    st.header(headed("Present since", view.run.step_unit), anchor=False)
    figures.show_plot(
        charts.appearance_figure(since, sorted(set(frame["step"])), chosen, view.run.step_unit),
        since.assign(pattern=what, change=captions.BASELINE if change is None else change),
        f"{view.run.name}-{what}-since",
        captions.presence(frame, change, since, view.run.step_unit),
        f"{PATTERNS[what].label}: {headed('present since', view.run.step_unit)}",
        view,
        METRIC,
        on_point=pickers.choose_head,
    )


def _over_steps(view: View, frame: pd.DataFrame, what: str, change: float | None, chosen: Head) -> None:
    rows = with_smoothed(patterns.of_pattern(frame, what), "value", view.smoothing, ["layer", "head"])
    st.header("Over the steps", anchor=False)
    figures.show_plot(
        charts.curves_figure(rows, patterns.baseline(frame), what, change, chosen, view.axis),
        rows.assign(pattern=what),
        f"{view.run.name}-{what}",
        captions.over_steps(rows, chosen),
        f"{PATTERNS[what].label} of each head over the steps",
        view,
        METRIC,
        on_point=_point_chosen,
    )


def _one_head(view: View, frame: pd.DataFrame, chosen: Head, step: int) -> None:
    layer, head = chosen
    st.header(f"All patterns of layer {layer}, head {head}", anchor=False)
    table = patterns.profile(frame, layer, head, step)
    steps = {"first": frame["step"].min(), "now": step, "last": frame["step"].max()}
    shown = {number: name for name, number in steps.items()}.values()  # the chosen step may be the first or the last
    show_rows(
        table[["pattern", *shown, "history", "appears"]],
        f"profile_{layer}_{head}",
        lambda row: permalink.choose("pattern", table["what"].iloc[row]),
        {
            **{name: view.point(int(number)) for name, number in steps.items()},
            "history": st.column_config.LineChartColumn(
                "over the steps",
                help="A point per evaluated step, from the pattern's lowest value in any head to its highest",
                y_min=0,
                y_max=1,
            ),
            "appears": st.column_config.NumberColumn(
                headed("present since", view.run.step_unit), format="localized"
            ),
        },
    )
    widgets.show_caption("Click a row to see that pattern in all heads.")


# === What a click chooses ===


def _point_chosen(layer: int, head: int, step: int) -> None:
    pickers.choose_head(layer, head)
    permalink.choose("step", step)
