"""Attention: how each head's averaged map forms, checkpoint by checkpoint (Section 4, Figure 4)."""

import numpy as np
import streamlit as st

from app import permalink, results, widgets
from app.charts import attention as charts
from app.components import head_maps
from app.widgets import View
from embryo_core import store
from embryo_core.store import AttentionHistory
from embryo_core.types import Run

METRIC = "attention"
HISTORY, GRID = "head_history", "head_grid"


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Attention")
    steps, layers, heads, grid = _grid(results.stamp(view.run), view.run)
    if not steps:
        widgets.stop(
            f"Run '{view.run.name}' has no attention maps yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC}",
        )
    columns = st.columns([1, 1, 1, 3], vertical_alignment="bottom")
    with columns[0]:
        layer = widgets.pick_layer(layers)
    with columns[1]:
        head = widgets.pick_head(heads)
    with columns[2]:
        scale = widgets.pick_one("colours", "Colours", ("linear", "log"), segmented=True)
    history = results.attention(view.run, layer, head)
    about = {"run": view.run.name, "layer": layer, "head": head, "scale": scale, "step": view.step}
    left, right = st.columns([1, 1], gap="large")
    with left:
        st.subheader(f"Layer {layer}, head {head}", anchor=False)
        about["sentences"] = history.sentences
        head_maps.head_history(about, history.steps, history.weights, on_step=_step_chosen, key=HISTORY)
        st.caption(_map_caption(view.run, history))
    with right:
        st.subheader("All heads", anchor=False)
        head_maps.head_grid(grid, on_head=_head_chosen, key=GRID)
        st.caption(
            "Rows are layers, columns are heads, at the same step; click one to see it large. "
            f"Each runs from 0 to its own largest weight over all {len(steps)} steps"
            f"{_blocks(history.weights.shape[-1])}."
        )
    _places(view, layer, head, history)


@st.cache_data(max_entries=4, show_spinner="Reading the attention maps")
def _grid(stamp: results.Stamp, _run: Run) -> tuple[list[int], int, int, bytes]:
    """Steps, layers and heads that have maps, and the maps of them all as the browser takes them."""
    steps, weights, _ = store.read_attention_steps(_run)
    payload = head_maps.grid_payload(steps, weights) if len(steps) else b""
    return steps.tolist(), weights.shape[1], weights.shape[2], payload


def _step_chosen() -> None:
    step = st.session_state[HISTORY].get("step")
    if isinstance(step, int):
        permalink.choose("step", step)


def _head_chosen() -> None:
    chosen = st.session_state[GRID].get("head") or {}
    for name in ("layer", "head"):
        if isinstance(chosen.get(name), int):
            permalink.choose(name, chosen[name])


def _map_caption(run: Run, history: AttentionHistory) -> str:
    length = history.weights.shape[-1]
    note = results.sources(run).get(METRIC, {}).get("note", f"averaged over {history.sentences:,} sentences")
    return (
        f"Attention weight from each position (row) to each position (column), 0 to {length - 1} with [CLS] first, "
        f"{note}. The colours run to this head's largest weight over all {len(history.steps)} steps, so they mean the "
        "same at each of them."
    )


def _blocks(length: int) -> str:
    block = -(-length // head_maps.GRID_SIZE)
    return f"; each pixel is the mean of {block} × {block} weights" if block > 1 else ""


def _places(view: View, layer: int, head: int, history: AttentionHistory) -> None:
    st.subheader("Where this head looks", anchor=False)
    frame = charts.place_weights(history.steps, history.weights)
    formulas = "; ".join(f"{name}: {formula}" for name, formula in charts.PLACES.items())
    widgets.show_figure(
        charts.place_figure(frame, view.step, view.log),
        frame.assign(layer=layer, head=head),
        f"{view.run.name}-attention-places-layer{layer}-head{head}",
        f"Mean weight of the map A at four places ({formulas}; L = {np.shape(history.weights)[-1]}).",
    )
