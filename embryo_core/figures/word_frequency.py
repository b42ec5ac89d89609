"""Words compared with unigrams and bigrams: which of these a word's surprisal is near, or whether it is below both.

Chang and Bergen (2022) find that models first learn unigrams, then bigrams, then context.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from embryo_core import curves, results
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure
from embryo_core.figures.word_tables import METRIC, age_table, counted_text, interval_half_widths
from embryo_core.figures.words import category_styles, describe_data
from embryo_core.groups import ALL
from embryo_core.types import Run
from embryo_core.words import percent

NEAREST = {  # distribution nearest to a word's surprisal at a step -> colour and symbol
    "chance": (style.GREY, "circle"),
    "unigram": (style.BLUE, "square"),
    "bigram": (style.VERMILION, "diamond"),
    "context": (style.OLIVE, "triangle-up"),
}
NEAREST_CURVES = Curves(
    by="group",
    y_title="words",
    metric=METRIC,
    unit="words",
    styles=lambda names: {name: NEAREST[name] for name in names},
)


@results.memoized
def distance_table(run: Run) -> pd.DataFrame:
    """Return the mean distance of words from their frequency at each step, for all words and each category.

    Columns: group, step, value (mean distance in bits of the surprisal from the surprisal by frequency), low, high
    (95 %), n (words), below (proportion of words whose surprisal is significantly below both the surprisal by frequency
    and chance). Empty if no frequency is known.
    """
    ages = age_table(run).set_index("word")
    table = results.read_surprisals(run)
    table["unigram"] = table["word"].map(ages["unigram"]).astype(float)  # float: without words the column would be text
    table = table[table["unigram"].notna()]
    below = table["surprisal"] + interval_half_widths(table) < table[["unigram", "chance"]].min(axis=1)
    table = table.assign(distance=(table["surprisal"] - table["unigram"]).abs(), below=below)
    tables = [table.assign(group=ALL), table.assign(group=table["category"]).dropna(subset="group")]
    rows = pd.concat(tables)
    groups = pd.Categorical(rows["group"], rows["group"].unique())  # in this order, each with its steps in order
    grouped = rows.assign(group=groups).groupby(["group", "step"], observed=True)
    rows = grouped.agg(
        value=("distance", "mean"), spread=("distance", "std"), n=("distance", "size"), below=("below", "mean")
    ).reset_index()
    rows["group"] = rows["group"].astype(object)
    half_widths = curves.Z * rows["spread"] / np.sqrt(rows["n"])
    return rows.assign(low=rows["value"] - half_widths, high=rows["value"] + half_widths).drop(columns="spread")


def distance(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the distance of words' surprisal from their surprisal by frequency.

    Raises FigureError if no frequency is known for the first run.
    """
    run, step_axis = runs[0], axis.for_run(runs[0], runs)
    if distance_table(run).empty:
        raise FigureError(f"Run '{run.name}' did not count the words of its training text, so no frequency is known.")

    def caption(table: pd.DataFrame) -> Caption:
        all_words = table[table["group"] == ALL].reset_index(drop=True)
        nearest = all_words.loc[all_words["value"].idxmin()]
        onset = curves.held_from(all_words["step"].to_numpy(), all_words["below"], 0.5)
        onset_note = "at no step" if onset is None else f"from {step_axis.step_in_unit(onset)} on"
        return Caption(
            f"Words are nearest to their frequency at {step_axis.step_in_unit(int(nearest['step']))}, by "
            f"{nearest['value']:.1f} bits on average; {onset_note}, context makes half of them significantly less "
            f"surprising ({percent(all_words['below'].iloc[-1], 0)} at the end).",
            f"Distance: of a word's mean surprisal from minus log2 of its relative frequency in the words of the "
            f"{counted_text(run)} (unigrams), in absolute value; mean over words. Bands: 95 %.",
            describe_data(run),
        )

    bits = Curves(
        by="group", y_title="distance (bits)", metric=METRIC, decimals=".2f", unit="words", styles=category_styles
    )
    name, title = "words-frequency", "Distance from frequency"
    return curves_figure(runs, axis, distance_table, bits, name, title, caption)


@results.memoized
def nearest_table(run: Run) -> pd.DataFrame:
    """Return the proportion of words nearest to each distribution: group, step, value, n, low, high (95 %, Wilson).

    A word counts as "context" if its surprisal is significantly below chance and below its surprisals by unigrams and
    bigrams, else as the distribution whose surprisal is nearest. Empty if unigrams or bigrams are unknown for all
    words. Raises ResultsError.
    """
    ages = age_table(run).set_index("word")
    table = results.read_surprisals(run)
    surprisals = {name: table["word"].map(ages[name]).to_numpy(float) for name in ("unigram", "bigram")}
    bits = np.stack([table["chance"], *surprisals.values()])  # [chance, unigram, bigram; rows]
    surprisal = table["surprisal"].to_numpy(float)
    nearest = np.array([*NEAREST])[np.nan_to_num(np.abs(bits - surprisal), nan=np.inf).argmin(axis=0)]
    nearest = np.where(surprisal + interval_half_widths(table) < bits.min(axis=0), "context", nearest)
    table = table.assign(nearest=nearest)[~np.isnan(bits).any(axis=0)]
    counts = pd.crosstab(table["step"], table["nearest"]).reindex(columns=[*NEAREST], fill_value=0)
    rows = counts.div(counts.sum(axis=1), axis=0).rename_axis(columns="group").unstack().rename("value").reset_index()
    rows["n"] = rows["step"].map(counts.sum(axis=1))
    return with_intervals(rows)


def nearest_distributions(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the proportions of words nearest to chance, unigram and bigram, or below all three."""
    run, step_axis = runs[0], axis.for_run(runs[0], runs)
    if nearest_table(run).empty:
        raise FigureError(
            f"Run '{run.name}' has no surprisals by bigrams beside those by frequency. To store them, evaluate any "
            f"step again: python -m embryo_core evaluate {run.name} --metrics {METRIC} --words PATH --text PATH "
            "--steps STEP --overwrite"
        )

    def caption(table: pd.DataFrame) -> Caption:
        highest = table.loc[table.groupby("group", sort=False)["value"].idxmax()].set_index("group")
        highest_proportions = (
            f"{name} {percent(row['value'], 0)} at {step_axis.step_in_unit(int(row['step']))}"
            for name, row in highest.iterrows()
        )
        return Caption(
            f"Highest proportions of words: {', '.join(highest_proportions)}.",
            f"Unigram: a word's relative frequency in the {counted_text(run)}. Bigram: its probability after the word "
            "before, by counts of the measured text without the occurrence itself (smoothed as by Witten and Bell), "
            "mean over its occurrences. Context: its mean surprisal is significantly below all three. Bands: 95 % "
            "(Wilson).",
            f"{describe_data(run)} n = {table['n'].max():,} words with a unigram and a bigram probability.",
        )

    name, title = "words-phases", "Unigrams, bigrams, context"
    return curves_figure(runs, axis, nearest_table, NEAREST_CURVES, name, title, caption)
