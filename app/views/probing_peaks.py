"""The Probing page, peak and decay: where each layer peaks on each task, and how far it has come down since."""

import pandas as pd
import streamlit as st

from app import figures, permalink
from app.tables import PERCENT, show_rows
from app.view import View
from embryo_core.figures import probing_layers as charts
from embryo_core.figures.captions import probing as captions
from embryo_core.figures.probing_scores import label, layer_name
from embryo_core.words import headed


def show(view: View, frame: pd.DataFrame) -> None:
    """Draw the peaks of all tasks and layers as a figure and as a table, folded where no layer has surely fallen."""
    table = charts.peaks(frame)
    fallen = bool((table["low"] > 0).any())
    with st.expander("Peak and decay" if fallen else captions.NOTHING_FELL, expanded=fallen):
        figures.show_plot(
            charts.peaks_figure(table, sorted(set(frame["step"])), view.axis),
            table,
            f"{view.run.name}-probing-peaks",
            captions.peaks(table),
            "Peak and decay of each layer",
            view,
            captions.METRIC,
            on_point=_choose,
        )
        _table(view, table)


def _choose(task: str, layer: int, step: int) -> None:
    permalink.choose("probe_task", task)
    permalink.choose("probe_layer", layer)
    permalink.choose("step", step)
    permalink.choose("probing", "layers")  # the section that shows them


def _table(view: View, table: pd.DataFrame) -> None:
    number = st.column_config.NumberColumn
    shown = table.assign(task=table["task"].map(label), layer=table["layer"].map(layer_name))
    show_rows(
        shown.assign(decay=100 * table["decay"])[["task", "layer", "step", "f1", "last", "decay", "n"]],
        "peak_table",
        lambda row: _choose(*table.iloc[row][["task", "layer", "step"]]),
        {
            "step": number(headed("peak at", view.run.step_unit), format="localized"),
            "f1": number("F1 there", **PERCENT),
            "last": number("F1, last step", **PERCENT),
            "decay": number("decay (points)", format="%.1f"),
            "n": number("n", format="localized", help="Targets of the test set"),
        },
        height=248,
    )
    st.caption(captions.PEAK_TABLE)
