"""The Overview, n-grams: how far predictions are from those of unigrams and bigrams, where computed."""

import pandas as pd
import streamlit as st

from app import figures, overlays, results
from app.view import View
from embryo_core.figures import ngrams as charts
from embryo_core.figures.captions import ngrams as captions
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

METRIC = "ngram_divergence"
TITLE = "Distance from unigrams and bigrams"


def computed(run: Run) -> bool:
    """Whether there is anything to draw; the section on coverage names the command where not."""
    return not _divergences(run).empty


def show(view: View) -> None:
    """Draw the two curves, of a run for which they have been `computed`."""
    data = _divergences(view.run)
    st.header(TITLE, anchor=False)
    note = results.note(view.run, METRIC, "held-out text")
    name, caption = f"{view.run.name}-ngrams", captions.divergence(data, note, view.run.step_unit)
    if view.compared_runs:
        overlays.show(view, _divergences, charts.OVERLAY, name, caption, TITLE, METRIC)
        return
    data = with_smoothed(data, "value", view.smoothing, ["group"])
    figures.show_plot(charts.divergence_figure(data, view.axis), data, name, caption, TITLE, view, METRIC)


def _divergences(run: Run) -> pd.DataFrame:
    return charts.divergences(results.scores(run, METRIC), results.scores(run, f"{METRIC}_error"))
