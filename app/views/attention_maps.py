"""The Attention page, averaged maps: one head large, all heads small, and its weight on fixed positions."""

import streamlit as st

from app import figures, permalink, results, widgets
from app.captions import attention as captions
from app.charts import attention as charts
from app.charts.smoothing import with_smoothed
from app.components import animation_downloads, head_maps
from app.widgets import View
from embryo_core.curves import SCALES, Scale
from embryo_core.share import HeadHistory

METRIC = "attention"
HISTORY, GRID = "head_history", "head_grid"
ROWS = "rows"  # in the URL: whether rows are shown normalised


def show(view: View) -> None:
    """Draw the section."""
    normalised = permalink.get(ROWS) == "on"
    steps, layers, heads, grid = results.attention_grid(view.run, normalised)
    if not steps:
        widgets.stop(
            f"Run '{view.run.name}' has no attention maps yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC} --treebank PATH",
        )
    columns = st.columns([1, 1, 1, 1, 2], vertical_alignment="bottom")
    with columns[0]:
        layer = widgets.pick_layer(layers)
    with columns[1]:
        head = widgets.pick_head(heads)
    with columns[2]:
        scale = widgets.pick_one("colours", "Colours", SCALES, segmented=True)
    with columns[3]:
        widgets.pick_switch(ROWS, "Rows sum to 1")
    history = results.head_history(view.run, layer, head, normalised)
    left, right = st.columns(2, gap="large")
    with left:
        _one_head(view, layer, head, scale, history, normalised)
    with right:
        _all_heads(view, steps, (layers, heads), grid, history.size, normalised)
    _positions(view, layer, head, history)


def _one_head(view: View, layer: int, head: int, scale: Scale, history: HeadHistory, normalised: bool) -> None:
    st.subheader(f"Layer {layer}, head {head}", anchor=False)
    name = f"{view.run.name}-attention-layer{layer}-head{head}"
    head_maps.head_history(history, scale, view.step, name, on_step=_step_chosen, key=HISTORY)
    sentences = results.sources(view.run).get(METRIC, {}).get("sentences_per_position", [])
    st.caption(captions.averaged(history, sentences, normalised))
    animation_downloads.show(history, scale, name)


def _all_heads(
    view: View, steps: list[int], counts: tuple[int, int], grid: bytes, length: int, normalised: bool
) -> None:
    """The small multiples; `counts` are those of layers and heads, maps have this length."""
    st.subheader("All heads", anchor=False)
    head_maps.head_grid(grid, *counts, on_head=_head_chosen, key=GRID)
    block = -(-length // head_maps.GRID_SIZE)
    step = view.evaluated(steps)
    with st.container(horizontal=True, gap="medium", key="below_all_heads"):
        st.caption(captions.all_heads(len(steps), block), width="stretch")
        st.download_button(
            "CSV",
            lambda: charts.weights_table(results.attention_step(view.run, step, normalised), step).to_csv(index=False),
            file_name=f"{view.run.name}-attention-step{step}.csv",
            mime="text/csv",
            icon=":material/download:",
            help=f"The weights of all heads at step {step:,}",
            on_click="ignore",
        )


def _step_chosen(step: int) -> None:
    permalink.choose("step", step)


def _head_chosen(layer: int, head: int) -> None:
    permalink.choose("layer", layer)
    permalink.choose("head", head)


def _positions(view: View, layer: int, head: int, history: HeadHistory) -> None:
    st.subheader("Where this head attends", anchor=False)
    measured = charts.position_weights(history.steps, history.weights)
    frame = with_smoothed(measured, "weight", view.smoothing, ["position"])
    widgets.pick_smoothing()
    figures.show(
        charts.position_figure(frame, view.axis),
        frame.assign(layer=layer, head=head),
        f"{view.run.name}-attention-positions-layer{layer}-head{head}",
        captions.positions(history.size),
        f"Layer {layer}, head {head}: weight on fixed positions",
        view,
        METRIC,
    )
