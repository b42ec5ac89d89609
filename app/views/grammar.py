"""Grammar: which minimal pairs the model gets right, paradigm by paradigm, and the sentences of each pair."""

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import CheckboxColumn, NumberColumn, TextColumn

from app import figures, notices, permalink, pickers, results, task_data, widgets
from app.caching import cached, results_state
from app.question_queue import in_turn
from app.tables import PERCENT, filter_history, pick_history, show_rows, steps_in_unit
from app.view import View
from embryo_core import runs
from embryo_core.figures import grammar, grammar_pairs
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.curves import with_step
from embryo_core.figures.grammar import LEVELS, METRIC, group_label
from embryo_core.figures.markdown import literal
from embryo_core.query import cost, pair_sentences
from embryo_core.types import MinimalPair, Run

NO_SENTENCES = (
    "The sentences are not shown, because the data of these results were not found; results hold no text. Put the "
    "same files into corpora/pairs of a data folder, or evaluate on them here."
)


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Grammar", lambda run: results.evaluated_steps(run, METRIC))
    set_names = results.pair_sets(view.run)
    if not set_names:
        message = f"Run '{view.run.name}' has not been evaluated on minimal pairs yet."
        notices.stop_uncomputed(view.run, METRIC, message)
    headline = st.container()
    with pickers.row():
        pair_set = pickers.pick_one("set", "Set of pairs", set_names, segmented=True)
        shapes = results.pair_shapes(view.run, pair_set)
        levels = {level: level.capitalize() for level in grammar.levels(shapes)}
        level = pickers.pick_one("panels_of", "A panel for each of the", levels, segmented=True, optional=True)
        pickers.pick_smoothing()
    accuracies = results.pair_accuracies(view.run, pair_set)
    with headline:
        notices.show_headline(grammar.headline(pair_set, shapes, accuracies, view.axis))
    st.header("Accuracy over the steps", anchor=False)
    figures.plot(view, grammar.accuracy, _open_point, pair_set=pair_set, level=level)
    step = view.evaluated_step(accuracies["step"].unique())
    _show_order(view, pair_set)
    _show_paradigms(with_step(shapes, accuracies, step, "group", "first"), step, view.axis)
    _show_pairs(view, shapes, step)


def _open_point(group: str, step: int) -> None:
    permalink.choose("step", step)
    if group.count("/") == LEVELS["paradigms"]:
        permalink.choose("paradigm", group)


def _show_order(view: View, pair_set: str) -> None:
    """Draw when the accuracy of each paradigm rises, and state how well the orders of several runs agree."""
    st.header("Order of acquisition", anchor=False)
    if not figures.plot(view, grammar.order_of_rise, pair_set=pair_set):
        return
    if len(view.drawn_runs) > 1:
        for sentence in grammar.describe_agreement(view.drawn_runs, pair_set):
            st.markdown(literal(sentence))


def _show_paradigms(table: pd.DataFrame, step: int, axis: StepAxis) -> None:
    """Draw a table with a row for each paradigm: when its accuracy rises, where it turns, and where it ends."""
    st.header("Every paradigm", anchor=False)
    onset_help = "First step from which it stays halfway to its last accuracy"
    step_columns = {
        "onset": {"label": "rises at", "help": onset_help},
        "earliest": {"label": "from", "help": "Interval of that step (95 % for each accuracy)"},
        "latest": {"label": "to"},
    }
    visible_table, steps = steps_in_unit(table.drop(columns="phenomenon"), axis, step_columns, 64)
    show_rows(
        visible_table.assign(turns=grammar.name_turns(table, axis), phenomenon=table["phenomenon"]),
        "Every paradigm",
        "paradigm_table",
        lambda row: permalink.choose("paradigm", table["group"].iloc[row]),
        {
            "group": None,
            "paradigm": TextColumn(width=236),
            "phenomenon": TextColumn(width=134),
            "now": NumberColumn(f"{step:,}", help="Accuracy at the chosen step", width=68, **PERCENT),
            "first": None,
            "lowest": None,
            "highest": None,
            "last": NumberColumn(help="At the last step", width=58, **PERCENT),
            "end": TextColumn(
                "chance", help="The last accuracy is significantly above or below chance, or at it", width=62
            ),
            **steps,
            "shape": TextColumn(help="Significant rises and falls, in their order", width=90),
            "turns": TextColumn("turns at", help="Lowest and highest points of these", width=100),
            "fallen": None,
            "n": None,
            "ties": None,
        },
    )
    notices.show_caption(grammar.SHAPES_CAPTION)


# === Pairs ===


def _show_pairs(view: View, shapes: pd.DataFrame, step: int) -> None:
    """Draw the pickers, the table of a paradigm's pairs and, below it, the chosen pair."""
    st.header("Pairs", anchor=False)
    left, right = st.columns(2)
    with left:
        paradigm = pickers.pick_one("paradigm", "Paradigm", list(shapes["group"]), format_func=group_label)
    with right:
        history = pick_history("pairs_of")
    sentences = {pair.number: pair for pair in task_data.read_pairs(view.run, paradigm)}
    table = grammar_pairs.pairs_at(view.run, paradigm, step, [*sentences.values()])
    filtered = filter_history(table, history)
    _show_table(view, paradigm, filtered, bool(sentences))
    notices.show_caption(grammar_pairs.describe_pairs(view.run, paradigm, step, table))
    if not sentences:
        st.caption(NO_SENTENCES)
    if filtered.empty:
        notices.note("No pair of this paradigm has this history; choose another.")
        permalink.put_in_url("pair", permalink.get("pair"))
        return
    _show_pair(view, paradigm, filtered["pair"].tolist(), sentences)


def _show_table(view: View, paradigm: str, pairs: pd.DataFrame, with_sentences: bool) -> None:
    """Draw the `pairs`, with their sentences if these were found, else with their scores."""
    scores: dict[str, Any] = {"format": "%.2f", "width": 84}
    hidden = ["good_score", "bad_score"] if with_sentences else ["good", "bad"]  # both would not fit
    show_rows(
        pairs.drop(columns=hidden),
        "Pairs of this paradigm",
        f"pairs_{paradigm}",
        lambda row: permalink.choose("pair", pairs["pair"].iloc[row]),
        {
            "pair": NumberColumn(width=50),
            "difference": NumberColumn("good − bad", help="Above 0 the pair is right; in nats", **scores),
            "good_score": NumberColumn("good score", **scores),
            "bad_score": NumberColumn("bad score", **scores),
            "right": CheckboxColumn("right", width=50),
            "history": TextColumn("history", width=96),
            **({name: TextColumn(width=310) for name in ("good", "bad")} if with_sentences else {}),
        },
        height=320,
    )


def _show_pair(view: View, paradigm: str, numbers: list[int], sentences: dict[int, MinimalPair]) -> None:
    """Draw one pair over the steps and, if its sentences were found, a folded section with the scores of its words."""
    number = pickers.pick_one("pair", "Pair", numbers, width=120)
    pair = sentences.get(number)
    if pair:
        st.text(f"good: {pair.good}\nbad:  {pair.bad}")
    figures.plot(view, grammar_pairs.pair, figures.choose_step, paradigm=paradigm, number=number)
    if pair:
        # Folded, because scoring words loads torch, and merely opening a page must not.
        title = "Which word makes the difference"
        pickers.fold("words", title, lambda: _show_words(widgets.at_weights(view), paradigm, pair))


def _show_words(view: View, paradigm: str, pair: MinimalPair) -> None:
    with notices.explaining():
        words = _words(view.run, pair, view.step)
        figures.show(grammar_pairs.words(view.run, paradigm, pair.number, words, view.step))


@cached(
    lambda run: runs.checkpoints_digest(run) + results_state(run),
    64,
    "Scoring the words; the first time also loads the model library …",
)
def _words(run: Run, pair: MinimalPair, step: int) -> pd.DataFrame:
    """Return the scores of the words of both sentences at one step, computed in turn (see `in_turn`)."""
    seconds = 20 * cost.attend_seconds(run, pair.good)  # about 20 passes: one for each piece of both sentences
    return in_turn(seconds, "make app", lambda: pair_sentences.score_words(run, pair.good, pair.bad, [step]))
