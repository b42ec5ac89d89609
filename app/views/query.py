"""Query: what any checkpoint answers to the reader's own text with [MASK], and the answer over all of pretraining."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import query as charts
from app.components.copy_button import copy_button
from app.results import checkpoints_stamp
from app.views import query_answers
from app.views.query_answers import TOGETHER, TRACKED, TRUE_OBJECT, Answers
from app.views.query_ask import Asked, ask
from app.views.query_lens import show_lens
from embryo_core import query
from embryo_core.errors import EmbryoError, QueryError
from embryo_core.query.track import Track
from embryo_core.types import Prediction

AT_LEAST = f"≥: at least this rank, since a beam of {query.BEAM_WIDTH} can miss a more probable answer."
JOINTLY = (
    "Several masks are answered jointly: the probability of an answer is the product, over its words from left to right, "
    "of the probability of each word given the words before it filled in and the later masks still in place (beam of "
    f"{query.BEAM_WIDTH}). The candidates for one mask are its factor, given the best answer before it. {AT_LEAST}"
)
WIDENED = (
    "P(word) = P(piece 1) · P(piece 2 | piece 1) · …, the chain rule: pieces are filled in left to right, each factor is "
    "read with the masks after it still in place. Its rank is counted among the answers of as many pieces. "
    + AT_LEAST
)


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Query")
    questions = ask(view)
    if not questions:
        st.info(
            "Write a sentence with [MASK] for the word to be guessed, or choose an example or a fact.",
            icon=":material/edit:",
        )
        query_answers.load_ahead(view.run, checkpoints_stamp(view.run))
        return
    with st.container(horizontal=True, gap="large", key="query_how"):
        mask = _pick_mask(max(map(_masks, questions)))
        probabilities = widgets.pick_one(
            "probability", "Probability axis", ("linear", "log"), segmented=True, optional=True, width="content"
        )
    if mask == TOGETHER:
        st.caption(JOINTLY)
    found: list[Answers | None] = [None] * len(questions)
    for place, column in enumerate(st.columns(len(questions), gap="large")):
        with column, _told():
            found[place] = _look(questions[place], mask)
    known = [answers for answers in found if answers]
    if known:
        axes = charts.shared_axes([answers.table() for answers in known], view.step, view.log, probabilities == "log")
        _show_alone(known[0], axes) if len(found) == 1 else _show_compared(found, axes)
        _show_lenses(known)
    _show_commands(questions, mask)


@contextmanager
def _told() -> Iterator[None]:
    """An error that the user can mend becomes one sentence in this place, and the page goes on."""
    try:
        yield
    except QueryError as error:
        st.warning(widgets.literal(str(error)), icon=":material/warning:")
    except EmbryoError as error:
        st.error(widgets.literal(str(error)), icon=":material/error:")


# === The masks ===


def _masks(asked: Asked) -> int:
    return len(re.findall(r"\[\s*mask\s*\]", asked.text, flags=re.IGNORECASE))


def _pick_mask(masks: int) -> int | str:
    """Which mask to look at, counted from 1; with several there is also the answer to all of them together."""
    if not 1 < masks <= query.MAX_MASKS:
        permalink.show("mask", None)
        return 1
    options = [TOGETHER, *range(1, masks + 1)]
    return widgets.pick_one(
        "mask",
        "[MASK]",
        options,
        format_func=lambda mask: str(mask).capitalize(),
        segmented=True,
        optional=True,
        width="content",
    )


def _look(asked: Asked, mask: int | str) -> Answers:
    """Answers to one question; where it has fewer masks than the other, its last one stands for those it lacks."""
    masks = _masks(asked)
    if mask == TOGETHER:
        mask = TOGETHER if masks > 1 else 1
    return query_answers.over_steps(asked, mask if mask == TOGETHER else max(1, min(mask, masks)))


# === Answers ===


def _show_alone(answers: Answers, axes: charts.Axes) -> None:
    """One question: its answers at the chosen step, and beside them those over all steps."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        _show_step(answers, 1)
    with right:
        for draw in HISTORY:
            draw(answers, axes, 1)


def _show_compared(found: list[Answers | None], axes: charts.Axes) -> None:
    """Two questions in lockstep: each kind of answer in a row of its own, so that like stands beside like."""
    _show_row(found, lambda answers, place: _show_head(answers))
    _show_row(found, _show_step)
    for draw in HISTORY:
        _show_row(found, lambda answers, place, draw=draw: draw(answers, axes, place))


def _show_row(found: list[Answers | None], draw: Callable[[Answers, int], None]) -> None:
    for place, (column, answers) in enumerate(zip(st.columns(len(found), gap="large"), found), start=1):
        if answers:
            with column:
                draw(answers, place)


def _show_head(answers: Answers) -> None:
    run, text = answers.asked.view.run.name, " ".join(answers.asked.text.split())
    st.markdown(f"**{widgets.literal(run)}**: {widgets.literal(text)}")


def _show_step(answers: Answers, place: int) -> None:
    st.subheader(f"At step {answers.asked.view.step:,}", anchor=False)
    with _told():
        found = query_answers.at_step(answers.asked)
        best = found.joint if answers.mask == TOGETHER else found.masks[answers.mask - 1]
        what = "words" if answers.mask == TOGETHER else "piece"
        widgets.show_ranking(query_answers.ranking(best), what, key=f"answers_{place}")
        if answers.asked.fact:
            _show_fact(answers, best[0], place)
    if track := answers.marked.get(TRACKED):
        others = " The other masks stay in place." if _masks(answers.asked) > 1 else ""
        st.caption(_described(track, answers.asked.view.step) + others)
    elif answers.asked.word and answers.mask == TOGETHER:
        st.caption("A word is tracked in one mask: choose which above.")


def _described(track: Track, step: int) -> str:
    """The tracked word: its pieces, and how probable it is at this step; Markdown."""
    i = min(range(len(track.steps)), key=lambda i: abs(track.steps[i] - step))
    rank = query.spell_rank(track.ranks[i], track.exact[i])
    now = f"probability {track.probabilities[i]:.3g}, rank {rank} at step {track.steps[i]:,}"
    head = f"Tracked: **{widgets.literal(track.word)}**, {now}."
    if len(track.pieces) == 1:
        return head
    pieces = " ".join(widgets.literal(piece) for piece in track.pieces)
    return f"{head} It is {len(track.pieces)} pieces ({pieces}): the mask is widened to {len(track.pieces)}. {WIDENED}"


def _show_lead(answers: Answers, axes: charts.Axes, place: int) -> None:
    history = answers.history
    st.subheader(f"Over {len(answers.trace.steps)} checkpoints", anchor=False)
    for problem in answers.problems:
        st.warning(widgets.literal(problem), icon=":material/warning:")
    with st.container(horizontal=True, key=f"lead_{place}"):
        st.metric("Final answer", widgets.literal(history.leaders[-1]), border=True)
        st.metric("First leads at step", f"{history.first_led:,}", border=True)
        st.metric("Leads for good from step", f"{history.leads_from:,}", border=True)


def _show_probability(answers: Answers, axes: charts.Axes, place: int) -> None:
    figure = charts.probability(answers.table(), answers.history.first_led, answers.history.leads_from, axes)
    caption = (
        f"Probability at each of {len(answers.trace.steps)} checkpoints of run "
        f"'{widgets.literal(answers.asked.view.run.name)}', one text. Followed are all answers that ever led, the best "
        "five at the last step, and the marked words."
    )
    widgets.show_figure(figure, answers.table(), _file_name(answers, "probability", place), caption)


def _show_rank(answers: Answers, axes: charts.Axes, place: int) -> None:
    figure = charts.rank(answers.table(), answers.history.first_led, answers.history.leads_from, axes)
    joint = f"all joint answers (hollow points, {AT_LEAST})"
    among = joint if answers.mask == TOGETHER else "all pieces of the vocabulary"
    caption = f"Rank among {among} at the same {len(answers.trace.steps)} checkpoints; 1 leads."
    widgets.show_figure(figure, answers.table(), _file_name(answers, "rank", place), caption)


HISTORY = (_show_lead, _show_probability, _show_rank)


def _file_name(answers: Answers, what: str, place: int) -> str:
    return f"{answers.asked.view.run.name}-query-{what}" + (f"-{place}" if place > 1 else "")


def _show_fact(answers: Answers, best: Prediction, place: int) -> None:
    """The answer of the evaluation at this step beside the live one."""
    fact, view = answers.asked.fact, answers.asked.view
    rows = {}
    if (track := answers.marked.get(TRUE_OBJECT)) and view.step in track.steps:
        i = track.steps.index(view.step)
        rows["live"] = (best.token, best.probability, query.spell_rank(track.ranks[i], track.exact[i]), track.probabilities[i])
    cloze = results.cloze(view.run, fact.relation, fact.id)
    for row in cloze[cloze["step"] == view.step].itertuples():
        rows["precomputed"] = (row.prediction, row.prediction_probability, query.spell_rank(row.rank, True), row.probability)
    if not rows:
        return
    names = ["answer", "p(answer)", "rank of object", "p(object)"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("").reset_index()
    number = {name: st.column_config.NumberColumn(format="percent", step=0.0001) for name in names if name[0] == "p"}
    st.dataframe(table, hide_index=True, column_config=number, key=f"fact_{place}")
    missing = "" if "precomputed" in rows else " The run has not been evaluated at this step."
    st.caption(
        f"The true object is **{widgets.literal(fact.object)}**. Precomputed: by the evaluation of LAMA.{missing}"
    )


# === The lens ===


def _show_lenses(found: list[Answers]) -> None:
    st.subheader("Lens", anchor=False)
    if any(answers.mask == TOGETHER for answers in found):
        st.info("Choose one mask above to see what each layer would put in its place.", icon=":material/layers:")
        return
    for place, answers in enumerate(found, start=1):
        if len(found) > 1:
            _show_head(answers)
        with _told():
            show_lens(answers, _file_name(answers, "lens", place), first=place == 1)


# === As commands ===


def _show_commands(questions: list[Asked], mask: int | str) -> None:
    """The same questions at a terminal."""
    commands, of_mask = [], ["--mask", str(mask)] if mask not in (1, TOGETHER) else []
    for asked in questions:
        run, text = asked.view.run.name, ["--", asked.text.strip()]
        commands += [[run, "--step", str(asked.view.step), *text], [run, "--step", "all", *text]]
        if mask != TOGETHER:
            tracked = [["--step", "all", f"--track={asked.word}"]] if asked.word else []
            commands += [[run, *what, *of_mask, *text] for what in (*tracked, ["--step", "all", "--lens"])]
    lines = [shlex.join(["python", "-m", "embryo_core", "query", *command]) for command in commands]
    with st.expander("As commands"):
        copy_button("Copy all", key="copy_commands", text="\n".join(lines))
        for line in lines:
            st.code(line, language="bash", wrap_lines=True)
