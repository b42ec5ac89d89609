"""Query: what any checkpoint answers to the reader's own text with [MASK], and the answer over all of pretraining."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import permalink, pickers, results, widgets
from app.components.copy_button import copy_button
from app.view import View
from app.views import query_answers, query_history, query_lens, query_progress, query_step
from app.views.query_answers import TOGETHER, Answers
from app.views.query_ask import Asked, ask
from embryo_core import query
from embryo_core.errors import EmbryoError
from embryo_core.figures import query as charts
from embryo_core.figures.captions import openings
from embryo_core.figures.captions import query as captions

Part = Callable[..., None]  # draws a part of some Answers, the `number`-th of the page


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Query", lambda run: results.default_scale(run, "mask_prediction"), captions.ALONE)
    widgets.require(view.run, {"masked_words"})
    view = widgets.at_weights(view)
    with suppress(EmbryoError):  # the examples are asked for again below
        widgets.show_opening(openings.query(results.examples(view.run), len(view.loadable), view.run.step_unit))
    questions = ask(view)
    if not questions:
        st.info(
            "The text is empty; write a sentence with [MASK] for the word to be predicted, or choose an example.",
            icon=":material/edit:",
        )
        query_answers.load_ahead(view.run)
        return
    mask = _pick_mask(max(asked.masks for asked in questions))
    if mask == TOGETHER:
        widgets.show_caption(captions.JOINTLY)
    found: list[Answers | None] = [None] * len(questions)
    for i, column in enumerate(_beside(len(questions))):
        with column, widgets.explaining():
            later = query_progress.asks_later(questions[i], questions)
            found[i] = query_answers.over_steps(questions[i], mask, later)
    known = [answers for answers in found if answers]
    if known:
        above, below = st.container(), st.container(horizontal=True, gap="large", key="query_how")
        with below:
            curves, log = _pick_curves()
            pickers.pick_smoothing()
        with above:
            query_progress.show(found, partial(_show_answers, view=view, curves=curves, log=log))
        query_lens.show(known)
        _show_commands([answers.asked for answers in known], mask)


def _pick_mask(masks: int) -> int | str:
    """Which mask to look at, counted from 1; with several there is also the answer to all of them together."""
    if not 1 < masks <= query.MAX_MASKS:
        permalink.show("mask", None)
        return 1
    options = [TOGETHER, *range(1, masks + 1)]
    return pickers.pick_one(
        "mask",
        "[MASK]",
        options,
        format_func=lambda mask: str(mask).capitalize(),
        segmented=True,
        optional=True,
        width="content",
    )


def _pick_curves() -> tuple[str, bool]:
    """What the curves over the steps show, and whether the axis of probability is a log one."""
    how = {"segmented": True, "optional": True, "width": "content"}
    curves = pickers.pick_one("curves", "Curves", tuple(query_history.CURVES), format_func=str.capitalize, **how)
    if curves == "rank":
        return curves, False
    return curves, pickers.pick_one("probability", "Probability axis", ("linear", "log"), **how) == "log"


# === Answers, side by side ===


def _show_answers(found: list[Answers | None], view: View, curves: str, log: bool) -> None:
    """All questions, on shared axes: at the chosen step, and over the steps asked so far."""
    tables = [answers.table for answers in found if answers]
    axes = charts.shared_axes(tables, view.axis, log)
    parts = [partial(part, axes=axes) for part in (query_history.show_lead, query_history.CURVES[curves])]
    _show_alone(found[0], parts) if len(found) == 1 else _show_compared(found, parts)


def _beside(count: int) -> list[DeltaGenerator]:
    """A column for each of so many questions, two side by side."""
    return [column for _ in range(0, count, 2) for column in st.columns(min(count, 2), gap="large")]


def _show_alone(answers: Answers, parts: Sequence[Part]) -> None:
    """One question: its answers at the chosen step, and beside them those over all steps."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        query_step.show(answers, 1)
    with right:
        for draw in parts:
            draw(answers, number=1)


def _show_compared(found: list[Answers | None], parts: Sequence[Part]) -> None:
    """Questions in pairs: each kind of answer in a row of its own, so that like stands beside like."""
    for first in range(0, len(found), 2):
        pair = found[first : first + 2]
        with st.container(key=f"questions_{first + 1}"):
            _show_row(pair, first + 1, lambda answers, number: query_step.show_question(answers))
        for row, draw in enumerate((query_step.show, *parts)):
            _show_row(pair, first + 1, partial(_show_headed, draw, row))


def _show_row(pair: list[Answers | None], first: int, draw: Part) -> None:
    for number, (column, answers) in enumerate(zip(_beside(len(pair)), pair), start=first):
        if answers:
            with column:
                draw(answers, number=number)


def _show_headed(draw: Part, row: int, answers: Answers, number: int) -> None:
    """A cell of a `row` with the question that it answers, which only a narrow window shows: see page.css."""
    with st.container(key=f"again_{row}_{number}"):
        query_step.show_question(answers)
    draw(answers, number=number)


def _show_commands(questions: list[Asked], mask: int | str) -> None:
    """The same questions at a terminal."""
    one = None if mask == TOGETHER else mask
    asked = [captions.commands(q.view.run.name, q.view.step, q.text, q.word, one) for q in questions]
    lines = [line for commands in asked for line in commands]
    with st.expander("As commands"):
        copy_button("Copy all", key="copy_commands", text="\n".join(lines))
        for line in lines:
            st.code(line, language="bash", wrap_lines=True)
