"""Tokens: when each part of speech is learned (Section 3, Figures 1, 7 and 8)."""

from collections.abc import Collection
from typing import Any

import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.view import View
from app.views import tokens_words
from app.views.compare import pick_rule
from embryo_core.errors import FigureError
from embryo_core.figures import acquisition, new_pieces, tags, tokens
from embryo_core.findings.words import measured_as
from embryo_core.metric import Metric
from embryo_core.metrics import METRICS
from embryo_core.types import Run

PAGE = "tokens"  # of the metrics that are shown here
MAX_PILLS = 12  # categories offered as pills


def show() -> None:
    """Draw the page."""
    metrics = {metric.name: metric for metric in METRICS if metric.page == PAGE}
    view = widgets.open_page("Tokens", lambda run: results.evaluated(run, measured_as(run, _metric(metrics))))
    titles = {name: tokens.title_of(name) for name, metric in metrics.items() if _applies(view.run, metric)}
    above = st.container()  # the figure is before its controls
    choices = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    if not titles:
        widgets.require(view.run, {"words"})
    with choices:
        metric = pickers.pick_one("metric", "Task", sorted(titles), format_func=titles.__getitem__, segmented=True)
    scores = results.scores(view.run, metric)
    if scores.empty:
        message = f"{titles[metric]} has not been computed for '{view.run.name}' yet."
        widgets.stop_uncomputed(view.run, metric, message)
    sets = tokens.category_sets(scores)
    with choices:
        family = pickers.pick_one("family", "By", list(sets), format_func=str.capitalize, segmented=True)
        rescaled = pickers.pick_rescaled("Accuracy")
        with pickers.options():
            bands = pickers.pick_switch("bands", "95 % bands", default=True)
            pickers.pick_smoothing()
    few = len(sets[family]) <= MAX_PILLS
    first = tokens.default_categories(family, sets[family])
    groups = pickers.pick_many(
        family.replace(" ", "_"), "Categories", sets[family], first, tags.named, pills=few, bulk=True
    )
    drawn = {"metric": metric, "groups": tuple(groups)}
    try:
        figure = figures.draw(view, tokens.accuracy, **drawn, rescaled=rescaled, bands=bands)
    except FigureError:
        st.info("Choose at least one category that has results.", icon=":material/info:")
        return
    with above:
        widgets.show_headline(figure.headline)
        figures.show(figure, on_point=_open_point, titled=True)
    left, right = st.columns([4, 3], gap="large")
    with left:
        own = figure.table[figure.table["run"] == figure.table["run"].iloc[0]]
        step = view.evaluated(own["step"].unique())
        tokens_words.show(view, metric, list(own["group"].unique()), tokens.most_changed(own, 1)[0], step)
    with right:
        show_acquisition(view, **drawn)
    if any(map(new_pieces.new_words, view.drawn)):
        st.header("Words with new pieces", anchor=False)
        figures.show_or_explain(view, new_pieces.accuracy, **drawn)


def show_acquisition(view: View, **drawn: Any) -> None:
    """Draw the order of acquisition, by the rule that the reader picks."""
    st.header("Order of acquisition", anchor=False)
    figures.show_or_explain(view, acquisition.acquisition, **drawn, rule=pick_rule())


def _applies(run: Run, metric: Metric) -> bool:
    """Return whether a metric is offered: if it has results, or the run's models give what it needs."""
    return not results.scores(run, metric.name).empty or metric.needs <= results.given(run)


def _metric(names: Collection[str]) -> str:
    """Return the metric in the URL, else the first."""
    wanted = permalink.get("metric") or ""
    return wanted if wanted in names else min(names)


def _open_point(group: str, step: int) -> None:
    permalink.choose("words", group)
    permalink.choose("step", step)
