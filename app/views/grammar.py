"""Grammar: which minimal pairs the model gets right, paradigm by paradigm, and the sentences behind a point."""

from typing import Any

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.tables import PERCENT, show_rows, steps_format
from app.view import View
from app.views import grammar_pairs
from embryo_core.figures import grammar
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.curves import with_step
from embryo_core.figures.grammar import LEVELS, METRIC
from embryo_core.figures.markdown import literal


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Grammar", lambda run: results.evaluated(run, METRIC))
    sets = results.pair_sets(view.run)
    if not sets:
        message = f"Run '{view.run.name}' has not chosen between the sentences of minimal pairs yet."
        widgets.stop_uncomputed(view.run, METRIC, message)
    headline = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        pairs = pickers.pick_one("set", "Set of pairs", sets, segmented=True)
        options: dict[str, Any] = {"format_func": str.capitalize, "segmented": True, "optional": True}
        shapes = results.pair_shapes(view.run, pairs)
        level = pickers.pick_one("panels_of", "A panel for each of the", grammar.levels(shapes), **options)
        pickers.pick_smoothing()
    accuracies = results.pair_accuracies(view.run, pairs)
    with headline:
        widgets.show_headline(grammar.headline(pairs, shapes, accuracies, view.axis))
    st.header("Accuracy over the steps", anchor=False)
    figures.show(figures.draw(view, grammar.accuracy, pairs=pairs, level=level), on_point=_open_point)
    step = view.evaluated(accuracies["step"].unique())
    _show_order(view, pairs)
    _show_paradigms(with_step(shapes, accuracies, step, "group", "first"), step, view.axis)
    grammar_pairs.show(view, shapes, step)


def _open_point(group: str, step: int) -> None:
    permalink.choose("step", step)
    if group.count("/") == LEVELS["paradigms"]:
        permalink.choose("paradigm", group)


def _show_order(view: View, pairs: str) -> None:
    """Draw when each paradigm rises, and how far the orders of several runs agree."""
    st.header("Order of acquisition", anchor=False)
    if not figures.show_or_explain(view, grammar.order_of_rise, pairs=pairs):
        return
    if len(view.drawn) > 1:
        for sentence in grammar.describe_agreement(view.drawn, pairs):
            st.markdown(literal(sentence))


def _show_paradigms(table: pd.DataFrame, step: int, axis: StepAxis) -> None:
    """Draw a row for each paradigm: when it rises, where its accuracy turns, and where it ends."""
    st.header("Every paradigm", anchor=False)
    show_rows(
        table.drop(columns="phenomenon").assign(
            **{name: axis.column(table[name]) for name in ("onset", "earliest", "latest")},
            turns=grammar.name_turns(table, axis),
            phenomenon=table["phenomenon"],
        ),
        "Every paradigm",
        "paradigm_table",
        lambda row: permalink.choose("paradigm", table["group"].iloc[row]),
        _columns(step, axis),
    )
    widgets.show_caption(grammar.SHAPES)


def _columns(step: int, axis: StepAxis) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    steps: dict[str, Any] = {"format": steps_format(axis), "width": 64}
    return {
        "group": None,
        "paradigm": text(width=236),
        "phenomenon": text(width=134),
        "now": number(f"{step:,}", help="Accuracy at the chosen step", width=68, **PERCENT),
        "first": None,
        "lowest": None,
        "highest": None,
        "last": number(help="At the last step", width=58, **PERCENT),
        "end": text("chance", help="The last accuracy is significantly above or below chance, or at it", width=62),
        "onset": number("rises at", help="First step from which it stays half-way to its last accuracy", **steps),
        "earliest": number("from", help="The steps between which that may be", **steps),
        "latest": number("to", **steps),
        "shape": text(help="Sure rises and falls, in their order", width=90),
        "turns": text("turns at", help="Lowest and highest points of these", width=100),
        "fallen": None,
        "n": None,
        "ties": None,
    }
