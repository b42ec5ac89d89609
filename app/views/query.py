"""Query: how any checkpoint fills or continues the reader's own text, and the answer over all of pretraining."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import notices, permalink, pickers, results, widgets
from app.components.copy_button import copy_button
from app.drawing import drawing
from app.view import View
from app.views import query_figures
from app.views.query_ask import Request, choose_text, form_of, pick_requests
from app.views.query_rounds import AskedQuestion, ask_request, show_rounds
from embryo_core import query, runs
from embryo_core.errors import EmbryoError
from embryo_core.figures.markdown import literal
from embryo_core.figures.query import JOINTLY, share_axes
from embryo_core.figures.query_captions import describe_examples
from embryo_core.query import TOGETHER
from embryo_core.types import Run
from embryo_core.words import without_treebank_spaces

ALL_MASKS = "all together"  # choice of all masks at once, also its value in the URL
COMPARE_HINT = (
    "To see another run's answers, open “A fact, a word to track, a comparison” and choose it under “Compare with”."
)

Part = Callable[[AskedQuestion], None]  # draws one part of the answer to a question


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Query", askable_steps, COMPARE_HINT)
    if "next_words" not in results.capabilities(view.run):
        notices.require(view.run, {"masked_words"})
    view = widgets.at_weights(view)
    with suppress(EmbryoError):  # the form reads the examples again and shows the error
        examples = results.examples(view.run)
        notices.show_headline(describe_examples(examples, len(view.loadable), view.axis))
    _show_questions(view)


@st.fragment
def _show_questions(view: View) -> None:
    """Draw the form, the questions and their answers; a choice here draws only this part of the page again."""
    with drawing(), notices.explaining():
        checkpoints = tuple(runs.checkpoints(view.run))
        _ask(replace(view, checkpoints=checkpoints, smoothing=pickers.chosen_smoothing()))
    permalink.publish()


def _ask(view: View) -> None:
    """Draw the form, ask its questions and draw the answers, the lens and the commands."""
    requests = pick_requests(view)
    if not requests:
        st.info(f"The text is empty; write {form_of(view.run).wanted}, or choose an example.", icon=":material/edit:")
        return
    if len(requests) == 1 and _suggest_mask(requests[0]):
        return
    mask = _pick_mask(max(request.masks for request in requests))
    if mask == TOGETHER:
        notices.show_caption(JOINTLY)
    questions = []
    for request, column in zip(requests, _columns(len(requests))):
        with column, notices.explaining():
            questions.append(ask_request(request, mask))
    if not questions:
        return
    answers_area, controls_area = st.container(), st.container(horizontal=True, gap="large", key="query_how")
    curves, is_log = "probability", False
    if any(len(question.view.loadable) > 1 for question in questions):
        with controls_area:
            curves, is_log = _pick_curves()
            pickers.pick_smoothing()
    with answers_area:
        show_rounds(questions, partial(_show_answers, count=len(requests), curves=curves, log=is_log))
    query_figures.show_continuations(questions)
    show_lens = partial(query_figures.show_lens, questions)
    pickers.fold("lens", "Lens: what each layer would answer", show_lens, "pin")
    _show_commands(questions, mask)


def _suggest_mask(request: Request) -> bool:
    """Offer texts with [MASK] if the model predicts masked words and the text has no mask; return whether it did."""
    if "masked_words" not in results.capabilities(request.view.run) or query.count_masks(request.text):
        return False
    words = request.text.strip().rstrip(" .")
    st.warning("The text has no \\[MASK] for the word to be predicted.", icon=":material/edit:")
    for text in dict.fromkeys((f"{words} [MASK] .", " ".join([*words.split()[:-1], "[MASK]", "."]))):
        st.button(
            literal(f"Ask “{without_treebank_spaces(text)}”"), key=f"ask_{text}", on_click=choose_text, args=(text,)
        )
    return True


def askable_steps(run: Run) -> list[int]:
    """Return the steps of a run that can answer questions: those with weights."""
    return [checkpoint.step for checkpoint in runs.loadable_checkpoints(run)]


def _pick_mask(masks: int) -> int:
    """Pick one mask, counted from 1, or TOGETHER for all; return 1 for a text of one mask or of more than MAX_MASKS."""
    if not 1 < masks <= query.MAX_MASKS:
        permalink.put_in_url("mask", None)
        return 1
    options = [ALL_MASKS, *range(1, masks + 1)]
    choice = pickers.pick_one(
        "mask",
        "[MASK]",
        options,
        format_func=lambda mask: str(mask).capitalize(),
        segmented=True,
        optional=True,
        width="content",
    )
    return TOGETHER if choice == ALL_MASKS else choice


def _pick_curves() -> tuple[str, bool]:
    """Pick and return the quantity of the curves, one of CURVE_QUANTITIES, and whether its axis is logarithmic."""
    options: dict[str, Any] = {"segmented": True, "optional": True, "width": "content"}
    curves = pickers.pick_one("curves", "Curves", query_figures.CURVE_QUANTITIES, format_func=str.capitalize, **options)
    if curves == "rank":
        return curves, False
    return curves, pickers.pick_one("probability", "Probability axis", ("linear", "log"), **options) == "log"


# === Answers, in columns ===


def _show_answers(questions: list[AskedQuestion], count: int, curves: str, log: bool) -> None:
    """Draw the answers to `count` questions on shared axes: at the chosen step, and over the steps asked so far."""
    tables, axes = [question.table for question in questions], [question.view.axis for question in questions]
    draw_curves = partial(query_figures.show_curves, curves=curves, shared=share_axes(tables, axes, log))
    if count > 1:
        _show_compared(questions, count, [query_figures.show_step, query_figures.show_lead, draw_curves])
        return
    left, right = st.columns([2, 3], gap="large")
    with left:
        query_figures.show_step(questions[0])
    with right:
        query_figures.show_lead(questions[0])
        draw_curves(questions[0])


def _columns(count: int) -> list[DeltaGenerator]:
    """Return `count` columns, two in a row; a single one has the whole width."""
    return [column for _ in range(0, count, 2) for column in st.columns(min(count, 2), gap="large")]


def _show_compared(questions: list[AskedQuestion], count: int, parts: list[Part]) -> None:
    """Draw questions in pairs, with a row for each part, so that the same parts of two answers are side by side.

    Each part is below its question, which only a narrow window shows again (page.css).
    """
    for first in range(1, count + 1, 2):
        numbers = range(first, min(first + 2, count + 1))
        with st.container(key=f"questions_{first}"):
            _show_row(questions, numbers, query_figures.show_question)
        for row, draw in enumerate(parts):
            _show_row(questions, numbers, draw, f"again_{row}")


def _show_row(questions: list[AskedQuestion], numbers: range, draw: Part, heading: str = "") -> None:
    """Draw one part of these questions side by side; an unanswered question leaves its column empty."""
    by_number = {question.number: question for question in questions}
    for number, column in zip(numbers, _columns(len(numbers))):
        if question := by_number.get(number):
            with column:
                if heading:
                    with st.container(key=f"{heading}_{number}"):
                        query_figures.show_question(question)
                draw(question)


def _show_commands(requests: Sequence[Request], mask: int) -> None:
    """Draw the commands that ask the same questions at a terminal."""
    section = st.expander("As commands", key="query_commands", on_change="rerun")
    if not section.open:
        return
    lines = [
        line
        for request in requests
        for line in query.commands(request.view.run.name, request.view.step, request.text, request.word, mask)
    ]
    with section:
        copy_button("Copy all", key="copy_commands", text="\n".join(lines))
        for line in lines:
            st.code(line, language="bash", wrap_lines=True)
