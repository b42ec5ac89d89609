"""Knowledge: which facts the model answers right at each step, and its wrong answers (Section 6, Figures 6 and 14)."""

import pandas as pd
import streamlit as st
from streamlit.column_config import CheckboxColumn, NumberColumn, TextColumn

from app import figures, notices, permalink, pickers, results, widgets
from app.tables import PERCENT, filter_history, pick_history, search, show_rows
from app.view import View
from app.views.query_ask import choose_text, question_of
from embryo_core.curves import HISTORIES
from embryo_core.curves.baselines import object_in_subject
from embryo_core.figures import knowledge, knowledge_facts, knowledge_variants
from embryo_core.figures.coverage import evaluate_command
from embryo_core.figures.curves import with_step
from embryo_core.figures.knowledge import METRIC
from embryo_core.figures.markdown import literal
from embryo_core.groups import ALL, RELATION_TYPES
from embryo_core.types import Fact, Run
from embryo_core.words import step_unit_name


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Knowledge", lambda run: results.evaluated_steps(run, METRIC))
    scores, facts = results.scores(view.run, METRIC), results.fact_histories(view.run)
    if scores.empty or facts.empty:
        notices.stop_uncomputed(view.run, METRIC, f"Run '{view.run.name}' has not been asked any facts yet.")
    precision = knowledge.precision_table(view.run)
    notices.show_headline(knowledge.headline(precision, view.axis))
    step = view.evaluated_step(precision["step"].unique())
    _show_facts(view, precision, facts, step)
    _show_precision(view, precision)
    _show_variants(view)
    _show_relations(view, precision, facts, step)


def _show_precision(view: View, precision: pd.DataFrame) -> None:
    """Draw the precision of the picked relations as curves, or of all relations as panels."""
    st.header("Precision at 1 over the steps", anchor=False)
    unnamed_precision = knowledge.precision_table(view.run, without_giveaways=True)
    st.markdown(literal(knowledge.compare_with_baseline(precision, unnamed_precision, view.run)))
    without_giveaways = pickers.pick_switch("unnamed", "Leave out facts whose subject's name contains the object")
    if pickers.pick_switch("panels", "A panel for each relation, by type", optional=True):
        pickers.pick_smoothing()
        figures.plot(view, knowledge.precision_panels, _open_point, without_giveaways=without_giveaways)
        return
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        selected = pickers.pick_many(
            "relations",
            "Relations, the best at the last step first",
            [ALL, *knowledge.relations_by_precision(precision)],
            knowledge.default_relations(precision),
            knowledge.relation_label,
        )
    with right:
        pickers.pick_smoothing()
    if not selected:
        notices.note("Choose at least one relation.")
        return
    relations = tuple(selected)
    figures.plot(view, knowledge.precision, _open_point, relations=relations, without_giveaways=without_giveaways)


def _open_point(relation: str, step: int) -> None:
    permalink.choose("step", step)
    if relation not in (ALL, *RELATION_TYPES):
        permalink.choose("relation", relation)


def _show_variants(view: View) -> None:
    """Draw how often right facts stay right in variants of their questions, or the command that asks the variants."""
    st.header("Correct facts, paraphrased and negated", anchor=False)
    groups = [*results.scores(view.run, knowledge_variants.METRIC)["group"].unique()]
    if not groups:
        words = "Neither paraphrases, negations nor wrong words before a question have been tried on this run yet: "
        st.caption(literal(words) + f"`{evaluate_command(view.run, [knowledge_variants.METRIC])}`")
        return
    relations = [ALL, *(name for name in groups if name != ALL)]
    relation = pickers.pick_one(
        "asked", "Facts of", relations, format_func=knowledge.relation_label, optional=True, width=320
    )
    figures.plot(view, knowledge_variants.variants, figures.choose_step, relation=relation)


def _show_relations(view: View, precision: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    """Draw a table with a row for each relation: its precision, the number of facts asked, and their histories."""
    st.header("Every relation", anchor=False)
    table = with_step(results.relation_table(view.run), precision, step, "relation", "last")
    show_rows(
        table,
        "Every relation",
        "relation_table",
        lambda row: permalink.choose("relation", table["relation"].iloc[row]),
        {
            "relation": None,
            "name": TextColumn(width=125),
            "now": NumberColumn(f"at {step:,}", help="Precision at 1 at the chosen step", width=76, **PERCENT),
            "last": NumberColumn("last", help="Precision at 1 at the last step", width=58, **PERCENT),
            "answer": TextColumn("top object", help="The most frequent object", width=72),
            "baseline": NumberColumn("always it", help="P@1 of always answering the top object", width=68, **PERCENT),
            "named": NumberColumn(
                "in name", help="Facts whose subject's name contains the object", width=64, **PERCENT
            ),
            "without": NumberColumn("others", help="P@1 at the last step, over the other facts", width=56, **PERCENT),
            "asked": NumberColumn(help="Facts whose object is a single piece of the model's vocabulary", width=54),
            "all": None,
            "coverage": NumberColumn(help="Share of the relation's facts that are asked", width=68, **PERCENT),
            "history": None,
            **{history: NumberColumn(width=width) for history, width in zip(HISTORIES, (58, 74, 70, 90), strict=True)},
        },
    )
    notices.show_caption(knowledge_facts.describe_relations(facts))


# === Facts ===


def _show_facts(view: View, precision: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    """Draw the pickers, the table of facts and, next to it, one fact, or a notice if the search finds none."""
    st.header("Facts", anchor=False)
    with st.container(key="beside_table"):
        left, right = st.columns([3, 2], gap="large")
    with left:
        default, default_fact = results.first_fact(view.run)
        asked_relations = set(facts["relation"])
        names = [name for name in knowledge.relations_by_precision(precision) if name in asked_relations]
        relations = {name: knowledge.relation_label(name) for name in names}
        relation_column, history_column = st.columns(2)
        with relation_column:
            relation = pickers.pick_one("relation", "Relation", relations, default)
        with history_column:
            history = pick_history("history")
        words = pickers.pick_text("facts", "Search", placeholder="a subject, an object or an answer")
        of_relation = facts[facts["relation"] == relation]
        includes_named = pickers.pick_switch(
            "named", "Also facts whose subject's name contains the object", optional=True
        )
        relation_facts = of_relation if includes_named else of_relation[~object_in_subject(of_relation)]
        at_step = results.answers(view.run, relation, step=step)
        at_step = at_step[at_step["fact"].isin(relation_facts["fact"])]
        answers = knowledge_facts.facts_at(at_step, relation_facts)
        found_facts = search(filter_history(answers, history), ("subject", "object", "prediction"), words)
        _show_fact_table(found_facts, relation, f"facts_{relation}_{history}_{words}")
        notices.show_caption(knowledge_facts.describe_facts(answers, found_facts, step, view.run.step_unit))
    with right:
        if len(found_facts) or answers.empty:
            _show_fact(
                view,
                relation_facts[relation_facts["fact"].isin(found_facts["fact"])] if len(found_facts) else of_relation,
                of_relation,
                default_fact,
            )
            return
        notices.note("No fact of this relation is found; change the search or the history.")
        permalink.put_in_url("fact", permalink.get("fact"))


def _show_fact_table(facts: pd.DataFrame, relation: str, key: str) -> None:
    """Draw the table of facts of a relation."""
    show_rows(
        facts.drop(columns="fact"),
        f"Facts of {knowledge.relation_label(relation)}",
        key,
        lambda row: permalink.choose("fact", facts["fact"].iloc[row]),
        {
            "object": "true object",
            "prediction": "answer",
            "prediction_probability": NumberColumn("p(answer)", **PERCENT),
            "rank": NumberColumn(
                "rank", width=60, format="localized", help="Rank of the true object among all words; 1 is right"
            ),
            "probability": NumberColumn("p(object)", **PERCENT),
            "first": NumberColumn(
                "first right", help="The first step at which the answer was right", format="localized"
            ),
        },
        height=420,
    )


def _ask_fact(run: Run, fact: Fact) -> None:
    """Open the Query page with the question of a fact."""
    permalink.choose("template", fact.relation)
    choose_text(question_of(run, fact), fact.id)
    permalink.open_page("query")


def _show_fact(view: View, facts: pd.DataFrame, of_relation: pd.DataFrame, default_fact: str | None) -> None:
    """Pick one of these `facts`; draw its figure and the table of its answers.

    `of_relation` has all facts of the relation, and `default_fact` is shown by default.
    """
    names = facts.set_index("fact")
    texts = (names["subject"] + " → " + names["object"] + " (" + names["history"] + ")").to_dict()
    hidden = dict.fromkeys(of_relation["fact"], "History, Search or names")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        fact = pickers.pick_one("fact", "Fact", texts, default_fact, hidden=hidden)
    relation = names["relation"][fact]
    if template := results.templates(view.run).get(relation):
        shown_fact = Fact(fact, relation, template, names["subject"][fact], names["object"][fact])
        right.button(
            "Ask it", help="Opens the Query page with this fact", on_click=_ask_fact, args=(view.run, shown_fact)
        )
    figure = figures.draw(view, knowledge_facts.fact, relation=relation, fact=fact)
    figures.show(figure)
    st.dataframe(
        figure.table[["step", "prediction", "prediction_probability", "rank", "probability", "right"]],
        alt="Answers to this fact at each step",
        hide_index=True,
        key=f"history_{fact}",
        column_config={
            "step": NumberColumn(step_unit_name(view.run.step_unit), format="localized"),
            "prediction": "answer",
            "prediction_probability": NumberColumn("p(answer)", **PERCENT),
            "rank": NumberColumn("rank", help="Of the true object among all words", format="localized", width=60),
            "probability": NumberColumn("p(object)", **PERCENT),
            "right": CheckboxColumn("right"),
        },
    )
    if template:
        _show_variants_of(view, shown_fact)


def _show_variants_of(view: View, fact: Fact) -> None:
    """Draw the variants of a fact's question and their answers; nothing if none was ever asked."""
    rows = knowledge_variants.variants_of_fact(view.run, fact, view.step)
    if rows.empty:
        return
    st.dataframe(
        rows,
        alt="Other questions about this fact",
        hide_index=True,
        key=f"variants_{fact.id}",
        column_config={
            "kind": TextColumn("asked by", width=105),
            "question": TextColumn(width=250),
            "answer": TextColumn(f"answer, {view.step:,}", width=95),
            "kept": NumberColumn("right at", width=65, help="Steps at which this question had the right answer"),
            "steps": NumberColumn("of steps", width=65, help="Steps at which the fact itself was answered right"),
        },
    )
    notices.show_caption(knowledge_variants.VARIANTS_CAPTION)
