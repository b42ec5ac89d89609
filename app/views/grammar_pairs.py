"""The Grammar page, pairs: those of a paradigm at a step, one of them over all steps, and its words."""

from typing import Any

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, task_data, widgets
from app.caching import cached, checkpoints_state, results_state
from app.question_queue import in_turn
from app.tables import show_rows
from app.view import View
from embryo_core.curves import HISTORIES
from embryo_core.figures import grammar_pairs
from embryo_core.figures.grammar import label
from embryo_core.metrics import pair_sentences
from embryo_core.query import cost
from embryo_core.types import MinimalPair, Run

ANY = "any"
NO_SENTENCES = (
    "The sentences are not shown, because the data of these results were not found; results hold no text. Put the "
    "same files into corpora/pairs of a data folder, or evaluate on them here."
)


def show(view: View, shapes: pd.DataFrame, step: int) -> None:
    """Draw the pickers, the table of pairs and, below it, one pair."""
    st.header("Pairs", anchor=False)
    left, right = st.columns(2)
    with left:
        paradigm = pickers.pick_one("paradigm", "Paradigm", list(shapes["group"]), format_func=label)
    with right:
        history = pickers.pick_one("pairs_of", "History", (ANY, *HISTORIES))
    sentences = {pair.number: pair for pair in task_data.read_pairs(view.run, paradigm)}
    table = grammar_pairs.pairs_at(view.run, paradigm, step, [*sentences.values()])
    listed = table if history == ANY else table[table["history"] == history]
    _show_table(view, paradigm, listed, bool(sentences))
    widgets.show_caption(grammar_pairs.describe_pairs(view.run, paradigm, step, table))
    if not sentences:
        st.caption(NO_SENTENCES)
    if listed.empty:
        st.info("No pair of this paradigm has this history; choose another.", icon=":material/info:")
        permalink.show("pair", permalink.get("pair"))
        return
    _show_pair(view, paradigm, listed["pair"].tolist(), sentences)


def _show_table(view: View, paradigm: str, listed: pd.DataFrame, with_sentences: bool) -> None:
    number = st.column_config.NumberColumn
    scores: dict[str, Any] = {"format": "%.2f", "width": 84}
    hidden = ["good_score", "bad_score"] if with_sentences else ["good", "bad"]  # both would not fit
    show_rows(
        listed.drop(columns=hidden),
        "Pairs of this paradigm",
        f"pairs_{paradigm}",
        lambda row: permalink.choose("pair", listed["pair"].iloc[row]),
        {
            "pair": number(width=50),
            "difference": number("good − bad", help="Above 0 the pair is right; in nats", **scores),
            "good_score": number("good score", **scores),
            "bad_score": number("bad score", **scores),
            "right": st.column_config.CheckboxColumn("right", width=50),
            "history": st.column_config.TextColumn("history", width=96),
            **({name: st.column_config.TextColumn(width=310) for name in ("good", "bad")} if with_sentences else {}),
        },
        height=320,
    )


def _show_pair(view: View, paradigm: str, numbers: list[int], sentences: dict[int, MinimalPair]) -> None:
    """Draw one pair over the steps and, folded, its words at the step, if sentences and weights are available."""
    number = pickers.pick_one("pair", "Pair", numbers, width=120)
    pair = sentences.get(number)
    if pair:
        st.text(f"good: {pair.good}\nbad:  {pair.bad}")
    figures.show(figures.draw(view, grammar_pairs.pair, paradigm=paradigm, number=number), on_point=figures.choose_step)
    if pair:
        # Folded, because scoring words loads torch, which a page must not do by being opened.
        title = "Which word makes the difference"
        pickers.fold("words", title, lambda: _show_words(widgets.at_weights(view), paradigm, pair))


def _show_words(view: View, paradigm: str, pair: MinimalPair) -> None:
    with widgets.explaining():
        found = _words(view.run, pair, view.step)
        figures.show(grammar_pairs.words(view.run, paradigm, pair.number, found, view.step))


@cached(
    lambda run: checkpoints_state(run) + results_state(run), 64, "Scoring the words; the first time also starts torch …"
)
def _words(run: Run, pair: MinimalPair, step: int) -> pd.DataFrame:
    seconds = 20 * cost.attend(run, pair.good)  # a pass for each piece of both sentences
    return in_turn(seconds, "make app", lambda: pair_sentences.score_words(run, pair.good, pair.bad, [step]))
