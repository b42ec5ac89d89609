"""Probing: what linear probes read from every layer (Section 4, Figures 2b, 3, 10 and 11)."""

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.view import View
from app.views import probing_layers
from embryo_core.errors import FigureError
from embryo_core.figures import probing
from embryo_core.figures.probing_scores import BEST, LAST, MASKED, METRIC, label, of_layer
from embryo_core.words import layer_name

LAYERS = {BEST: "best at each step", LAST: "last"}
SECTIONS = {"layers": "One task, layer by layer", "tasks": "All tasks", "order": "Order of layers and tasks"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Probing", lambda run: results.evaluated(run, METRIC))
    frame = results.probe_scores(view.run)
    if frame.empty:
        widgets.stop_uncomputed(view.run, METRIC, f"The layers of run '{view.run.name}' have not been probed yet.")
    widgets.show_headline(probing.headline(of_layer(frame, BEST), view.axis))
    section = pickers.pick_one(
        "probing",
        "Section",
        list(SECTIONS),
        format_func=SECTIONS.__getitem__,
        segmented=True,
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = _pick_layer(sorted(set(frame["layer"])))
        rescaled = section == "tasks" and pickers.pick_rescaled("F1 and accuracy")
        bands = pickers.pick_switch("bands", "95 % bands", default=True)
        pickers.pick_smoothing()
    if section == "tasks":
        figure = figures.draw(view, probing.tasks, layer=layer, rescaled=rescaled, bands=bands)
        figures.show(figure, on_point=_open_task, titled=True)
    elif section == "layers":
        probing_layers.show(view, frame, layer, bands)
    else:
        _show_order(view, frame, layer, bands)


def _pick_layer(layers: list[int]) -> str | int:
    def named(layer: str | int) -> str:
        return layer_name(layer) if isinstance(layer, int) else LAYERS[layer]

    return pickers.pick_one("probe_layer", "Layer", [BEST, LAST, *layers], format_func=named, width=190)


def _open_task(task: str, step: int) -> None:
    permalink.choose("step", step)
    if task != MASKED:
        permalink.choose("probe_task", task)
        permalink.choose("probing", "layers")  # the section that shows it


def _show_order(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> None:
    """Draw the expected layer of each task, two tasks against each other, and the peaks of all layers."""
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Expected layer", anchor=False)
        try:
            figures.show(figures.draw(view, probing.expected, bands=bands), on_point=_open_task)
        except FigureError:
            st.info("No layer is above the majority baseline at any step.", icon=":material/info:")
    with right:
        _show_two(view, list(frame["task"].unique()), layer)
    probing_layers.show_peaks(view)


def _show_two(view: View, tasks: list[str], layer: str | int) -> None:
    """Draw the path of two tasks through the steps."""
    st.header("Two tasks against each other", anchor=False)
    if len(tasks) < 2:
        st.info("Only one task has been probed; a second one is needed.", icon=":material/info:")
        return
    left, right = st.columns(2)
    with left:
        x = pickers.pick_one("x_task", "Horizontal axis", tasks, format_func=label)
    with right:
        others = [task for task in tasks if task != x]
        default = next((task for task in ("srl", "coref") if task in others), others[0])
        y = pickers.pick_one("y_task", "Vertical axis", others, default, label)
    figures.show_or_explain(view, probing.two_tasks, figures.choose_step, layer=layer, x_task=x, y_task=y)
