"""Tokens: when each part of speech is learned (Section 3, Figures 1, 7 and 8)."""

from collections.abc import Iterable
from functools import partial

import pandas as pd
import streamlit as st

from app import curve_reads, figures, overlays, permalink, pickers, results, widgets
from app.view import View
from app.views import compare, tokens_words
from embryo_core.figures import tags
from embryo_core.figures import tokens as charts
from embryo_core.figures.captions import openings
from embryo_core.figures.captions import tokens as captions
from embryo_core.figures.captions.compare import order_of
from embryo_core.metric import Metric
from embryo_core.metrics import METRICS
from embryo_core.types import Run

PAGE = "tokens"  # of the metrics that are shown here
PILLS = 12  # categories that are offered as pills


def show() -> None:
    """Draw the page."""
    metrics = {metric.name: metric for metric in METRICS if metric.page == PAGE}
    titles = {name: name.removesuffix("_accuracy").replace("_", " ").capitalize() for name in metrics}
    view = widgets.open_page("Tokens", lambda run: results.usual_scale(run, _metric(titles)))
    titles = {name: title for name, title in titles.items() if _applies(view.run, metrics[name])}
    choices = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    if not titles:
        widgets.require(view.run, {"masked_words"})
    with choices:
        metric = pickers.pick_one("metric", "Task", sorted(titles), format_func=titles.get, segmented=True)
    scores = results.scores(view.run, metric)
    if scores.empty:
        message = f"{titles[metric]} has not been computed for '{view.run.name}' yet."
        widgets.stop_uncomputed(view.run, metric, message)
    sets = charts.category_sets(scores)
    with choices:
        family = pickers.pick_one("family", "By", list(sets), format_func=str.capitalize, segmented=True)
        rescaled = pickers.pick_rescaled("Accuracy")
        bands = pickers.pick_switch("bands", "95 % bands", default=True)
        pickers.pick_smoothing()
    usual, few = charts.usual(family, sets[family]), len(sets[family]) <= PILLS
    groups = pickers.pick_many(family.replace(" ", "_"), "Categories", sets[family], usual, tags.named, pills=few)
    measured = curve_reads.token_curves(view.run, metric, tuple(groups), rescaled)
    data = curve_reads.token_curves_drawn(view.run, metric, tuple(groups), rescaled, view.smoothing)
    if data.empty:
        st.info("Choose at least one category that has results.", icon=":material/info:")
        return
    order = curve_reads.token_order(view.run, metric, tuple(groups))
    if data["step"].nunique() > 1:
        widgets.show_opening(openings.tokens(titles[metric], order, view.run.counted_in))
    _accuracy(view, metric, titles[metric], data, groups, rescaled, bands)
    left, right = st.columns([4, 3], gap="large")
    with left:
        step = view.evaluated(measured["step"].unique())
        tokens_words.show(view, metric, list(data["group"].unique()), charts.most_changed(measured), step)
    with right:
        _acquisition(view, metric, tuple(groups), (int(measured["step"].min()), int(measured["step"].max())))


def _applies(run: Run, metric: Metric) -> bool:
    """Whether a metric is offered: where it has results, or the run's models give what it needs."""
    return not results.scores(run, metric.name).empty or metric.needs <= results.given(run)


def _metric(names: Iterable[str]) -> str:
    """The metric in the URL, else the first."""
    wanted = permalink.get("metric")
    return wanted if wanted in names else min(names)


def _accuracy(
    view: View, metric: str, title: str, data: pd.DataFrame, chosen: Iterable[str], rescaled: bool, bands: bool
) -> None:
    st.header(f"{title} accuracy by category", anchor=False)
    note = results.note(view.run, metric, "the treebank given to the evaluation")
    caption = captions.accuracy(metric, title, note, data, chosen, rescaled, bands)
    if rescaled:
        answers = results.commonest_answers(view.run, metric, tuple(data["group"].unique()))
        caption += captions.one_word(answers, view.run.counted_in)
    name, title = f"{view.run.name}-{metric}", f"{title} accuracy by category"
    if view.beside:
        groups = tuple(data["group"].unique())
        read = partial(curve_reads.token_curves_drawn, metric=metric, groups=groups, rescaled=rescaled)
        curves = charts.overlay_curves(rescaled)
        overlays.show(view, read, curves, name, caption, title, metric, _open_point, bands)
        return
    figure = figures.drawn(charts.accuracy_figure, data, view.axis, rescaled, bands)
    figures.show(figure, data, name, caption, title, view, metric, on_point=_open_point)


def _open_point(group: str, step: int) -> None:
    permalink.choose("words", group)
    permalink.choose("step", step)


def _acquisition(view: View, metric: str, groups: tuple[str, ...], ends: tuple[int, int]) -> None:
    st.header("Order of acquisition", anchor=False)
    rule = compare.pick_rule()
    if view.beside:
        table = compare.orders_of(view, metric, groups, rule)
        compare.show_acquisitions(view, table, rule, metric, metric)
        return
    order = curve_reads.token_order(view.run, metric, groups, rule)
    if order["onset"].isna().all():
        widgets.show_caption(captions.NONE_ACQUIRED)
        return
    figure = figures.drawn(charts.acquisition_figure, order, ends, view.axis)
    name = f"{view.run.name}-{metric}-acquisition"
    caption, title = captions.acquisition(order, rule), order_of(metric)
    figures.show(figure, order.assign(metric=metric), name, caption, title, view, metric)
