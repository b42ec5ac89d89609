"""The sentences behind a point of the Grammar page: pairs at a step, one pair over the steps, words at a step."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves, results
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, make_figure
from embryo_core.figures.grammar import METRIC, group_label
from embryo_core.types import MinimalPair, Run
from embryo_core.words import name_step, percent, quantity

NATS_CURVES = Curves(
    by="pair",
    metric=METRIC,
    value="difference",
    y_title="score of the good sentence − the bad one (nats)",
    baseline="none",
    baseline_name="no difference",
    label=lambda pair: f"pair {pair}",
    decimals="+.2f",
    height=320,
)


# === At a step ===


def pairs_at(run: Run, paradigm: str, step: int, sentences: Sequence[MinimalPair] = ()) -> pd.DataFrame:
    """Return the pairs of a paradigm at a step: pair, good, bad, difference, good_score, bad_score, right, history.

    `good` and `bad` are the sentences, if given. Scores are in nats; `history` comes from `curves.classify_histories`,
    in which a tie counts as wrong. The lowest difference comes first. Raises ResultsError.
    """
    table = results.read_pair_scores(run, paradigm)
    table = table.assign(difference=table["good"] - table["bad"])
    histories = table.assign(right=table["difference"] > 0).pivot(index="pair", columns="step", values="right")
    histories = pd.Series(curves.classify_histories(histories.fillna(False).to_numpy(bool)), histories.index)
    step_rows = table[table["step"] == step].rename(columns={"good": "good_score", "bad": "bad_score"})
    texts = {pair.number: pair for pair in sentences}
    for name in ("good", "bad"):
        step_rows[name] = [getattr(texts.get(number), name, "") for number in step_rows["pair"]]
    step_rows["right"] = step_rows["difference"] > 0
    step_rows["history"] = step_rows["pair"].map(histories)
    names = ["pair", "good", "bad", "difference", "good_score", "bad_score", "right", "history"]
    return step_rows.sort_values("difference", ignore_index=True)[names]


def describe_pairs(run: Run, paradigm: str, step: int, table: pd.DataFrame) -> Caption:
    """Return the caption: the number of right pairs of a paradigm at a step, and the columns."""
    right, n = int(table["right"].sum()), len(table)
    ties = int((table["difference"] == 0).sum())
    tied = f", {quantity(ties, 'tie')} counting half" if ties else ""
    return Caption(
        f"{group_label(paradigm)} at {name_step(step, run.step_unit)}: {right:,} of {quantity(n, 'pair')} right{tied}.",
        "Scores are sums of log probabilities in nats, never divided by the length of the sentence.",
        hint="Click a row to follow the pair over all steps.",
    )


# === Over the steps ===


def pair(runs: Sequence[Run], axis: AxisChoice, paradigm: str, number: int) -> Figure:
    """Return the figure of how much the good sentence of a pair is preferred at every step."""

    def read(run: Run) -> pd.DataFrame:
        table = results.read_pair_scores(run, paradigm)
        scores = table[table["pair"] == number]
        return scores.assign(difference=scores["good"] - scores["bad"], none=0.0)

    def caption(table: pd.DataFrame) -> Caption:
        right_rate = float((table["difference"] > 0).mean())
        return Caption(
            f"The good sentence has the higher score at {percent(right_rate)} of {quantity(len(table), 'step')}.",
            "Above the dashed line the pair is right. The CSV has the scores of both sentences.",
        )

    title = f"{group_label(paradigm)}, pair {number}"
    return curves_figure(runs, axis, read, NATS_CURVES, "grammar-pair", title, caption)


# === Its words ===


def words(run: Run, paradigm: str, number: int, table: pd.DataFrame, step: int) -> Figure:
    """Return the figure of a pair's difference by word at a step, from the table of `pair_sentences.score_words`."""
    step_rows = table[table["step"] == step]
    if step_rows.empty:
        raise FigureError(f"The words of this pair were not scored at {name_step(step, run.step_unit)}.")
    step_rows = step_rows.assign(difference=step_rows["good_score"] - step_rows["bad_score"])
    largest = step_rows.loc[step_rows["difference"].abs().idxmax()]
    total = step_rows["difference"].sum()
    return make_figure(
        [run],
        f"{run.name}-grammar-words",
        f"{group_label(paradigm)}, pair {number}: words at {name_step(step, run.step_unit)}",
        _plot_words(step_rows),
        step_rows,
        Caption(
            f"“{_name_words(largest)}” differs most: {largest['difference']:+.2f} nats of {total:+.2f} in the whole "
            "sentence.",
            "Each bar: the log probability of the good sentence's words at a place minus the bad one's. Words that "
            "both have differ too, because each is predicted from other words of its sentence.",
        ),
        METRIC,
        suffix=f"step{step}",
    )


def _name_words(row: Mapping[str, str]) -> str:
    good, bad = row["good"], row["bad"]
    return good if good == bad else f"{good or '–'} / {bad or '–'}"


def _plot_words(words: pd.DataFrame) -> go.Figure:
    rows = words.to_dict("records")
    names = [style.escape_text(_name_words(row)) for row in rows]
    texts = [
        f"<b>{name}</b><br>good {row['good_score']:.2f}, bad {row['bad_score']:.2f}: {row['difference']:+.2f} nats"
        for name, row in zip(names, rows, strict=True)
    ]
    figure = go.Figure(
        go.Bar(
            x=words["place"],
            y=words["difference"],
            marker={"color": np.where(words["difference"] >= 0, style.BLUE, style.VERMILION)},
            text=texts,
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )
    )
    style.finish(figure, "good − bad (nats)", height=300, legend=False)
    return style.set_axes(figure, "x", tickvals=words["place"].tolist(), ticktext=names)
