"""The Knowledge page, relations: precision at 1 over the steps, and a table of every relation."""

from functools import partial

import pandas as pd
import streamlit as st

from app import figures, overlays, permalink, pickers, results, widgets
from app.tables import PERCENT, show_rows
from app.view import View
from embryo_core.corpora.baselines import of_facts, over_types
from embryo_core.corpora.groups import ALL, KINDS
from embryo_core.curves import HISTORIES
from embryo_core.figures import knowledge as charts
from embryo_core.figures.captions import knowledge as captions
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

METRIC = "world_knowledge"
TITLE = "Precision at 1 of each relation"


def show(view: View, frame: pd.DataFrame, facts: pd.DataFrame, note: str) -> None:
    """Draw the curves of the relations that are picked; the `note` names the data."""
    st.header("Precision at 1 over the steps", anchor=False)
    without = results.relation_curves(view.run, unnamed=True)
    st.markdown(captions.beside_baseline(frame, without, view.run.step_unit))
    unnamed = pickers.pick_switch("unnamed", "Leave out facts whose subject's name contains the object")
    if pickers.pick_switch("panels", "A panel for each relation, by type", optional=True):
        _panels(view, captions.precision(note, facts, unnamed), unnamed)
        return
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        chosen = pickers.pick_many(
            "relations",
            "Relations, the best at the last step first",
            [ALL, *charts.best_first(frame)],
            results.default_relations(view.run),
            charts.label,
        )
    with right:
        pickers.pick_smoothing()
    if not chosen:
        st.info("Choose at least one relation.", icon=":material/info:")
        return
    name = f"{view.run.name}-knowledge"
    caption = captions.precision(note, facts, unnamed)
    if view.compared_runs:
        read = partial(_curves, relations=chosen, unnamed=unnamed)
        overlays.show(view, read, charts.OVERLAY, name, caption, TITLE, METRIC, _point_chosen)
        return
    drawn = without if unnamed else frame
    data = with_smoothed(drawn[drawn["relation"].isin(chosen)], "value", view.smoothing, ["relation"])
    known = set(data["relation"])
    figure = figures.drawn(charts.relation_figure, data, [name for name in chosen if name in known], view.axis)
    figures.show_plot(figure, data, name, caption, TITLE, view, METRIC, on_point=_point_chosen)


def _panels(view: View, caption: str, unnamed: bool) -> None:
    """Small multiples of all facts, each type of relation, and each relation (Figure 14)."""
    pickers.pick_smoothing()
    curves, name = charts.panels(results.templates(view.run)), f"{view.run.name}-knowledge-panels"
    caption += captions.TYPES
    overlays.show(view, partial(_by_type, unnamed=unnamed), curves, name, caption, TITLE, METRIC, _point_chosen)


def _by_type(run: Run, unnamed: bool) -> pd.DataFrame:
    """The curves of all relations and of each type of relation."""
    scores, known = _measured(run, unnamed)
    tables = (pd.concat([table, over_types(table)], ignore_index=True) for table in (scores, known))
    return charts.in_panels(charts.relation_curves(*tables))


def _measured(run: Run, unnamed: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and baselines over all facts, or over those whose subject does not tell the object."""
    if unnamed:
        return results.facts_not_named(run)
    return results.scores(run, METRIC), of_facts(results.fact_histories(run))


def _curves(run: Run, relations: list[str], unnamed: bool) -> pd.DataFrame:
    """The curves of some relations, in the order of these, over all facts or those that the subject does not tell."""
    frame = results.relation_curves(run, unnamed)
    picked = frame[frame["relation"].isin(relations)]
    return picked.sort_values("relation", key=lambda names: names.map(relations.index), kind="stable")


def _point_chosen(relation: str, step: int) -> None:
    permalink.choose("step", step)
    if relation not in (ALL, *KINDS):
        permalink.choose("relation", relation)


def show_table(view: View, frame: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    """Draw a row for each relation: its precision, how many of its facts were asked, and their histories."""
    st.header("Every relation", anchor=False)
    table = charts.with_step(results.relation_table(view.run), frame, step)
    number = st.column_config.NumberColumn
    show_rows(
        table,
        "relation_table",
        lambda row: permalink.choose("relation", table["relation"].iloc[row]),
        {
            "relation": st.column_config.TextColumn("id", width=50),
            "name": st.column_config.TextColumn(width=170),
            "now": number(f"P@1, {step:,}", help="Precision at 1 at the chosen step", width=90, **PERCENT),
            "last": number("P@1, last", help="Precision at 1 at the last step", width=70, **PERCENT),
            "answer": st.column_config.TextColumn("top object", help="The most frequent object", width=95),
            "baseline": number("always that", help="P@1 of always answering the top object", width=85, **PERCENT),
            "named": number("in name", help="Facts whose subject's name contains the object", width=70, **PERCENT),
            "without": number("P@1, others", help="At the last step, over the other facts", width=90, **PERCENT),
            "asked": number(help="Facts whose object is a single piece of the model's vocabulary", width=55),
            "all": number(help="All facts of the relation", width=50),
            "coverage": number(help="Share of the relation's facts that are asked", width=75, **PERCENT),
            "history": st.column_config.TextColumn("curve", help="The history of the relation's P@1", width=100),
            **{history: number(width=width) for history, width in zip(HISTORIES, (65, 80, 75, 95), strict=True)},
        },
    )
    widgets.show_caption(captions.relations(facts))
