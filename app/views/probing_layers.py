"""The Probing page, one task layer by layer: curves, heat map, peaks of all tasks, and how a probe was trained."""

from typing import Any

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import probing_layers as charts
from app.charts.probing import BEST, LAST, label, layer_name, of_layer
from app.charts.probing_layers import QUANTITIES
from app.widgets import View
from embryo_core.types import Run

METRIC = "edge_probing"
POINTS = {"format": "percent", "step": 0.001}


def span(n: pd.Series) -> str:
    """The smallest and the largest of these counts."""
    return f"{n.min():,}" if n.min() == n.max() else f"{n.min():,} to {n.max():,}"


def chosen_layer(frame: pd.DataFrame, layer: str | int, task: str, step: int) -> int:
    """The number of the chosen layer; of a choice by F1, the one at this step of this task."""
    here = frame[(frame["task"] == task) & (frame["step"] == step)]
    return int(of_layer(here, layer)["layer"].iloc[0]) if layer in (BEST, LAST) else layer


def show(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> tuple[str, int, int]:
    """Draw one task layer by layer; returns the chosen task, layer and evaluated step."""
    st.subheader("One task, layer by layer", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        tasks = list(frame["task"].unique())
        task = widgets.pick_one("probe_task", "Task", tasks, format_func=label, width=220)
        own = frame[frame["task"] == task]
        names = [name for name in QUANTITIES if own[name].notna().any()]
        quantity = widgets.pick_one("score", "Score", names, format_func=lambda n: QUANTITIES[n].label, segmented=True)
    data = charts.layer_curves(frame, task, quantity)
    step = view.evaluated(data["step"])
    cell = chosen_layer(frame, layer, task, step), step
    name = f"{view.run.name}-{task}-{quantity}"
    n = f"n = {data['n'].iloc[-1]:,} targets"
    widgets.show_figure(
        charts.layers_figure(data, quantity, cell[0], view.axis, bands),
        data,
        f"{name}-layers",
        f"**{widgets.literal(label(task))}**: {QUANTITIES[quantity].means}; {n}{_sizes(view.run, task)}. A line per layer, embeddings included; thick: {layer_name(cell[0])}. Line: mean "
        "of three neighbouring checkpoints; faint line: as measured"
        + ("; band: 95 % interval of the value as measured" if bands else "")
        + ". Click a point for its layer and step.",
        on_point=_cell_chosen,
    )
    widgets.show_figure(
        charts.heat_map(data, quantity, cell, view.axis),
        data,
        f"{name}-map",
        f"The same as measured, in hundredths: a column for each evaluated checkpoint ({data['step'].nunique()}), a row "
        f"for each layer. Colours run from the lowest cell to the highest. Outlined: {layer_name(cell[0])} at step "
        f"{step:,}. Click a cell for its layer and step.",
        on_point=_cell_chosen,
    )
    return task, *cell


def _evaluation(run: Run, task: str) -> dict[str, Any]:
    """What sources.json notes of the evaluation that has this task: of the metric, or of a task of one's own."""
    sources = results.sources(run)
    known = (sources.get(name, {}) for name in (METRIC, f"{METRIC}:{task}"))
    return next((facts for facts in known if task in facts.get("tasks", {})), {})


def _sizes(run: Run, task: str) -> str:
    """How many targets a task has in each split, and how many labels, in brackets; nothing where it was not noted."""
    facts = _evaluation(run, task).get("tasks", {}).get(task)
    if not facts:
        return ""
    sizes = f"{facts['train']:,} targets to learn from, {facts['dev']:,} to stop by, {facts['test']:,} to test"
    return f" ({sizes}; {facts['labels']:,} labels)"


def _cell_chosen(point: dict[str, Any]) -> None:
    layer, step = point["customdata"][:2]
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)


# === Peak and decay ===


def show_peaks(view: View, frame: pd.DataFrame) -> None:
    """Draw where each layer peaks on each task, and how far it has come down since."""
    st.subheader("Peak and decay", anchor=False)
    table = charts.peaks(frame)
    widgets.show_figure(
        charts.peaks_figure(table, sorted(set(frame["step"])), view.axis),
        table,
        f"{view.run.name}-probing-peaks",
        "Left: the step at which each layer's F1 is highest, as the mean of three neighbouring checkpoints. Right: how far "
        "it has fallen from there by the last step, in points of F1, with its 95 % interval (Newcombe, from the "
        f"{span(table['n'])} targets of the test sets). Hollow: the decay may be nothing. Click a mark for its task, "
        "layer and step.",
        on_point=_peak_chosen,
    )
    _peak_table(table)


def _peak_chosen(point: dict[str, Any]) -> None:
    task, layer, step = point["customdata"][:3]
    permalink.choose("probe_task", task)
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)


def _peak_table(table: pd.DataFrame) -> None:
    key = "peak_table"

    def chosen() -> None:
        for row in st.session_state[key].selection.rows[:1]:
            _peak_chosen({"customdata": table.iloc[row][["task", "layer", "step"]].tolist()})

    number = st.column_config.NumberColumn
    shown = table.assign(task=table["task"].map(label), layer=table["layer"].map(layer_name))
    st.dataframe(
        shown.assign(decay=100 * table["decay"])[["task", "layer", "step", "f1", "last", "decay", "n"]],
        hide_index=True,
        key=key,
        height=248,
        on_select=chosen,
        selection_mode="single-row",
        column_config={
            "step": number("peak at step", format="localized"),
            "f1": number("F1 there", **POINTS),
            "last": number("F1, last step", **POINTS),
            "decay": number("decay (points)", format="%.1f"),
            "n": number("n", format="localized", help="Targets of the test set"),
        },
    )
    st.caption("F1 is the mean of three neighbouring checkpoints. Click a row for its task, layer and step.")


# === The training of a probe ===


def show_training(view: View, task: str, layer: int, step: int) -> None:
    """Draw how the probe of this task, layer and step was trained."""
    name = widgets.literal(label(task))
    st.subheader(f"How the probe was trained: {name}, {layer_name(layer)}, step {step:,}", anchor=False)
    table = results.probes(view.run, task, layer, step)
    if table.empty:
        st.info("The training curve of this probe was not kept.", icon=":material/info:")
        return
    last = table.groupby("control")["iteration"].max()
    told = ", ".join(f"{n:,} iterations on the {'control task' if control else 'task'}" for control, n in last.items())
    protocol = _evaluation(view.run, task).get("protocol")
    how = f" (the {widgets.literal(protocol)} protocol)" if protocol else ""
    widgets.show_figure(
        charts.training_figure(table),
        table,
        f"{view.run.name}-{task}-layer{layer}-step{step}-training",
        f"F1 on the development set, and mean cross-entropy in training, as the probe's own optimizer{how} went on: "
        f"{told}{_sizes(view.run, task)}. The probe that is tested is the one with the best development F1. A click in the "
        "heat map chooses another.",
    )
