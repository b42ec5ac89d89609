"""Query: what any checkpoint answers to the reader's own text with [MASK], and the answer over all of pretraining."""

import re
import shlex

import pandas as pd
import streamlit as st

from app import permalink, widgets
from app.charts import query as charts
from embryo_core import query, runs
from embryo_core.errors import BrokenCheckpoint, QueryError
from embryo_core.model_cache import MODELS
from embryo_core.trace import Course, Trace, trace
from embryo_core.types import Prediction, Run

EXAMPLES = (
    "The capital of France is [MASK] .",
    "She put the book [MASK] the table .",
    "They [MASK] going home .",
    "He was born in [MASK] , in the [MASK] of England .",
)
LONGEST_LINK = 2_000  # characters of text that are put into the URL
TOGETHER = "all together"
JOINTLY = (
    "Several masks are answered jointly: the probability of an answer is the product, over its words from left to right, "
    "of the probability of each word given the words before it filled in and the later masks still in place (beam of "
    f"{query.BEAM}). The candidates for one mask are its factor, given the best answer before it."
)


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Query")
    text = _pick_text()
    if not text.strip():
        st.info(
            "Write a sentence with [MASK] for the word to be guessed, or choose an example.", icon=":material/edit:"
        )
        return
    try:
        text = query.normalise(text)
        mask = _pick_mask(text.count("[MASK]"))
        left, right = st.columns([2, 3], gap="large")
        with left:
            _show_answers(view, text, mask)
        with right:
            _show_trace(view, text, mask)
    except QueryError as error:
        st.warning(str(error), icon=":material/warning:")
    else:
        _show_command(view, text)


# === Pickers ===


def _pick_text() -> str:
    """The text, kept in the URL, with examples to click; it is shown as it was typed and never read as markup."""
    st.session_state["query_text"] = permalink.get("text") or ""
    text = st.text_area(
        "Text with [MASK]",
        key="query_text",
        height=80,
        placeholder=EXAMPLES[0],
        help="[mask] in any case is read as [MASK]. Ctrl+Enter asks.",
        on_change=lambda: permalink.choose("text", st.session_state["query_text"]),
    )
    with st.container(horizontal=True):
        for example in EXAMPLES:
            st.button(example, type="tertiary", on_click=permalink.choose, args=("text", example))
    permalink.show("text", text if 0 < len(text) <= LONGEST_LINK else None)
    return text


def _pick_mask(masks: int) -> int | str:
    """Which mask to look at, counted from 1; with several there is also the answer to all of them together."""
    if masks == 1:
        permalink.show("mask", None)
        return 1
    st.caption(JOINTLY)
    options = [TOGETHER, *range(1, masks + 1)]
    return widgets.pick_one("mask", "[MASK]", options, format_func=lambda m: str(m).capitalize(), segmented=True)


# === At the chosen step ===


def _show_answers(view: widgets.View, text: str, mask: int | str) -> None:
    st.subheader(f"At step {view.step:,}", anchor=False)
    try:
        together, by_mask = _answers(view.run, str(view.run.path), view.step, text)
    except BrokenCheckpoint as error:
        st.error(str(error), icon=":material/error:")
        return
    found = pd.DataFrame(together if mask == TOGETHER else by_mask[mask - 1])
    columns = {
        "rank": st.column_config.NumberColumn("rank", width="small"),
        "token": st.column_config.TextColumn("words" if mask == TOGETHER else "piece", width="medium"),
        "probability": st.column_config.ProgressColumn(
            "probability", format="percent", min_value=0, max_value=found["probability"].max()
        ),
    }
    st.dataframe(found, column_config=columns, column_order=list(columns), hide_index=True, key="query_answers")


@st.cache_data(max_entries=256, show_spinner="Asking the model; the first query also starts torch …")
def _answers(_run: Run, path: str, step: int, text: str) -> tuple[list[Prediction], list[list[Prediction]]]:
    """The best joint answers, and the best pieces for each mask, at one step."""
    model = MODELS.get(runs.checkpoint(_run, step))
    reply = query.ask(model, query.read_question(text, model.tokenizer, model.max_positions))
    return query.joint_predictions(reply, model.tokenizer), query.predictions(reply, model.tokenizer)


# === Over all steps ===


def _show_trace(view: widgets.View, text: str, mask: int | str) -> None:
    found = _trace(view.run, str(view.run.path), view.steps, text)
    course = found.joint if mask == TOGETHER else found.masks[mask - 1]
    data = _table(found.steps, course)
    st.subheader(f"Over {len(found.steps)} checkpoints", anchor=False)
    for problem in found.skipped:
        st.warning(problem, icon=":material/warning:")
    with st.container(horizontal=True):
        st.metric("Final answer", _literal(course.leaders[-1]), border=True)
        st.metric("First leads at step", f"{course.first_led:,}", border=True)
        st.metric("Leads for good from step", f"{course.leads_from:,}", border=True)
    what = "Followed are all answers that ever led and the best five at the last step."
    name = f"{view.run.name}-query"
    marks = (course.first_led, course.leads_from, view.log, view.step)
    caption = f"Probability at each of {len(found.steps)} checkpoints of run '{view.run.name}', one text. {what}"
    widgets.show_figure(charts.probability(data, *marks), data, f"{name}-probability", caption)
    among = f"the {query.BEAM} best joint answers" if mask == TOGETHER else "all pieces of the vocabulary"
    caption = f"Rank among {among}; 1 leads."
    widgets.show_figure(charts.rank(data, *marks), data, f"{name}-rank", caption)


@st.cache_data(max_entries=64, show_spinner="Asking every checkpoint …")
def _trace(_run: Run, path: str, steps: tuple[int, ...], text: str) -> Trace:
    return trace(_run, text)


def _table(steps: tuple[int, ...], course: Course) -> pd.DataFrame:
    """One row per candidate and step, as it is drawn and downloaded."""
    rows = [
        (candidate.token, step, probability, rank, leader == candidate.token, candidate.token == course.leaders[-1])
        for candidate in course.candidates
        for step, probability, rank, leader in zip(steps, candidate.probabilities, candidate.ranks, course.leaders)
    ]
    table = pd.DataFrame(rows, columns=["token", "step", "probability", "rank", "leads", "final"])
    return table.astype({"rank": "Int64"})


def _literal(token: str) -> str:
    """Markdown that shows a token as it is: every punctuation mark escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", token)


# === As a command ===


def _show_command(view: widgets.View, text: str) -> None:
    with st.expander("As a command"):
        for step in (view.step, "all"):
            command = ["python", "-m", "embryo_core", "query", view.run.name, text, "--step", str(step)]
            st.code(shlex.join(command), language="bash", wrap_lines=True)
