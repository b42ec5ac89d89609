"""Probing, its sections: what linear probes read from every layer (Section 4, Figures 2b, 3, 10 and 11)."""

import pandas as pd
import streamlit as st

from app import curve_reads, pickers, results, widgets
from app.view import View
from app.views import probing_layers, probing_peaks, probing_tasks, probing_training
from embryo_core.figures.captions import openings
from embryo_core.figures.captions.probing import METRIC
from embryo_core.figures.probing_scores import BEST, LAST, NAMES, layer_name

LAYERS = {BEST: "best at each step", LAST: "last"}
SECTIONS = {"tasks": "All tasks", "layers": "One task, layer by layer", "order": "Order of layers and tasks"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Probing", lambda run: results.default_scale(run, f"{METRIC}_f1"))
    frame = results.probe_scores(view.run)
    if frame.empty:
        widgets.stop_uncomputed(view.run, METRIC, f"The layers of run '{view.run.name}' have not been probed yet.")
    widgets.show_opening(openings.probing(curve_reads.probes_of_layer(view.run, BEST), NAMES, view.run.step_unit))
    section = pickers.pick_one(
        "probing", "Section", list(SECTIONS), format_func=SECTIONS.get, segmented=True, label_visibility="collapsed"
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = _pick_layer(sorted(set(frame["layer"])))
        rescaled = section == "tasks" and pickers.pick_rescaled("F1 and accuracy")
        bands = pickers.pick_switch("bands", "95 % bands", default=True)
        pickers.pick_smoothing()
    if section == "tasks":
        probing_tasks.show(view, frame, layer, rescaled, bands)
    elif section == "layers":
        probing_training.show(view, *probing_layers.show(view, frame, layer, bands))
    else:
        _show_order(view, frame, layer, bands)


def _show_order(view: View, frame: pd.DataFrame, layer: str | int, bands: bool) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        probing_tasks.show_expected(view, frame, bands)
    with right:
        probing_tasks.show_two(view, frame, layer)
    probing_peaks.show(view, frame)


def _pick_layer(layers: list[int]) -> str | int:
    def named(layer: str | int) -> str:
        return LAYERS.get(layer) or layer_name(layer)

    return pickers.pick_one("probe_layer", "Layer", [BEST, LAST, *layers], format_func=named, width=190)
