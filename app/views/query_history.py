"""The Query page, all steps: which answer leads since when, and the answers' probabilities or ranks."""

import streamlit as st

from app import figures, widgets
from app.views.query_answers import TOGETHER, Answers
from embryo_core.figures import query as charts
from embryo_core.figures.captions import query as captions
from embryo_core.figures.captions.networks import MASKED_WORDS, network
from embryo_core.figures.markdown import literal
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.words import headed, quantity


def show_lead(answers: Answers, axes: charts.Axes, number: int) -> None:
    """Draw the final answer, when it first led, and from when for good; one step tells neither."""
    history, unit = answers.history, answers.asked.view.run.step_unit
    st.header(f"Over {quantity(len(answers.trace.steps), 'checkpoint')}", anchor=False)
    widgets.show_problems(answers.asked.view.run, answers.problems)
    with st.container(horizontal=True, key=f"lead_{number}"):
        st.metric("Final answer", literal(history.leaders[-1]), border=True)
        if len(answers.trace.steps) > 1:
            st.metric(headed("First leads at", unit), f"{history.first_led:,}", border=True)
            st.metric(headed("Leads for good from", unit), f"{history.leads_from:,}", border=True)


def show_probability(answers: Answers, axes: charts.Axes, number: int) -> None:
    """Draw the probability of each answer over the steps."""
    view, history = answers.asked.view, answers.history
    table = with_smoothed(answers.table, "probability", view.smoothing, ["token", "role"])
    led = history.first_led, history.leads_from
    figure = figures.drawn(charts.probability, table, *led, charts.of_run(axes, view.axis))
    caption = captions.probability(view.run.name, len(answers.trace.steps), answers.which)
    caption += network([view.run], MASKED_WORDS)
    title = f"Probability of each answer: {answers.asked.text}{answers.which}"
    figures.show_plot(figure, answers.asked_of(table), answers.file_name("probability", number), caption, title, view)


def show_rank(answers: Answers, axes: charts.Axes, number: int) -> None:
    """Draw the rank of each answer over the steps."""
    view, history = answers.asked.view, answers.history
    table = with_smoothed(answers.table, "rank", view.smoothing, ["token", "role"])
    led = history.first_led, history.leads_from
    figure = figures.drawn(charts.rank, table, *led, charts.of_run(axes, view.axis))
    caption = captions.rank(answers.mask == TOGETHER, len(answers.trace.steps), answers.which)
    caption += network([view.run], MASKED_WORDS)
    title = f"Rank of each answer: {answers.asked.text}{answers.which}"
    figures.show_plot(figure, answers.asked_of(table), answers.file_name("rank", number), caption, title, view)


CURVES = {"probability": show_probability, "rank": show_rank}  # one of them at a time: each takes long to draw
