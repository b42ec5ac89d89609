"""The facts of all relations, of one relation at a step, and one fact over the steps (Section 6, Table 9)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves, results
from embryo_core.curves.baselines import object_in_subject
from embryo_core.errors import FigureError
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.figures.knowledge import METRIC, precision_table
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.groups import ALL, RELATION_NAMES
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step

HISTORY_NOTE = (
    "A fact is “learned” if its answer is correct from some step on, up to the last; “forgotten” if it was correct "
    "over one stretch of steps only, and then wrong to the end; “oscillating” if it was correct over two or more "
    "stretches; “never learned” if at no step. The curve of a relation has fallen where it is significantly (95 %) "
    "below its highest point so far. A relation is “learned” if its curve never falls and “oscillating” if it "
    "falls and comes back. If it stays fallen, it is “declined” above half of that point and “forgotten” below. "
    "It is “never learned” if its curve is never significantly above 2 %."
)


# === All relations ===


def relation_table(run: Run) -> pd.DataFrame:
    """Return the table of `summarise_relations` for a run. Raises ResultsError."""
    coverage, facts = results.read_scores(run, f"{METRIC}_coverage"), results.read_histories(run)
    return summarise_relations(precision_table(run), coverage, facts, precision_table(run, without_giveaways=True))


def summarise_relations(
    precision: pd.DataFrame, coverage: pd.DataFrame, facts: pd.DataFrame, without: pd.DataFrame
) -> pd.DataFrame:
    """Return a row for each relation, the best at the last step first.

    Columns: relation, name, last (precision at 1 at the last step), answer (the most frequent object) and baseline (the
    precision of always answering it), named (proportion of facts whose subject's name contains the object), without
    (the last precision over all other facts), asked (n facts), all (facts of the relation), coverage, history (of the
    relation's curve), and the number of facts with each history.

    `precision` is a `precision_table`, `coverage` the metric "world_knowledge_coverage", `facts` are
    `results.read_histories`, `without` is a `precision_table` over facts whose subject does not name the object.
    """
    curve = precision[precision["relation"] != ALL]
    coverage_by_relation = coverage[coverage["group"] != ALL].sort_values("step").groupby("group")
    table = coverage_by_relation.agg(coverage=("value", "last"), all=("n", "last")).rename_axis("relation")
    by_relation = curve.groupby("relation")
    table["last"] = by_relation["value"].last()
    table[["answer", "baseline"]] = by_relation[["answer", "baseline"]].first()
    table["named"] = object_in_subject(facts).groupby(facts["relation"]).mean()
    table["without"] = without.groupby("relation")["value"].last()
    table["history"] = pd.Series({name: curves.classify_curve(rows["value"], rows["n"]) for name, rows in by_relation})
    counts = facts.groupby(["relation", "history"]).size().unstack().reindex(columns=curves.HISTORIES)
    table = table.join(counts).fillna(dict.fromkeys(curves.HISTORIES, 0)).astype(dict.fromkeys(curves.HISTORIES, int))
    table["asked"] = table[list(curves.HISTORIES)].sum(axis=1)
    table = table.sort_values("last", ascending=False).reset_index()
    table.insert(1, "name", table["relation"].map(RELATION_NAMES).fillna(""))
    columns = ["last", "answer", "baseline", "named", "without", "asked", "all", "coverage", "history"]
    return table[["relation", "name", *columns, *curves.HISTORIES]]


def describe_relations(facts: pd.DataFrame) -> Caption:
    """Return the caption: the number of facts with each history, and the rules of histories."""
    total = facts["history"].value_counts().reindex(curves.HISTORIES, fill_value=0)
    counts = ", ".join(f"{count:,} {name}" for name, count in total.items())
    return Caption(
        f"Of {len(facts):,} facts asked: {counts}.",
        sentences(HISTORY_NOTE, "Only facts whose object is a single piece of the vocabulary can be asked."),
        hint="Click a row for the relation's facts.",
    )


# === The facts of a relation ===


def first_fact(run: Run) -> tuple[str | None, str | None]:
    """Return the relation and fact that the page opens on: the forgotten fact that was right at the most steps.

    If no fact was forgotten, it is a learned one, or else an oscillating one. Facts whose subject's name contains the
    object are left out. (None, None) if no fact remains. Raises ResultsError.
    """
    facts = results.read_histories(run)
    facts = facts.assign(right=results.read_right_answers(run).correct.sum(axis=1))[~object_in_subject(facts)]
    for history in ("forgotten", "learned", "oscillating"):
        if len(matching := facts[facts["history"] == history]):
            best = matching.loc[matching["right"].idxmax()]
            return str(best["relation"]), str(best["fact"])
    return None, None


def facts_at(answers: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Return the `facts` of one relation with their `answers` at one step.

    Columns: fact, subject, object, prediction, prediction_probability, rank and probability (both of the object),
    history, first (see `results.read_histories`).
    """
    answers = answers[["fact", "prediction", "prediction_probability", "rank", "probability"]]
    table = facts[["fact", "subject", "object", "history", "first"]].merge(answers, on="fact")
    return table[["fact", "subject", "object", *answers.columns[1:], "history", "first"]]


def describe_facts(table: pd.DataFrame, listed_facts: pd.DataFrame, step: int, unit: StepUnit) -> Caption:
    """Return the caption: the number of right facts of a relation (`table`) at a step, and of `listed_facts`."""
    right_count = int((table["rank"] == 1).sum())
    return Caption(
        f"At {name_step(step, unit)}, {right_count:,} of {len(table):,} facts of this relation are answered correctly; "
        f"{len(listed_facts):,} are listed.",
        hint="Click a row to follow one fact over all steps.",
    )


# === One fact ===


def fact(runs: Sequence[Run], axis: AxisChoice, relation: str, fact: str) -> Figure:
    """Return the figure of the first run's answers to one fact over the steps (Table 9)."""
    run = runs[0]
    answers = results.read_cloze(run, relation, fact)
    if answers.empty:
        raise FigureError(f"Run '{run.name}' was not asked the fact '{fact}' of relation {relation}.")
    facts = results.read_histories(run).set_index("fact").loc[fact]
    history = with_smoothed(fact_history(answers), "probability", axis.smoothing)
    return make_figure(
        [run],
        f"{run.name}-fact",
        f"{facts['subject']} → {facts['object']} ({facts['history']})",
        plot_fact(history, axis.for_run(run, runs)),
        history.assign(fact=fact, subject=facts["subject"], object=facts["object"]),
        Caption("What the model answered at each step, as in the paper's Table 9."),
        METRIC,
    )


def fact_history(answers: pd.DataFrame) -> pd.DataFrame:
    """Return step, prediction, prediction_probability, rank, probability (both of the object), right (Table 9)."""
    rows = answers.sort_values("step", ignore_index=True)
    names = ["step", "prediction", "prediction_probability", "rank", "probability"]
    return rows[names].assign(right=rows["rank"] == 1)


def plot_fact(history: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Return the plot of a `fact_history`: the probability of the true object and of the answer."""
    figure = go.Figure()
    x = axis.values(history["step"])
    answers = history[["step", "prediction", "rank"]].values
    hover_settings = {
        "customdata": np.array([[step, style.escape_text(word), rank] for step, word, rank in answers], dtype=object),
        "hovertemplate": f"{axis.hover_step('customdata[0]')}: %{{y:.2%}}<br>top answer: %{{customdata[1]}}<br>"
        "rank of the true object: %{customdata[2]:,}",
    }
    top_answers = history.drop(columns=[*smoothing.COLUMNS], errors="ignore")
    for rows, column, name, colour, symbol, line in (
        (top_answers, "prediction_probability", "the top answer", style.GREY, "circle-open", {"width": 1}),
        (history, "probability", "the true object", style.BLUE, "circle", {}),
    ):
        settings = {"line": line, "marker": {"size": 7, "symbol": symbol}, **hover_settings}
        if rows is top_answers:
            settings["meta"] = None  # it stays as measured
        smoothing.add_curve(figure, x, rows, column, name, colour, **settings)
    axis.draw(figure, list(history["step"]))
    figure.update_yaxes(tickformat="~%", rangemode="tozero")
    return style.finish(figure, "probability", height=280)
