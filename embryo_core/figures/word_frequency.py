"""Words beside their frequency: nearest to it at some step, then less surprising than it, as context comes in.

Chang and Bergen (2022) find that models first learn unigrams, then bigrams, then context.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import curves, results
from embryo_core import runs as run_files
from embryo_core.corpora.groups import ALL
from embryo_core.errors import FigureError
from embryo_core.figures.axis import Axis
from embryo_core.figures.curves import curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.figures.words import BITS, METRIC, age_table, category_styles, reaches
from embryo_core.types import Run
from embryo_core.words import percent, point

NO_BIGRAMS = (
    "The run counted single words of its text and no pairs, so that the distance from bigrams is known over all pieces "
    "alone: see n-gram divergence on Overview."
)


def distance_table(run: Run) -> pd.DataFrame:
    """Return how far words are from their frequency at each step, of all and of each category.

    Columns: group, step, value (mean distance of the surprisal from that by frequency, bits), low, high (95 %), n
    (words), below (the share whose surprisal is surely below). Empty if the run did not count its words. Raises
    ResultsError.
    """
    ages = age_table(run).set_index("word")
    table = results.read_surprisals(run)
    table["unigram"] = table["word"].map(ages["unigram"])
    table = table[table["unigram"].notna()]
    below = table["surprisal"] + reaches(table) < table["unigram"]
    table = table.assign(distance=(table["surprisal"] - table["unigram"]).abs(), below=below)
    parts = [table.assign(group=ALL), table.assign(group=table["category"]).dropna(subset="group")]
    grouped = pd.concat(parts).groupby(["group", "step"], sort=False)
    rows = grouped.agg(
        value=("distance", "mean"), spread=("distance", "std"), n=("distance", "size"), below=("below", "mean")
    ).reset_index()
    reach = curves.Z * rows["spread"] / np.sqrt(rows["n"])
    return rows.assign(low=rows["value"] - reach, high=rows["value"] + reach).drop(columns="spread")


def distance(runs: Sequence[Run], axis: Axis) -> Figure:
    """Return how far the surprisal of words is from that by their frequency. Raises FigureError and ResultsError."""
    run = runs[0]
    if not run_files.read_counts(run.frequencies):
        raise FigureError(f"Run '{run.name}' did not count the words of its training text, so no frequency is known.")

    def caption(table: pd.DataFrame) -> Caption:
        whole = table[table["group"] == ALL].reset_index(drop=True)
        nearest, half = whole.loc[whole["value"].idxmin()], whole[whole["below"] >= 0.5]
        then = f"from {point(int(half['step'].iloc[0]), run.step_unit)} on" if len(half) else "at no step"
        return Caption(
            f"Words are nearest to their frequency at {point(int(nearest['step']), run.step_unit)}, by "
            f"{nearest['value']:.1f} bits on average; {then}, context makes half of them surely less surprising "
            f"({percent(whole['below'].iloc[-1], 0)} at the end).",
            sentences(
                "Distance: of a word's mean surprisal from minus log2 of its share of the words of the training text "
                "(unigrams), whatever its sign; mean over words. Bands: 95 %.",
                NO_BIGRAMS,
            ),
            f"Words: {data_note(run, METRIC, 'a list of words')}.",
        )

    named: dict[str, Any] = {"by": "group", "value": "value", "y_title": "distance (bits)", "unit": "words"}
    bits = replace(BITS, **named, baseline=None, styles=category_styles)
    name = f"{run.name}-words-frequency"
    return curves_figure(runs, axis, distance_table, bits, name, "Distance from frequency", caption, METRIC)
