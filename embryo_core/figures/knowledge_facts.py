"""The facts of one relation at a step, and one fact over the steps (Section 6, Table 9)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import results
from embryo_core.curves.baselines import object_in_subject
from embryo_core.errors import FigureError
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.figure import Caption, Figure, make_figure
from embryo_core.figures.knowledge import METRIC
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step

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
