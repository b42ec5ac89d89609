"""Probing: what linear probes read from every layer about structure (Section 4, Figures 2b, 3, 10 and 11)."""

from typing import Any

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import probing as charts
from app.charts.probing import BEST, LAST
from app.views import probing_layers
from app.views.probing_layers import METRIC, span
from app.widgets import View
from embryo_core.types import Run

LAYERS = {BEST: "best at each step", LAST: "last"}
UNITS = {"raw": "Raw", "rescaled": "Relative to last step"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Probing")
    frame = results.probe_scores(view.run)
    if frame.empty:
        widgets.stop(
            f"The layers of run '{view.run.name}' have not been probed yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC} --probing PATH",
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = _pick_layer(sorted(set(frame["layer"])))
        rescaled = widgets.pick_one("unit", "F1 and accuracy", list(UNITS), format_func=UNITS.get, segmented=True)
        bands = widgets.pick_switch("bands", "95 % bands", default=True)
    _tasks(view, frame, layer, rescaled == "rescaled", bands)
    task, number, step = probing_layers.show(view, frame, layer, bands)
    probing_layers.show_peaks(view, frame)
    left, right = st.columns(2, gap="large")
    with left:
        _expected(view, frame)
    with right:
        _two_tasks(view, frame, layer)
    probing_layers.show_training(view, task, number, step)


def _pick_layer(layers: list[int]) -> str | int:
    def named(layer: str | int) -> str:
        return LAYERS.get(layer) or charts.layer_name(layer)

    return widgets.pick_one("probe_layer", "Layer", [BEST, LAST, *layers], format_func=named, width=190)


def _which(layer: str | int, frame: pd.DataFrame) -> str:
    """The choice of a layer as a caption says it."""
    if layer == BEST:
        return "the layer with the best F1 of each step"
    return f"the last layer ({frame['layer'].max()})" if layer == LAST else charts.layer_name(layer)


# === All tasks ===


def _tasks(view: View, frame: pd.DataFrame, layer: str | int, rescaled: bool, bands: bool) -> None:
    st.subheader("What probes read from the layers, over the steps", anchor=False)
    data = charts.task_curves(charts.of_layer(frame, layer), results.log(view.run), rescaled)
    widgets.show_figure(
        charts.tasks_figure(data, view.axis, rescaled, bands),
        data,
        f"{view.run.name}-probing",
        f"A linear probe learns to read each task off the frozen states of one layer: {_which(layer, frame)}. F1 is "
        f"micro-averaged over the test set, n = {span(frame['n'])} targets. {_masked(data)} Line: mean of three "
        "neighbouring checkpoints; faint line: as measured; dashed: the F1 of always saying the most frequent label"
        + ("; band: 95 % interval (Wilson) of the value as measured" if bands else "")
        + ("; all divided by the curve's own last value" if rescaled else "")
        + f". {_data(view.run)} Click a point for its task and step.",
        on_point=_task_chosen,
    )


def _data(run: Run) -> str:
    """The sentences of sources.json on the data of the probes, those of one's own tasks included."""
    evaluations = {name: facts for name, facts in results.sources(run).items() if name.split(":")[0] == METRIC}
    notes = [widgets.literal(facts["note"]) for facts in evaluations.values() if "note" in facts]
    return f"Data: {'; '.join(notes) or 'the probing sets given to the evaluation'}."


def _masked(data: pd.DataFrame) -> str:
    n = data.loc[data["task"] == charts.MASKED, "n"]
    if n.empty:
        return "The run's log holds no accuracy on held-out text."
    return f"Masked accuracy: share of {int(n.iloc[-1]):,} masked pieces of held-out text that the model itself gets right."


def _task_chosen(point: dict[str, Any]) -> None:
    task, step = point["customdata"][:2]
    permalink.choose("step", step)
    if task != charts.MASKED:
        permalink.choose("probe_task", task)


def _expected(view: View, frame: pd.DataFrame) -> None:
    st.subheader("Expected layer", anchor=False)
    table = charts.expected_layers(frame)
    if table.empty:
        st.info("No layer is above the majority baseline at any step.", icon=":material/info:")
        return
    layers = int(frame["layer"].max())
    figure = charts.expected_figure(table, sorted(set(frame["step"])), layers, view.axis)
    widgets.show_figure(
        figure,
        table,
        f"{view.run.name}-expected-layer",
        f"In which layer a task is found: the centre of gravity of the F1 that the layers 0 (embeddings) to {layers} have "
        f"above the majority baseline; n = {span(frame['n'])} targets. Above the dashed line, the upper "
        "layers know more than the lower ones. Line: mean of three neighbouring checkpoints; faint line: as measured. A "
        "step without a layer above the baseline is left out. Click a point for its task and step.",
        on_point=_task_chosen,
    )


def _two_tasks(view: View, frame: pd.DataFrame, layer: str | int) -> None:
    st.subheader("Two tasks against each other", anchor=False)
    tasks = list(frame["task"].unique())
    if len(tasks) < 2:
        st.info("Only one task has been probed; a second one is needed.", icon=":material/info:")
        return
    left, right = st.columns(2)
    with left:
        across = widgets.pick_one("across", "Across", tasks, format_func=charts.label)
    with right:
        others = [task for task in tasks if task != across]
        usual = next((task for task in ("srl", "coref") if task in others), others[0])
        up = widgets.pick_one("up", "Up", others, usual, charts.label)
    table = charts.path(charts.of_layer(frame, layer), across, up)
    if table.empty:
        st.info("There is no step at which both tasks have been probed.", icon=":material/info:")
        return
    step = view.evaluated(table["step"])
    n = f"n = {table['n_across'].iloc[-1]:,} and {table['n_up'].iloc[-1]:,} targets"
    widgets.show_figure(
        charts.path_figure(table, across, up, step),
        table,
        f"{view.run.name}-{across}-{up}",
        f"F1 of both tasks at each checkpoint ({len(table)}), in {_which(layer, frame)}; means of three neighbouring "
        f"checkpoints; {n}. The path runs from dark to bright; the ring marks step {step:,}. Where it runs level, only the "
        "task across is being learned, where it runs upright, only the other. Click a point for its step.",
        on_point=lambda point: permalink.choose("step", point["customdata"][0]),
    )
