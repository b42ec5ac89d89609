"""The Attention page, layers by steps: one head's averaged maps in all layers at a few steps (Figure 4)."""

import streamlit as st

from app import figures, map_reads, permalink, pickers, results
from app.view import View
from app.views.attention_maps import METRIC, ROWS, stop_without_maps
from embryo_core.figures import attention_layers as charts
from embryo_core.figures.captions import attention as captions
from embryo_core.figures.markdown import literal
from embryo_core.share.all_heads import shrink
from embryo_core.share.map_style import colour_end


def show(view: View) -> None:
    """Draw the section: the page's run, and the first run beside it below."""
    known = map_reads.evaluated(view.run)
    if not known:
        stop_without_maps(view)
    _, _, usual = results.default_head(view.run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        head = pickers.pick_head(map_reads.at_step(view.run, view.evaluated(known)).shape[1], usual)
        normalised = pickers.pick_switch(ROWS, "Rows sum to 1")
    for shown in (view, *map(view.of, view.compared_runs[:1])):
        _layers(shown, head, normalised)


def _layers(view: View, head: int, normalised: bool) -> None:
    known = sorted(map_reads.evaluated(view.run))
    st.header(literal(f"Head {head} of {view.run.name} in every layer"), anchor=False)
    if not known:
        st.info(literal(f"Run '{view.run.name}' has no attention maps."), icon=":material/info:")
        return
    chosen = view.evaluated(known)
    steps = charts.steps_around(known, chosen)
    maps, sentences = map_reads.layers_over_steps(view.run, head, steps, normalised)
    if not sentences:
        st.info(literal(f"Run '{view.run.name}' has no head {head}."), icon=":material/info:")
        return
    small = shrink(maps, charts.CELLS)
    block = maps.shape[-1] // small.shape[-1]
    caption = captions.layers_over_steps(view.run, head, steps, sentences, block, colour_end(small), normalised)
    divided = captions.divided(normalised)
    table = charts.layers_table(small, head, steps, block)
    st.html(charts.colour_scale(small))
    figures.show_plot(
        charts.layers_figure(small, steps, chosen, view.run.step_unit),
        table.assign(data=(results.note(view.run, METRIC) + divided).lstrip(", ")) if divided else table,
        f"{view.run.name}-attention-layers-head{head}",
        caption,
        f"Head {head} in every layer{divided}",
        view,
        METRIC,
        on_point=_open_map,
        own_width=True,
        at=f"step{chosen}",
    )


def _open_map(layer: int, step: int) -> None:
    permalink.choose("layer", layer)
    permalink.choose("step", step)
    permalink.choose("section", "maps")
