"""The Overview, coverage: where something has not been computed yet, what has been, and the command for the rest."""

import streamlit as st

from app import figures, results
from app.view import View
from embryo_core.figures import overview as charts
from embryo_core.figures.captions import overview as captions
from embryo_core.metrics import METRICS


def show_missing(view: View) -> None:
    """Draw a row of marks for the checkpoints and for each metric, unless there is nothing left to compute."""
    given = results.given(view.run)
    data_of = {metric.name: metric.source for metric in METRICS if metric.needs <= given}
    written = results.done(view.run)
    done = {metric: written[metric] for metric in data_of}
    data = charts.coverage_table(view.run.planned_steps, view.steps, done)
    missing = {metric: data_of[metric] for metric, steps in done.items() if not steps.issuperset(view.loadable)}
    if data["done"].all():
        return
    st.header("What has been computed", anchor=False)
    figure = figures.drawn(charts.coverage, data, view.axis)
    thinned = len(view.steps) - len(view.loadable)
    with_results = len(set().union(*written.values()).intersection(view.steps).difference(view.loadable))
    caption = captions.coverage(view.run, len(view.steps), thinned, with_results, missing)
    figures.show_plot(figure, data, f"{view.run.name}-coverage", caption, "What has been computed", view)
    if missing:
        st.code(captions.command(view.run, missing), "bash", wrap_lines=True)
