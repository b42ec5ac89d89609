"""The parts of an answer on the Query page: at the chosen step, over the steps, and layer by layer."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app import figures, notices, permalink, pickers, results
from app.tables import show_ranking
from app.view import View
from app.views.query_rounds import AskedQuestion, by_layer
from embryo_core import runs
from embryo_core.figures import lens, query, query_captions
from embryo_core.figures.markdown import literal
from embryo_core.figures.query import TRACKED, TRUE_OBJECT, SharedAxes
from embryo_core.query import TOGETHER, Answers, spell_rank
from embryo_core.types import Fact, Prediction
from embryo_core.words import layer_name, quantity, sentence_case, step_unit_name

FACT_COLUMNS = ("answer", "p(answer)", "rank of object", "p(object)")  # columns of the table of a fact
CURVE_QUANTITIES = ("probability", "rank")  # only one is drawn at a time, since drawing is slow


def show_question(question: AskedQuestion) -> None:
    """Draw the run and the text of a question as a heading."""
    text = " ".join(question.text.split())
    st.markdown(f"**{literal(question.view.run.name)}**: {literal(text)}")


# === At the chosen step ===


def show_step(question: AskedQuestion) -> None:
    """Draw the answers at the chosen step."""
    view = question.view
    st.header(f"At {view.name_step(view.step)}", anchor=False)
    with notices.explaining():
        best = question.best()
        if best[0].probability < query_captions.MAX_NOISE_PROBABILITY:
            notices.show_caption(query_captions.describe_noise(view.name_step(view.step)))
        else:
            title = "words" if question.mask == TOGETHER else "piece"
            show_ranking(_ranking(best), title, key=f"answers_{question.number}")
        if question.answers.question.continues:
            (greedy,) = question.best(TOGETHER)
            st.markdown(f"{literal(question.text.strip())} **{literal(greedy.token)}**")
            notices.show_caption(query_captions.describe_continuation(greedy))
        if question.fact:
            _show_fact(question, question.fact, best[0])
    if TRACKED in question.words:
        answers = question.words[TRACKED]
        step = view.evaluated_step(answers.steps)
        notices.show_caption(query_captions.describe_word(answers, step, question.masks, view.run.step_unit))
    elif question.word and question.mask == TOGETHER:
        notices.show_caption("A word is tracked in one mask: choose which above.")


def _ranking(predictions: Sequence[Prediction]) -> pd.DataFrame:
    """Return predictions as a table with the columns rank (text), token and probability."""
    rows = [(spell_rank(p.rank, p.exact), p.token, p.probability) for p in predictions]
    return pd.DataFrame(rows, columns=["rank", "token", "probability"])


def _show_fact(question: AskedQuestion, fact: Fact, best: Prediction) -> None:
    """Draw the answer and the true object of a fact at the chosen step, as asked now and as stored by an evaluation."""
    view, rows = question.view, {}
    if TRUE_OBJECT in question.words:
        table = question.words[TRUE_OBJECT].table
        for row in table[table["step"] == view.step].itertuples():
            rows["now"] = (best.token, best.probability, spell_rank(row.rank, row.exact), row.probability)
    for row in results.answers(view.run, fact.relation, fact=fact.id, step=view.step).itertuples():
        rank = spell_rank(row.rank, True)
        rows["stored"] = (row.prediction, row.prediction_probability, rank, row.probability)
    if not rows:
        return
    table = pd.DataFrame.from_dict(rows, orient="index", columns=FACT_COLUMNS).rename_axis("").reset_index()
    shares = [name for name in FACT_COLUMNS if name[0] == "p"]
    formats = {name: st.column_config.NumberColumn(format="percent", step=0.0001) for name in shares}
    st.dataframe(table, alt="The true object", hide_index=True, column_config=formats, key=f"fact_{question.number}")
    notices.show_caption(query_captions.describe_fact(fact.object, "stored" in rows))


# === Over the steps ===


def show_lead(question: AskedQuestion) -> None:
    """Draw the final answer and, if several steps were asked, when it first leads and from when it keeps the lead."""
    view, answers = question.view, question.answers
    lead, last_step = answers.lead(question.mask), answers.steps[-1]
    over_time = len(answers.steps) > 1 or len(view.loadable) > 1
    st.header(f"Over {quantity(len(answers.steps), 'checkpoint')}" if over_time else "In short", anchor=False)
    if over_time:
        notices.show_problems(view.run, question.problems)
    is_learned = answers.best(last_step, question.mask)[0].probability >= query_captions.MIN_LEARNED_PROBABILITY
    with st.container(horizontal=True, key=f"lead_{question.number}"):
        st.metric("Final answer", literal(lead.token) if is_learned else "none", border=True)
        if len(answers.steps) > 1:
            lead_title, axis = sentence_case(lead.says(last_step)), view.axis
            st.metric(axis.step_heading("First leads at"), axis.number(lead.first) if is_learned else "–", border=True)
            name = lead_title if lead.first == last_step else axis.step_heading(f"{lead_title} from")
            st.metric(name, axis.number(lead.for_good) if is_learned else "–", border=True)
    if not is_learned:
        notices.show_caption(query_captions.NOT_LEARNED)
    if len(view.checkpoints) > len(answers.steps) == 1 and not over_time:
        checkpoint_counts = {
            run: sum(checkpoint.has_weights for checkpoint in runs.checkpoints(run)) for run in runs.list_runs()
        }
        notices.show_caption(query_captions.describe_single(view.run, view.name_step(last_step), checkpoint_counts))


def show_curves(question: AskedQuestion, curves: str, shared: SharedAxes) -> None:
    """Draw the probability or rank of each answer over the steps; nothing for a run with weights at only one step."""
    if len(question.view.loadable) < 2:
        return
    options = {"subject": question.subject, "table": question.table, "lead": question.answers.lead(question.mask)}
    figures.show(figures.draw(question.view, query.answer_curves, **options, shared=shared, column=curves))


def show_continuations(questions: list[AskedQuestion]) -> None:
    """Draw a table of the greedy continuation at each step, for each text that a decoder continues."""
    continued_questions = [question for question in questions if question.answers.question.continues]
    if continued_questions:
        st.header("Greedy continuations", anchor=False)
    for question in continued_questions:
        if len(questions) > 1:
            show_question(question)
        unit, number_column = question.view.run.step_unit, st.column_config.NumberColumn
        columns = {
            "step": number_column(step_unit_name(unit), format="localized", width=72),
            "probability": number_column("probability", format="%.1e", width=88),
        }
        table = query.continuation_table(question.answers)
        order = ["step", "continuation", "probability"]
        options: dict[str, Any] = {"alt": "Greedy continuations", "column_config": columns, "column_order": order}
        st.dataframe(table, hide_index=True, key=f"continuations_{question.number}", **options)


# === Layer by layer ===


def show_lens(questions: list[AskedQuestion]) -> None:
    """Draw the lens of each question: each layer's best word at each step, and the top words of one pinned cell."""
    if any(question.mask == TOGETHER for question in questions):
        st.info("Choose one mask above to see what each layer would put there.", icon=":material/layers:")
        return
    over_time = any(len(question.view.loadable) > 1 for question in questions)
    first_steps = "First steps, where no word reaches 10 %"
    show_first = over_time and pickers.pick_switch("first_steps", first_steps, optional=True)
    permalink.put_in_url("pin", permalink.get("pin") or None)
    for i, question in enumerate(questions):
        if len(questions) > 1:
            show_question(question)
        with notices.explaining():
            _show_one_lens(question, show_first, reports_pin=i == 0)


def _show_one_lens(question: AskedQuestion, show_first: bool, reports_pin: bool) -> None:
    """Draw the lens of one question and, next to it, its pinned cell."""
    view, subject = question.view, question.subject
    answers = by_layer(view.run, question.text, question.mask)
    is_log_spaced = len(answers.steps) + len(answers.skipped) < len(view.loadable)
    steps = view.loadable if is_log_spaced else answers.steps
    layers = list(range(int(answers.table["layer"].max()) + 1))
    pin = _pinned_cell(layers, steps, view)
    if reports_pin:
        _report_unknown_pin(pin, view)
    left, right = st.columns([3, 1], gap="medium")
    name = subject.name(view.run, "lens")
    with right:
        _pick_pin(pin, layers, steps, name, step_unit_name(view.run.step_unit).capitalize())
        with notices.explaining():
            _show_pinned(question, answers, pin, name)
    with left:
        folded_steps = [] if show_first else lens.unsure_steps(answers.table)
        folded_steps = [] if permalink.get("pin") and pin[1] in folded_steps else folded_steps
        pinned_cell = pin if permalink.get("pin") and pin[1] in answers.steps else None
        st.html(lens.colour_scale())
        options = {"table": answers.table, "pin": pinned_cell, "marked": question.marked, "folded": folded_steps}
        total = len(view.loadable) if is_log_spaced else None
        figure = figures.draw(view, lens.lens, subject=subject, total=total, **options)
        figures.show(figure, on_point=_pin_cell)


def _pin_cell(layer: int, step: int) -> None:
    permalink.choose("pin", f"{layer}-{step}")


def _pinned_cell(layers: Sequence[int], steps: Sequence[int], view: View) -> tuple[int, int]:
    """Return layer and step of the pinned cell; without a pin, the last layer at the chosen step."""
    match = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,18})", permalink.get("pin") or "")
    layer, step = map(int, match.groups()) if match else (layers[-1], view.step)
    return min(layer, layers[-1]), replace(view, step=step).evaluated_step(steps)


def _report_unknown_pin(pin: tuple[int, int], view: View) -> None:
    """Report a link to a pinned cell that is not in the grid; `pin` is the cell shown instead."""
    requested = permalink.get("pin")
    if requested and requested != f"{pin[0]}-{pin[1]}":
        pickers.report_unknown("pin", [requested], _cell_name(view, *pin))


def _pick_pin(pin: tuple[int, int], layers: Sequence[int], steps: Sequence[int], name: str, label: str) -> None:
    """Draw boxes for the layer and the step of the pinned cell; a click in the grid sets them too."""
    boxes = zip((f"pin_layer_{name}", f"pin_step_{name}"), pin)
    keys = [pickers.widget_key(box, value) for box, value in boxes]

    def on_picked() -> None:
        cell = tuple(st.session_state.get(key, value) for key, value in zip(keys, pin))
        if cell != pin:
            _pin_cell(*cell)

    names = {layer: sentence_case(layer_name(layer)) for layer in layers}
    st.selectbox("Layer", list(layers), key=keys[0], format_func=names.__getitem__, on_change=on_picked)
    st.selectbox(label, list(steps), key=keys[1], format_func="{:,}".format, on_change=on_picked)
    if permalink.get("pin"):
        st.button(
            "Unpin", key=f"unpin_{name}", help="Follow the time bar again", on_click=permalink.choose, args=("pin", "")
        )


def _cell_name(view: View, layer: int, step: int) -> str:
    return f"{sentence_case(layer_name(layer))} at {view.name_step(step)}"


def _show_pinned(question: AskedQuestion, answers: Answers, pin: tuple[int, int], name: str) -> None:
    """Draw the best words of the pinned cell; a step that the lens lacks is asked separately."""
    (layer, step), view = pin, question.view
    st.markdown(f"**{_cell_name(view, layer, step)}**")
    if step not in answers.steps:
        answers = by_layer(view.run, question.text, question.mask, step)
    best = answers.best(step, question.mask, layer)
    if best[0].probability < query_captions.MAX_NOISE_PROBABILITY:
        notices.show_caption(query_captions.describe_noise(view.name_step(step)))
        return
    show_ranking(_ranking(best), "piece", key=f"pinned_{name}", bars=False)
