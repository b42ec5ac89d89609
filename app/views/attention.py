"""Attention: how each head's averaged map forms, checkpoint by checkpoint (Section 4, Figure 4)."""

import streamlit as st

from app import permalink, results, widgets
from app.charts import attention as charts
from app.components import animation_downloads, head_maps
from app.views import head_behaviour, sentence
from app.widgets import View
from embryo_core import results as store
from embryo_core.curves import SCALES
from embryo_core.results import AttentionHistory
from embryo_core.share import averaged
from embryo_core.types import Run

METRIC = "attention"
HISTORY, GRID = "head_history", "head_grid"
SECTIONS = {"maps": "Averaged maps", "heads": "What a head does", "sentence": "Your sentence"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Attention")
    section = widgets.pick_one(
        "section", "Section", list(SECTIONS), format_func=SECTIONS.get, segmented=True, label_visibility="collapsed"
    )
    {"maps": _show_maps, "heads": head_behaviour.show, "sentence": sentence.show}[section](view)


def _show_maps(view: View) -> None:
    steps, layers, heads, grid = _grid(results.stamp(view.run), view.run)
    if not steps:
        widgets.stop(
            f"Run '{view.run.name}' has no attention maps yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC} --treebank PATH",
        )
    columns = st.columns([1, 1, 1, 3], vertical_alignment="bottom")
    with columns[0]:
        layer = widgets.pick_layer(layers)
    with columns[1]:
        head = widgets.pick_head(heads)
    with columns[2]:
        scale = widgets.pick_one("colours", "Colours", SCALES, segmented=True)
    history = results.attention(view.run, layer, head)
    left, right = st.columns(2, gap="large")
    with left:
        _one_head(view, layer, head, scale, history)
    with right:
        _all_heads(view, steps, grid, length=history.weights.shape[-1])
    _places(view, layer, head, history)


def _one_head(view: View, layer: int, head: int, scale: str, history: AttentionHistory) -> None:
    st.subheader(f"Layer {layer}, head {head}", anchor=False)
    shown = averaged(view.run.name, layer, head, history, results.sources(view.run).get(METRIC, {}))
    name = f"{view.run.name}-attention-layer{layer}-head{head}"
    head_maps.head_history(shown, scale, view.step, name, on_step=_step_chosen, key=HISTORY)
    st.caption(
        f"{shown.note}: from each position (row) to each position (column), 0 to {shown.size - 1} with [CLS] first. "
        f"The colours run to this head's largest weight over all {len(shown.steps)} steps, so they mean the same at "
        "each of them."
    )
    animation_downloads.show(shown, scale, name)


def _all_heads(view: View, steps: list[int], grid: bytes, length: int) -> None:
    st.subheader("All heads", anchor=False)
    head_maps.head_grid(grid, on_head=_head_chosen, key=GRID)
    block = -(-length // head_maps.GRID_SIZE)
    blocks = f"; each pixel is the mean of {block} × {block} weights" if block > 1 else ""
    step = max((known for known in steps if known <= view.step), default=steps[0])
    with st.container(horizontal=True, gap="medium", key="below_all_heads"):
        st.caption(
            "Rows are layers, columns are heads, at the same step; click one to see it large. Each runs from 0 to its "
            f"own largest weight over all {len(steps)} steps{blocks}.",
            width="stretch",
        )
        st.download_button(
            "CSV",
            lambda: charts.weights_table(results.attention_step(view.run, step)[0], step).to_csv(index=False),
            file_name=f"{view.run.name}-attention-step{step}.csv",
            mime="text/csv",
            icon=":material/download:",
            help=f"The weights of all heads at step {step:,}",
            on_click="ignore",
        )


@st.cache_data(max_entries=4, show_spinner="Reading the attention maps")
def _grid(stamp: results.Stamp, _run: Run) -> tuple[list[int], int, int, bytes]:
    """Steps, layers and heads that have maps, and the maps of them all as the browser takes them."""
    steps, weights, _ = store.read_attention_steps(_run)
    payload = head_maps.grid_payload(_run.name, steps, weights) if len(steps) else b""
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


def _places(view: View, layer: int, head: int, history: AttentionHistory) -> None:
    st.subheader("Where this head looks", anchor=False)
    frame = charts.place_weights(history.steps, history.weights)
    formulas = "; ".join(f"{name}: {formula}" for name, formula in charts.PLACES.items())
    widgets.show_figure(
        charts.place_figure(frame, view.step, view.log),
        frame.assign(layer=layer, head=head),
        f"{view.run.name}-attention-places-layer{layer}-head{head}",
        f"Mean weight of the map A at four places ({formulas}; L = {history.weights.shape[-1]}).",
    )
