"""What a head does: any score of every head, at one step and over all, and since when each pattern is there (Section 4)."""

from typing import Any

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import head_behaviour as charts
from app.charts.head_behaviour import PATTERNS
from app.widgets import View

METRIC = "head_behaviour"


def show(view: View) -> None:
    """Draw the section."""
    frame = results.head_scores(view.run)
    if frame.empty:
        widgets.stop(
            f"What the heads of run '{view.run.name}' do has not been measured yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC} --treebank PATH",
        )
    measured = set(frame["what"])
    columns = st.columns([2, 1, 1, 2], vertical_alignment="bottom")
    with columns[0]:
        options = [name for name in PATTERNS if name in measured]
        what = widgets.pick_one("pattern", "Pattern", options, "previous", lambda name: PATTERNS[name].label)
    with columns[1]:
        layer = widgets.pick_layer(int(frame["layer"].max()))
    with columns[2]:
        head = widgets.pick_head(int(frame["head"].max()))
    with columns[3]:
        change = _pick_change(what, int(frame["step"].min()))
    step = view.evaluated(frame["step"])
    left, right = st.columns(2, gap="large")
    with left:
        _at_step(view, frame, what, step, (layer, head))
    with right:
        _since(view, frame, what, change, (layer, head))
    _over_steps(view, frame, what, change, (layer, head))
    _one_head(frame, layer, head, step)


def _pick_change(what: str, first: int) -> float | None:
    """By how much a head has to differ from its `first` step for the pattern to be there (None: see `Pattern`)."""
    changes = {"baseline" if change is None else f"{change:+g}": change for change in PATTERNS[what].changes}

    def named(option: str) -> str:
        if option == "baseline":
            return "come up to the best fixed offset"
        return f"{'risen' if option[0] == '+' else 'fallen'} by {option[1:]} since step {first:,}"

    options = sorted(changes, key=lambda option: abs(changes[option] or 0))
    return changes[widgets.pick_one("change", "It is there where it has", options, next(iter(changes)), named)]


def _at_step(view: View, frame: pd.DataFrame, what: str, step: int, chosen: tuple[int, int]) -> None:
    rows = charts.of_pattern(frame, what)
    here = rows[rows["step"] == step]
    st.subheader(f"{PATTERNS[what].label}, step {step:,}", anchor=False)
    widgets.show_figure(
        charts.value_figure(rows, what, step, chosen),
        here,
        f"{view.run.name}-{what}-step{step}",
        f"{_sentence(PATTERNS[what].means)}. {_sentence(_data(view, here))}; n = {here['n'].max():,} in each cell. "
        "Colours run from the lowest to the highest value of any head at any step. Click a cell for its head.",
        on_point=_head_chosen,
    )


def _since(view: View, frame: pd.DataFrame, what: str, change: float | None, chosen: tuple[int, int]) -> None:
    since = charts.appearances(frame, what, change)
    steps = sorted(set(frame["step"]))
    st.subheader("There since step", anchor=False)
    widgets.show_figure(
        charts.appearance_figure(since, steps, chosen),
        since,
        f"{view.run.name}-{what}-since",
        f"{_rule(frame, change)} {_told(since)}",
        on_point=_head_chosen,
    )


def _over_steps(view: View, frame: pd.DataFrame, what: str, change: float | None, chosen: tuple[int, int]) -> None:
    rows = charts.of_pattern(frame, what)
    st.subheader("Over the steps", anchor=False)
    widgets.show_figure(
        charts.curves_figure(frame, what, change, chosen, view.axis),
        rows,
        f"{view.run.name}-{what}",
        f"Layer {chosen[0]}, head {chosen[1]}, large, among all {rows.groupby(['layer', 'head']).ngroups} heads, at "
        f"{rows['step'].nunique()} steps. Click a point to choose its head and step.",
        on_point=_point_chosen,
    )


def _one_head(frame: pd.DataFrame, layer: int, head: int, step: int) -> None:
    st.subheader(f"All that layer {layer}, head {head} does", anchor=False)
    table = charts.profile(frame, layer, head, step)
    key = f"profile_{layer}_{head}"

    def chosen() -> None:
        for row in st.session_state[key].selection.rows[:1]:
            permalink.choose("pattern", table["what"].iloc[row])

    steps = {"first": frame["step"].min(), "now": step, "last": frame["step"].max()}
    shown = {number: name for name, number in steps.items()}.values()  # the chosen step may be the first or the last
    st.dataframe(
        table[["pattern", *shown, "history", "appears"]],
        hide_index=True,
        key=key,
        on_select=chosen,
        selection_mode="single-row",
        placeholder=charts.NEVER,
        column_config={
            "pattern": "pattern",
            **{name: f"step {number:,}" for name, number in steps.items()},
            "history": st.column_config.LineChartColumn("over the steps", help="One point per evaluated step"),
            "appears": st.column_config.NumberColumn("there since step", format="localized"),
        },
    )
    st.caption("Click a row to see that pattern in all heads.")


# === In words ===


def _data(view: View, here: pd.DataFrame) -> str:
    return results.sources(view.run).get(METRIC, {}).get("note", f"{here['n'].max():,} cases")


def _rule(frame: pd.DataFrame, change: float | None) -> str:
    base = charts.baseline(frame)
    if change is None:
        return (
            f"The first step from which, to the last, a head does at least as well as the best fixed offset on the same "
            f"words: taking the word at {base[1]:+d} for the head is right for {base[0]:.1%}."
        )
    moved = "above" if change > 0 else "below"
    return (
        f"The first step from which, to the last, a head's value is at least {abs(change):g} {moved} its own at step "
        f"{frame['step'].min():,}."
    )


def _told(since: pd.DataFrame) -> str:
    """How many heads show the pattern, and the first head of each layer, the earliest layer first."""
    there = since.dropna().sort_values(["step", "layer", "head"])
    if there.empty:
        return f"None of {len(since)} heads shows the pattern at the last step."
    firsts = there.drop_duplicates("layer")
    order = ", ".join(f"layer {row.layer} at {row.step:,} (head {row.head})" for row in firsts.itertuples())
    return f"{len(there)} of {len(since)} heads show the pattern at the last step; the first of each layer: {order}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# === What a click chooses ===


def _head_chosen(point: dict[str, Any]) -> None:
    layer, head = point["customdata"][:2]
    permalink.choose("layer", layer)
    permalink.choose("head", head)


def _point_chosen(point: dict[str, Any]) -> None:
    if point.get("customdata"):
        _head_chosen(point)
        permalink.choose("step", point["customdata"][2])
