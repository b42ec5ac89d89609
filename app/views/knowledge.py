"""Knowledge: which facts the model answers at each step, and what it says instead (Section 6, Figures 6 and 14)."""

import pandas as pd
import streamlit as st

from app import permalink, results, widgets
from app.charts import knowledge as charts
from app.widgets import View

METRIC = "world_knowledge"
PERCENT = {"format": "percent", "step": 0.001}
RULES = (
    "A fact is **learned** if it is answered rightly from some step on, up to the last; **forgotten** if it was right "
    "over one stretch of steps only, and then wrong to the end; **oscillating** if it was right over two or more "
    "stretches; **never learned** if at no step. The curve of a relation, smoothed, is judged alike by the stretches over "
    "which it is held: from where it comes to three quarters of its highest point until it falls below half of that; it "
    "is never learned where it stays below 2 %."
)


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Knowledge")
    scores = results.scores(view.run, METRIC)
    facts = results.fact_histories(view.run)
    if scores.empty or facts.empty:
        widgets.stop(
            f"Run '{view.run.name}' has not been asked any facts yet.",
            f"python -m embryo_core evaluate {view.run.name} --metrics {METRIC} --lama PATH",
        )
    frame = charts.relation_curves(scores)
    step = view.evaluated(frame["step"])
    _relations(view, frame)
    _relation_table(view, frame, facts, step)
    _facts(view, frame, facts, step)


def _best_first(frame: pd.DataFrame) -> list[str]:
    """Relations by their precision at the last step."""
    last = frame[(frame["step"] == frame["step"].max()) & (frame["relation"] != charts.ALL)]
    return last.sort_values("value", ascending=False)["relation"].tolist()


# === Relations ===


def _relations(view: View, frame: pd.DataFrame) -> None:
    options = [charts.ALL, *_best_first(frame)]
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        chosen = widgets.pick_many(
            "relations",
            "Relations, the best at the last step first",
            options,
            charts.default_relations(frame),
            charts.label,
        )
    with right:
        smooth = widgets.pick_switch("smooth", "3-step mean")
    if not chosen:
        st.info("Choose at least one relation.", icon=":material/info:")
        return
    behind = "; the line is the mean of 3 neighbouring steps, the raw one is faint behind it" if smooth else ""
    note = results.sources(view.run).get(METRIC, {}).get("note", "facts of LAMA's T-REx")
    widgets.show_figure(
        charts.relation_figure(frame, chosen, view.axis, smooth),
        frame[frame["relation"].isin(chosen)],
        f"{view.run.name}-knowledge",
        f"Precision at 1: the share of facts whose object is the model's first answer at the masked place, among all "
        f"pieces of its vocabulary ({note}). Bands are 95 % Wilson intervals from the number of facts{behind}. Click a "
        "point for its facts.",
        on_point=_point_chosen,
    )


def _point_chosen(point: dict) -> None:
    relation, step = point["customdata"][:2]
    permalink.choose("step", step)
    if relation != charts.ALL:
        permalink.choose("relation", relation)


def _relation_table(view: View, frame: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    coverage = results.scores(view.run, "world_knowledge_coverage")
    table = charts.relation_table(frame, coverage, facts, step)
    st.subheader("Every relation", anchor=False)
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        key="relation_table",
        on_select=lambda: _row_chosen("relation_table", "relation", table["relation"]),
        selection_mode="single-row",
        placeholder="–",
        column_config={
            "relation": st.column_config.TextColumn("id", width=60),
            "now": number(f"P@1, step {step:,}", **PERCENT),
            "last": number("P@1, last step", **PERCENT),
            "asked": number("facts asked", help="Facts whose object is a single piece of the model's vocabulary"),
            "all": number("all facts"),
            "coverage": number("coverage", help="Facts asked, of all facts of the relation", **PERCENT),
            "history": st.column_config.TextColumn("curve", help="The history of the relation's P@1"),
        },
    )
    total = facts["history"].value_counts().reindex(charts.HISTORIES, fill_value=0)
    counted = ", ".join(f"{count:,} {name}" for name, count in total.items())
    st.caption(
        f"Of {len(facts):,} facts asked: {counted}. {RULES} Only facts whose object is a single piece of the "
        "vocabulary can be asked. Click a row for the relation's facts."
    )


# === Facts ===


def _facts(view: View, frame: pd.DataFrame, facts: pd.DataFrame, step: int) -> None:
    st.subheader("Facts", anchor=False)
    asked = set(facts["relation"])
    relations = [relation for relation in _best_first(frame) if relation in asked]
    left, right = st.columns([3, 2], gap="large")
    with left:
        one, two = st.columns(2)
        with one:
            relation = widgets.pick_one("relation", "Relation", relations, format_func=charts.label)
        with two:
            history = widgets.pick_one("history", "History", ("any", *charts.HISTORIES))
        words = widgets.pick_text("facts", "Search", placeholder="a subject, an object or an answer")
    cloze = results.cloze(view.run, relation)
    known = facts[facts["relation"] == relation]
    with left:
        _fact_table(charts.facts_at(cloze, known, step), history, words, relation, step)
    with right:
        _one_fact(view, cloze, known)


def _fact_table(table: pd.DataFrame, history: str, words: str, relation: str, step: int) -> None:
    asked = len(table)
    right = int((table["rank"] == 1).sum())
    if history != "any":
        table = table[table["history"] == history]
    table = charts.search(table, words)
    number = st.column_config.NumberColumn
    key = f"facts_{relation}_{history}_{words}"
    st.dataframe(
        table.drop(columns="fact"),
        hide_index=True,
        height=420,
        key=key,
        on_select=lambda: _row_chosen(key, "fact", table["fact"]),
        selection_mode="single-row",
        placeholder="–",
        column_config={
            "subject": "subject",
            "object": "true object",
            "prediction": "answer",
            "prediction_probability": number("p(answer)", **PERCENT),
            "rank": number(
                "rank", width=60, format="localized", help="Rank of the true object among all words; 1 is right"
            ),
            "probability": number("p(object)", **PERCENT),
            "first": number("first right", help="The first step at which the answer was right", format="localized"),
        },
    )
    st.caption(
        f"At step {step:,} {right:,} of {asked:,} facts of this relation are answered rightly; {len(table):,} are listed. "
        "Click a row to follow one fact through all steps."
    )


def _one_fact(view: View, cloze: pd.DataFrame, known: pd.DataFrame) -> None:
    names = known.set_index("fact")
    texts = (names["subject"] + " → " + names["object"] + " (" + names["history"] + ")").to_dict()
    learned = known.loc[known["history"] == "learned", "fact"]
    fact = widgets.pick_one(
        "fact", "Fact", known["fact"].tolist(), default=next(iter(learned), None), format_func=texts.__getitem__
    )
    history = charts.fact_history(cloze, fact)
    number = st.column_config.NumberColumn
    widgets.show_figure(
        charts.fact_figure(history, view.axis),
        history.assign(fact=fact, subject=names["subject"][fact], object=names["object"][fact]),
        f"{view.run.name}-fact",
        "What the model answered at each step, as in the paper's Table 9.",
    )
    st.dataframe(
        history,
        hide_index=True,
        key=f"history_{fact}",
        column_config={
            "step": number("step", format="localized"),
            "prediction": "answer",
            "prediction_probability": number("p(answer)", **PERCENT),
            "rank": number("rank of the object", format="localized"),
            "probability": number("p(object)", **PERCENT),
            "right": st.column_config.CheckboxColumn("right"),
        },
    )


def _row_chosen(key: str, name: str, values: pd.Series) -> None:
    for row in st.session_state[key].selection.rows[:1]:
        permalink.choose(name, values.iloc[row])
