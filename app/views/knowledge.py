"""Knowledge: which facts the model answers at each step, and what it says instead (Section 6, Figures 6 and 14)."""

from typing import Any

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.tables import PERCENT, show_rows
from app.view import View
from app.views import knowledge_facts
from embryo_core.corpora.groups import ALL, KINDS
from embryo_core.curves import HISTORIES
from embryo_core.figures import knowledge, knowledge_tables, knowledge_variants
from embryo_core.figures.coverage import evaluate_command
from embryo_core.figures.curves import with_step
from embryo_core.figures.knowledge import METRIC
from embryo_core.figures.markdown import literal


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Knowledge", lambda run: results.evaluated(run, METRIC))
    scores, facts = results.scores(view.run, METRIC), results.fact_histories(view.run)
    if scores.empty or facts.empty:
        widgets.stop_uncomputed(view.run, METRIC, f"Run '{view.run.name}' has not been asked any facts yet.")
    precision = knowledge.precision_table(view.run)
    widgets.show_headline(knowledge.headline(precision, view.axis))
    step = view.evaluated(precision["step"].unique())
    knowledge_facts.show(view, precision, facts, step)
    _show_precision(view, precision)
    _show_variants(view)
    _show_relations(view, precision, facts, step)


def _show_precision(view: View, precision: pd.DataFrame) -> None:
    """Draw the curves of the relations that are picked, or a panel for each relation."""
    st.header("Precision at 1 over the steps", anchor=False)
    without = knowledge.precision_table(view.run, unnamed=True)
    st.markdown(literal(knowledge.compare_with_baseline(precision, without, view.run)))
    unnamed = pickers.pick_switch("unnamed", "Leave out facts whose subject's name contains the object")
    if pickers.pick_switch("panels", "A panel for each relation, by type", optional=True):
        pickers.pick_smoothing()
        panels = figures.draw(view, knowledge.precision_panels, unnamed=unnamed)
        figures.show(panels, on_point=_open_point)
        return
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        chosen = pickers.pick_many(
            "relations",
            "Relations, the best at the last step first",
            [ALL, *knowledge.best_first(precision)],
            knowledge.default_relations(precision),
            knowledge.label,
        )
    with right:
        pickers.pick_smoothing()
    if not chosen:
        st.info("Choose at least one relation.", icon=":material/info:")
        return
    figure = figures.draw(view, knowledge.precision, relations=tuple(chosen), unnamed=unnamed)
    figures.show(figure, on_point=_open_point)


def _open_point(relation: str, step: int) -> None:
    permalink.choose("step", step)
    if relation not in (ALL, *KINDS):
        permalink.choose("relation", relation)


def _show_variants(view: View) -> None:
    """Draw what becomes of right facts in other questions; if they were not asked, a line with the command."""
    st.header("Right facts asked in other ways", anchor=False)
    known = [*results.scores(view.run, knowledge_variants.METRIC)["group"].unique()]
    if not known:
        words = "Neither paraphrases, negations nor wrong words before a question have been tried on this run yet: "
        st.caption(literal(words) + f"`{evaluate_command(view.run, [knowledge_variants.METRIC])}`")
        return
    relations = [ALL, *(name for name in known if name != ALL)]
    relation = pickers.pick_one("asked", "Facts of", relations, format_func=knowledge.label, optional=True, width=320)
    figure = figures.draw(view, knowledge_variants.variants, relation=relation)
    figures.show(figure, on_point=figures.choose_step)


def _show_relations(view: View, precision: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    """Draw a row for each relation: its precision, how many of its facts were asked, and their histories."""
    st.header("Every relation", anchor=False)
    table = with_step(results.relation_table(view.run), precision, step, "relation", "last")
    show_rows(
        table,
        "Every relation",
        "relation_table",
        lambda row: permalink.choose("relation", table["relation"].iloc[row]),
        _relation_columns(step),
    )
    widgets.show_caption(knowledge_tables.describe_relations(facts))


def _relation_columns(step: int) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "relation": None,
        "name": text(width=125),
        "now": number(f"at {step:,}", help="Precision at 1 at the chosen step", width=76, **PERCENT),
        "last": number("last", help="Precision at 1 at the last step", width=58, **PERCENT),
        "answer": text("top object", help="The most frequent object", width=72),
        "baseline": number("always it", help="P@1 of always answering the top object", width=68, **PERCENT),
        "named": number("in name", help="Facts whose subject's name contains the object", width=64, **PERCENT),
        "without": number("others", help="P@1 at the last step, over the other facts", width=56, **PERCENT),
        "asked": number(help="Facts whose object is a single piece of the model's vocabulary", width=54),
        "all": None,
        "coverage": number(help="Share of the relation's facts that are asked", width=68, **PERCENT),
        "history": None,
        **{history: number(width=width) for history, width in zip(HISTORIES, (58, 74, 70, 90), strict=True)},
    }
