"""The Probing page, layers: one task layer by layer, the training of a probe, and the peaks of all layers."""

from functools import partial

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers
from app.tables import PERCENT, show_rows, steps_format
from app.view import View
from embryo_core.figures import probing_layers
from embryo_core.figures.markdown import literal
from embryo_core.figures.probing_layers import QUANTITIES
from embryo_core.figures.probing_scores import label, of_layer
from embryo_core.words import layer_name


def show(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> None:
    """Draw one task as curves and as a heat map, and how the probe of the chosen layer and step was trained."""
    st.header("One task, layer by layer", anchor=False)
    task, quantity = _pick(frame)
    measured = frame[(frame["task"] == task) & frame[quantity].notna()]
    step = view.evaluated(measured["step"].unique())
    number = chosen_layer(frame, layer, task, step)
    what = {"task": task, "quantity": quantity}
    bold = None if view.compared_runs else number
    figures.show(figures.draw(view, probing_layers.layers, **what, bold=bold, bands=bands), on_point=_choose_cell)
    figures.show(figures.draw(view, probing_layers.heat_map, **what, layer=number), on_point=_choose_cell)
    show_titled = partial(figures.show_or_explain, view, titled=True)
    draw = partial(show_titled, probing_layers.training, task=task, layer=number, step=step)
    pickers.fold("probe", f"How the probe was trained: {literal(label(task))}", draw)


def chosen_layer(frame: pd.DataFrame, layer: str | int, task: str, step: int) -> int:
    """Return the number of the chosen layer; a choice by F1 depends on the task and the step."""
    if isinstance(layer, int):
        return layer
    here = frame[(frame["task"] == task) & (frame["step"] == step)]
    return int(of_layer(here, layer)["layer"].iloc[0])


def _pick(frame: pd.DataFrame) -> tuple[str, str]:
    """Return a task, and one of the scores that it has."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        task = pickers.pick_one("probe_task", "Task", list(frame["task"].unique()), format_func=label, width=220)
        own = frame[frame["task"] == task]
        names = [name for name in QUANTITIES if own[name].notna().any()]
        return task, pickers.pick_one(
            "score", "Score", names, format_func=lambda name: QUANTITIES[name].label, segmented=True
        )


def _choose_cell(layer: int, step: int) -> None:
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)


# === Peak and decay ===


def show_peaks(view: View) -> None:
    """Draw the peaks of all tasks and layers as a figure and a table, folded if no layer has significantly fallen."""
    figure = figures.draw(view, probing_layers.peaks)
    fallen = bool((figure.table["low"] > 0).any())
    nothing = "Peak and decay: no layer has fallen significantly from its peak"
    with st.expander("Peak and decay" if fallen else nothing, expanded=fallen):
        figures.show(figure, on_point=_open_peak)
        _show_peak_table(view, figure.table)


def _open_peak(task: str, layer: int, step: int) -> None:
    permalink.choose("probe_task", task)
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)
    permalink.choose("probing", "layers")  # the section that shows them


def _show_peak_table(view: View, table: pd.DataFrame) -> None:
    number = st.column_config.NumberColumn
    named = table.assign(
        task=table["task"].map(label), layer=table["layer"].map(layer_name), decay=100 * table["decay"]
    )
    show_rows(
        named[["task", "layer", "step", "f1", "last", "decay", "n"]].assign(step=view.axis.column(named["step"])),
        "Peak and decay",
        "peak_table",
        lambda row: _open_peak(*table.iloc[row][["task", "layer", "step"]]),
        {
            "step": number(view.axis.headed("peak at"), format=steps_format(view.axis)),
            "f1": number("F1 there", **PERCENT),
            "last": number("F1, last step", **PERCENT),
            "decay": number("decay (points)", format="%.1f"),
            "n": number("n", format="localized", help="Targets of the test set"),
        },
        height=248,
    )
    st.caption("Click a row to open its task, layer and step.")
