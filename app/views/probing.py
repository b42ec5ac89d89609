"""Probing: what linear probes read from every layer (Section 4, Figures 2b, 3, 10 and 11)."""

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn

from app import figures, notices, permalink, pickers, results, widgets
from app.tables import PERCENT, show_rows, steps_in_unit
from app.view import View
from embryo_core.errors import FigureError
from embryo_core.figures import probing, probing_layers
from embryo_core.figures.markdown import literal
from embryo_core.figures.probing_layers import QUANTITIES
from embryo_core.figures.probing_scores import BEST, LAST, MASKED_ACCURACY, METRIC, select_layer, task_label
from embryo_core.words import layer_name

LAYER_LABELS: dict[str | int, str] = {BEST: "best at each step", LAST: "last"}
SECTIONS = {"layers": "One task, layer by layer", "tasks": "All tasks", "order": "Order of layers and tasks"}


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Probing", lambda run: results.evaluated_steps(run, METRIC))
    frame = results.probe_scores(view.run)
    if frame.empty:
        notices.stop_uncomputed(view.run, METRIC, f"The layers of run '{view.run.name}' have not been probed yet.")
    notices.show_headline(probing.headline(select_layer(frame, BEST), view.axis))
    section = pickers.pick_one("probing", "Section", SECTIONS, segmented=True, label_visibility="collapsed")
    with pickers.row():
        layer_names = LAYER_LABELS | {layer: layer_name(layer) for layer in sorted(set(frame["layer"]))}
        layer = pickers.pick_one("probe_layer", "Layer", layer_names, width=190)
        is_rescaled = section == "tasks" and pickers.pick_rescaled("F1 and accuracy")
        bands = pickers.pick_switch("bands", "95 % bands", default=True)
        pickers.pick_smoothing()
    if section == "tasks":
        figures.plot(view, probing.tasks, _open_task, titled=True, layer=layer, rescaled=is_rescaled, bands=bands)
    elif section == "layers":
        _show_layers(view, frame, layer, bands)
    else:
        _show_order(view, frame, layer, bands)


def _open_task(task: str, step: int) -> None:
    permalink.choose("step", step)
    if task != MASKED_ACCURACY:
        permalink.choose_all(probe_task=task, probing="layers")  # opens the section that shows it


def _show_order(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> None:
    """Draw the expected layer of each task, two tasks against each other, and the peaks of all tasks and layers."""
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Expected layer", anchor=False)
        try:
            figures.show(figures.draw(view, probing.expected, bands=bands), on_point=_open_task)
        except FigureError:
            notices.note("No layer is above the majority baseline at any step.")
    with right:
        _show_two(view, list(frame["task"].unique()), layer)
    _show_peaks(view)


def _show_two(view: View, tasks: list[str], layer: str | int) -> None:
    """Pick two tasks and draw the score of one against the other's, as a path through the steps."""
    st.header("Two tasks against each other", anchor=False)
    if len(tasks) < 2:
        notices.note("Only one task has been probed; a second one is needed.")
        return
    left, right = st.columns(2)
    with left:
        x = pickers.pick_one("x_task", "Horizontal axis", tasks, format_func=task_label)
    with right:
        other_tasks = [task for task in tasks if task != x]
        default = next((task for task in ("srl", "coref") if task in other_tasks), other_tasks[0])
        y = pickers.pick_one("y_task", "Vertical axis", other_tasks, default, task_label)
    figures.plot(view, probing.two_tasks, figures.choose_step, layer=layer, x_task=x, y_task=y)


# === One task, layer by layer ===


def _show_layers(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> None:
    """Draw one task as curves and as a heat map, and how the probe of the chosen layer and step was trained."""
    st.header("One task, layer by layer", anchor=False)
    task, quantity = _pick_task(frame)
    measured_rows = frame[(frame["task"] == task) & frame[quantity].notna()]
    step = view.evaluated_step(measured_rows["step"].unique())
    at_step = frame[(frame["task"] == task) & (frame["step"] == step)]
    number = layer if isinstance(layer, int) else int(select_layer(at_step, layer)["layer"].iloc[0])
    options: dict[str, Any] = {"task": task, "quantity": quantity}
    highlighted = None if len(view.drawn_runs) > 1 else number
    figures.plot(view, probing_layers.layers, _choose_cell, **options, bold=highlighted, bands=bands)
    figures.plot(view, probing_layers.heat_map, _choose_cell, **options, layer=number)
    show_figure = partial(figures.plot, view, titled=True)
    draw = partial(show_figure, probing_layers.training, task=task, layer=number, step=step)
    pickers.fold("probe", f"How the probe was trained: {literal(task_label(task))}", draw)


def _pick_task(frame: pd.DataFrame) -> tuple[str, str]:
    """Pick and return a task, and one of its measured scores."""
    with pickers.row():
        task = pickers.pick_one("probe_task", "Task", list(frame["task"].unique()), format_func=task_label, width=220)
        rows = frame[frame["task"] == task]
        names = {name: quantity.label for name, quantity in QUANTITIES.items() if rows[name].notna().any()}
        return task, pickers.pick_one("score", "Score", names, segmented=True)


def _choose_cell(layer: int, step: int) -> None:
    permalink.choose_all(probe_layer=layer, step=step)


# === Peak and decay ===


def _show_peaks(view: View) -> None:
    """Draw the peaks of all tasks and layers as a figure and a table, folded if none fell significantly afterwards."""
    figure = figures.draw(view, probing_layers.peaks)
    has_fallen = bool((figure.table["low"] > 0).any())
    no_decay_title = "Peak and decay: no layer has fallen significantly from its peak"
    with st.expander("Peak and decay" if has_fallen else no_decay_title, expanded=has_fallen):
        figures.show(figure, on_point=_open_peak)
        _show_peak_table(view, figure.table)


def _open_peak(task: str, layer: int, step: int) -> None:
    # opens the section that shows task and layer
    permalink.choose_all(probe_task=task, probe_layer=layer, step=step, probing="layers")


def _show_peak_table(view: View, table: pd.DataFrame) -> None:
    """Draw a table of peaks, whose rows open their task, layer and step."""
    labelled = table.assign(
        task=table["task"].map(task_label), layer=table["layer"].map(layer_name), decay=100 * table["decay"]
    )
    columns = labelled[["task", "layer", "step", "f1", "last", "decay", "n"]]
    visible_table, steps = steps_in_unit(columns, view.axis, {"step": {"label": view.axis.step_heading("peak at")}})
    show_rows(
        visible_table,
        "Peak and decay",
        "peak_table",
        lambda row: _open_peak(*table.iloc[row][["task", "layer", "step"]]),
        {
            **steps,
            "f1": NumberColumn("F1 there", **PERCENT),
            "last": NumberColumn("F1, last step", **PERCENT),
            "decay": NumberColumn("decay (points)", format="%.1f"),
            "n": NumberColumn("n", format="localized", help="Targets of the test set"),
        },
        height=248,
    )
    st.caption("Click a row to open its task, layer and step.")
