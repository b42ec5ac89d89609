"""The Probing page, one probe: how it and its control were trained."""

import streamlit as st

from app import figures, results
from app.view import View
from embryo_core.figures import probing_layers as charts
from embryo_core.figures.captions import probing as captions
from embryo_core.figures.markdown import literal
from embryo_core.figures.probing_scores import label, layer_name


def show(view: View, task: str, layer: int, step: int) -> None:
    """Draw how the probe of this task, layer and step was trained."""
    name = literal(label(task))
    st.header(f"How the probe was trained: {name}, {layer_name(layer)}, {view.point(step)}", anchor=False)
    table = results.probes(view.run, task, layer, step)
    if table.empty:
        st.info("The training curve of this probe was not kept.", icon=":material/info:")
        return
    figures.show_plot(
        charts.training_figure(table),
        table,
        f"{view.run.name}-{task}-training",
        captions.training(table, task, results.sources(view.run)),
        f"Training of a probe: {label(task)}, {layer_name(layer)}, {view.point(step)}",
        view,
        captions.METRIC,
        at=f"layer{layer}-step{step}",
    )
