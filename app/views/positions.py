"""The Overview, positions: how large their embeddings are beside words, how similar states are within a sentence."""

from functools import partial

import pandas as pd
import streamlit as st

from app import figures, overlays, results
from app.view import View
from embryo_core.figures import positions as charts
from embryo_core.figures.captions import positions as captions
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

METRIC = "positions"
TITLES = {charts.DEVIATION: "Position and word embeddings", charts.COSINE: "Similarity of states within a sentence"}


def show(view: View) -> None:
    """Draw the two figures side by side where they have been computed; the section on coverage has the command."""
    if _curves(view.run, charts.COSINE).empty:
        return
    for column, metric in zip(st.columns(2, gap="large"), TITLES):
        with column:
            _figure(view, metric)


def _figure(view: View, metric: str) -> None:
    st.header(TITLES[metric], anchor=False)
    data, name = _curves(view.run, metric), f"{view.run.name}-{metric.replace('_', '-')}"
    if metric == charts.DEVIATION:
        caption = captions.deviation(data, view.run.step_unit)
    else:
        caption = captions.cosine(data, results.note(view.run, METRIC, "a treebank"), view.run.step_unit)
    source = METRIC if metric == charts.COSINE else ""  # embeddings are read off the weights
    if view.compared_runs:
        read, curves = partial(_curves, metric=metric), charts.overlay_curves(metric)
        overlays.show(view, read, curves, name, caption, TITLES[metric], source)
        return
    data = with_smoothed(data, "value", view.smoothing, ["curve"])
    figures.show_plot(charts.figure(data, metric, view.axis), data, name, caption, TITLES[metric], view, source)


def _curves(run: Run, metric: str) -> pd.DataFrame:
    return charts.curves_of(results.scores(run, metric), metric)
