"""The Query page, one step: the best answers, the tracked word, and a LAMA fact beside what the evaluation stored."""

import pandas as pd
import streamlit as st

from app import results, widgets
from app.tables import show_ranking
from app.views import query_answers
from app.views.query_answers import TOGETHER, TRACKED, TRUE_OBJECT, Answers
from embryo_core.figures.captions import query as captions
from embryo_core.query import spell_rank
from embryo_core.types import Prediction

COLUMNS = ("answer", "p(answer)", "rank of object", "p(object)")


def show_question(answers: Answers) -> None:
    """Draw the run and its text as a heading."""
    st.markdown(captions.question(answers.asked.view.run.name, answers.asked.text))


def show(answers: Answers, number: int) -> None:
    """Draw the answers at the chosen step; `number` tells the questions of a page apart."""
    asked = answers.asked
    st.header(f"At {asked.view.point(asked.view.step)}", anchor=False)
    with widgets.explaining():
        found = query_answers.at_step(asked.view.run, asked.view.step, asked.text)
        best = found.joint if answers.mask == TOGETHER else found.masks[answers.mask - 1]
        what = "words" if answers.mask == TOGETHER else "piece"
        show_ranking(query_answers.ranking(best), what, key=f"answers_{number}")
        if asked.fact:
            _show_fact(answers, best[0], number)
    if track := answers.marked.get(TRACKED):
        step = asked.view.evaluated(track.steps)
        widgets.show_caption(captions.tracked(track, step, asked.masks, asked.view.run.step_unit))
    elif asked.word and answers.mask == TOGETHER:
        widgets.show_caption("A word is tracked in one mask: choose which above.")


def _show_fact(answers: Answers, best: Prediction, number: int) -> None:
    rows = _fact_rows(answers, best)
    if not rows:
        return
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS).rename_axis("").reset_index()
    shares = {name: st.column_config.NumberColumn(format="percent", step=0.0001) for name in COLUMNS if name[0] == "p"}
    st.dataframe(table, hide_index=True, column_config=shares, key=f"fact_{number}")
    widgets.show_caption(captions.fact(answers.asked.fact.object, "stored" in rows))


def _fact_rows(answers: Answers, best: Prediction) -> dict[str, tuple]:
    """Answer and true object at the chosen step: as asked "now" and as "stored" by the evaluation, where there are."""
    fact, view = answers.asked.fact, answers.asked.view
    rows = {}
    if (track := answers.marked.get(TRUE_OBJECT)) and view.step in track.steps:
        i = track.steps.index(view.step)
        rank = spell_rank(track.ranks[i], track.exact[i])
        rows["now"] = (best.token, best.probability, rank, track.probabilities[i])
    cloze = results.answers_to(view.run, fact.relation, fact.id)
    for row in cloze[cloze["step"] == view.step].itertuples():
        rank = spell_rank(row.rank, True)
        rows["stored"] = (row.prediction, row.prediction_probability, rank, row.probability)
    return rows
