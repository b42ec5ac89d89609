"""The divergence of predictions from the unigram and bigram distributions of the text, over the steps."""

from collections.abc import Sequence

import pandas as pd

from embryo_core import results
from embryo_core.curves import Z
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note
from embryo_core.types import Run, StepUnit
from embryo_core.words import list_steps, name_step

METRIC = "ngram_divergence"
STYLES = {"unigram": (style.BLUE, "circle"), "bigram": (style.VERMILION, "square")}
CURVES = Curves(
    by="group",
    styles=lambda groups: {group: look for group, look in STYLES.items() if group in groups},
    y_title="divergence (nats)",
    metric=METRIC,
    decimals=".2f",
    height=300,
)


def divergence(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the divergence of predictions from unigrams and from bigrams."""
    run = runs[0]
    return curves_figure(
        runs,
        axis,
        lambda line_run: with_standard_errors(
            results.read_scores(line_run, METRIC), results.read_scores(line_run, f"{METRIC}_error")
        ),
        CURVES,
        "ngrams",
        "Distance from unigrams and bigrams",
        lambda table: describe_divergence(table, data_note(run, METRIC, "held-out text"), run.step_unit),
    )


def with_standard_errors(scores: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Return `scores` with 95 % intervals from their standard `errors`: group, step, value, low, high, n.

    A score without an error has no interval: its low and high are NaN.
    """
    table = scores.merge(errors[["group", "step", "value"]], on=["group", "step"], how="left", suffixes=("", "_error"))
    half_width = Z * table["value_error"]
    table = table.assign(low=(table["value"] - half_width).clip(lower=0), high=table["value"] + half_width)
    return table[["group", "step", "value", "low", "high", "n"]].sort_values(["group", "step"], ignore_index=True)


def describe_divergence(table: pd.DataFrame, note: str, unit: StepUnit) -> Caption:
    """Return the caption: when predictions are nearest to unigrams, and when they are nearer to bigrams."""
    by_group = {group: rows.set_index("step") for group, rows in table.groupby("group")}
    unigram, bigram = by_group["unigram"], by_group["bigram"]
    nearer_steps = bigram.index[bigram["high"] < unigram["low"].reindex(bigram.index)]  # significantly nearer
    step = int(unigram["value"].idxmin())
    if step in nearer_steps:
        phase_note = ", when they are nearer to bigrams: no unigram phase is among these steps"
    else:
        phase_note = ": the unigram phase, in which the model knows which pieces are frequent and little else"
        if step == unigram.index.min():
            phase_note = f", the first that was evaluated, so it may have been earlier{phase_note}"
    step_range = f"{list_steps(nearer_steps.tolist(), unit)} they are" if len(nearer_steps) else "no step are they"
    bigram_note = f"At {step_range} significantly nearer to bigrams: what follows the piece before."
    return Caption(
        f"Predictions are nearest to unigrams, the frequencies of single pieces, at {name_step(step, unit)} "
        f"({unigram['value'].min():.2f} nats){phase_note}.",
        f"{bigram_note} Where both divergences rise, the model uses more of the sentence than the piece before. "
        "Kullback-Leibler divergence from the model's distribution to both, mean over pieces; band: 95 % interval.",
        f"Data: {note}.",
    )
