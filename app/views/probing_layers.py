"""The Probing page, one task layer by layer: a curve for each layer, and the same as a heat map."""

from functools import partial

import pandas as pd
import streamlit as st

from app import figures, overlays, permalink, pickers, results
from app.view import View
from embryo_core.figures import probing_layers as charts
from embryo_core.figures.captions import probing as captions
from embryo_core.figures.probing_layers import QUANTITIES
from embryo_core.figures.probing_scores import BEST, LAST, label, of_layer
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run


def show(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> tuple[str, int, int]:
    """Draw one task layer by layer; returns the chosen task, layer and evaluated step."""
    st.header("One task, layer by layer", anchor=False)
    task, quantity = _pick(frame)
    data = charts.layer_curves(frame, task, quantity)
    smoothed = with_smoothed(data, "value", view.smoothing, ["layer"])
    title = f"{QUANTITIES[quantity].label} on {label(task)}, layer by layer"
    step = view.evaluated(data["step"].unique())
    number = chosen_layer(frame, layer, task, step)
    name = f"{view.run.name}-{task}-{quantity}"
    thick = None if view.compared_runs else number
    caption = captions.layers(data, task, quantity, thick, results.sources(view.run), bands)
    if view.compared_runs:
        curves, read = charts.overlay_curves(quantity), partial(_layers, task=task, quantity=quantity)
        overlays.show(view, read, curves, f"{name}-layers", caption, title, captions.METRIC, _cell_chosen, bands)
    else:
        figure = charts.layers_figure(smoothed, quantity, number, view.axis, bands)
        figures.show_plot(
            figure,
            smoothed.assign(task=task, score=quantity),
            f"{name}-layers",
            caption,
            title,
            view,
            captions.METRIC,
            on_point=_cell_chosen,
        )
    figures.show_plot(
        charts.heat_map(data, quantity, number, view.axis),
        data.assign(task=task, score=quantity),
        f"{name}-map",
        captions.heat_map(data, number, step, view.run.step_unit),
        title,
        view,
        captions.METRIC,
        on_point=_cell_chosen,
    )
    return task, number, step


def _layers(run: Run, task: str, quantity: str) -> pd.DataFrame:
    return charts.layer_curves(results.probe_scores(run), task, quantity).assign(task=task, score=quantity)


def chosen_layer(frame: pd.DataFrame, layer: str | int, task: str, step: int) -> int:
    """The number of the chosen layer; of a choice by F1, the one at this step of this task."""
    here = frame[(frame["task"] == task) & (frame["step"] == step)]
    return int(of_layer(here, layer)["layer"].iloc[0]) if layer in (BEST, LAST) else layer


def _pick(frame: pd.DataFrame) -> tuple[str, str]:
    """A task, and one of the scores that it has."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        task = pickers.pick_one("probe_task", "Task", list(frame["task"].unique()), format_func=label, width=220)
        own = frame[frame["task"] == task]
        names = [name for name in QUANTITIES if own[name].notna().any()]
        return task, pickers.pick_one(
            "score", "Score", names, format_func=lambda name: QUANTITIES[name].label, segmented=True
        )


def _cell_chosen(layer: int, step: int) -> None:
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)
