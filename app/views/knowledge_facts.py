"""The Knowledge page, facts: those of one relation at a step, and one of them over all steps."""

import pandas as pd
import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.tables import PERCENT, search, show_rows
from app.view import View
from app.views.query_ask import choose_text, question_of
from embryo_core.corpora.baselines import named_by_subject
from embryo_core.curves import HISTORIES
from embryo_core.figures import knowledge, knowledge_tables, knowledge_variants
from embryo_core.types import Fact, Run
from embryo_core.words import step_name

ANY = "any"


def show(view: View, precision: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    """Draw the pickers, the table of facts and, next to it, one fact; no fact if the search finds none."""
    st.header("Facts", anchor=False)
    with st.container(key="beside_table"):
        left, right = st.columns([3, 2], gap="large")
    with left:
        default, first = results.first_fact(view.run)
        relation, history, words = _pick(precision, set(facts["relation"]), default)
    known = facts[facts["relation"] == relation]
    with left:
        named = pickers.pick_switch("named", "Also facts whose subject's name contains the object", optional=True)
        own = known if named else known[~named_by_subject(known)]
        at_step = results.answers_at(view.run, relation, step)
        at_step = at_step[at_step["fact"].isin(own["fact"])]
        there = knowledge_tables.facts_at(at_step, own)
        listed = _table(view, there, history, words, relation, step)
    with right:
        if len(listed) or there.empty:
            _one_fact(view, own[own["fact"].isin(listed["fact"])] if len(listed) else known, known, first)
            return
        st.info("No fact of this relation is found; change the search or the history.", icon=":material/info:")
        permalink.show("fact", permalink.get("fact"))


def _pick(precision: pd.DataFrame, asked: set[str], default: str | None) -> tuple[str, str, str]:
    """Return a relation that was asked, at first the `default`, the history of its facts, and a search."""
    one, two = st.columns(2)
    with one:
        relations = [relation for relation in knowledge.best_first(precision) if relation in asked]
        relation = pickers.pick_one("relation", "Relation", relations, default, format_func=knowledge.label)
    with two:
        history = pickers.pick_one("history", "History", (ANY, *HISTORIES))
    return relation, history, pickers.pick_text("facts", "Search", placeholder="a subject, an object or an answer")


def _table(view: View, table: pd.DataFrame, history: str, words: str, relation: str, step: int) -> pd.DataFrame:
    """Draw the facts of this history that contain the words, and return them."""
    listed = table if history == ANY else table[table["history"] == history]
    listed = search(listed, ("subject", "object", "prediction"), words)
    number = st.column_config.NumberColumn
    show_rows(
        listed.drop(columns="fact"),
        f"Facts of {knowledge.label(relation)}",
        f"facts_{relation}_{history}_{words}",
        lambda row: permalink.choose("fact", listed["fact"].iloc[row]),
        {
            "object": "true object",
            "prediction": "answer",
            "prediction_probability": number("p(answer)", **PERCENT),
            "rank": number(
                "rank", width=60, format="localized", help="Rank of the true object among all words; 1 is right"
            ),
            "probability": number("p(object)", **PERCENT),
            "first": number("first right", help="The first step at which the answer was right", format="localized"),
        },
        height=420,
    )
    widgets.show_caption(knowledge_tables.describe_facts(table, listed, step, view.run.step_unit))
    return listed


def _ask(run: Run, fact: Fact) -> None:
    """Open the Query page with a fact's question."""
    permalink.choose("template", fact.relation)
    choose_text(question_of(run, fact), fact.id)
    permalink.lead_to("query")


def _one_fact(view: View, listed: pd.DataFrame, known: pd.DataFrame, first: str | None) -> None:
    """Draw the fact that is picked among those `listed` of a relation: its figure, and its answers as a table."""
    names = listed.set_index("fact")
    texts = (names["subject"] + " → " + names["object"] + " (" + names["history"] + ")").to_dict()
    hidden = dict.fromkeys(known["fact"], "History, Search or names")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        fact = pickers.pick_one("fact", "Fact", list(texts), first, texts.__getitem__, hidden=hidden)
    relation = names["relation"][fact]
    if template := results.templates(view.run).get(relation):
        asked = Fact(fact, relation, template, names["subject"][fact], names["object"][fact])
        right.button("Ask it", help="Opens the Query page with this fact", on_click=_ask, args=(view.run, asked))
    figure = figures.draw(view, knowledge.fact, relation=relation, fact=fact)
    figures.show(figure)
    number = st.column_config.NumberColumn
    st.dataframe(
        figure.table[["step", "prediction", "prediction_probability", "rank", "probability", "right"]],
        alt="Answers to this fact at each step",
        hide_index=True,
        key=f"history_{fact}",
        column_config={
            "step": number(step_name(view.run.step_unit), format="localized"),
            "prediction": "answer",
            "prediction_probability": number("p(answer)", **PERCENT),
            "rank": number("rank", help="Of the true object among all words", format="localized", width=60),
            "probability": number("p(object)", **PERCENT),
            "right": st.column_config.CheckboxColumn("right"),
        },
    )
    if template:
        _show_variants(view, asked)


def _show_variants(view: View, asked: Fact) -> None:
    """Draw the other questions about a fact, and what was answered to them; nothing if none was ever asked."""
    rows = knowledge_variants.of_fact(view.run, asked, view.step)
    if rows.empty:
        return
    number = st.column_config.NumberColumn
    st.dataframe(
        rows,
        alt="Other questions about this fact",
        hide_index=True,
        key=f"variants_{asked.id}",
        column_config={
            "kind": st.column_config.TextColumn("asked by", width=105),
            "question": st.column_config.TextColumn(width=250),
            "answer": st.column_config.TextColumn(f"answer, {view.step:,}", width=95),
            "kept": number("right at", width=65, help="Steps at which this question had the right answer"),
            "steps": number("of steps", width=65, help="Steps at which the fact itself was answered right"),
        },
    )
    widgets.show_caption(knowledge_variants.OF_FACT)
