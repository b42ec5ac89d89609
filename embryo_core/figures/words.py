"""Words over pretraining: the surprisal of a word, and the steps at which words are acquired."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from embryo_core import curves, results
from embryo_core.engine.capabilities import run_gives
from embryo_core.figures.axis import Axis
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.types import Run

METRIC = "word_surprisal"
BITS = Curves(
    by="word",
    y_title="surprisal (bits)",
    value="surprisal",
    baseline="chance",
    baseline_name="chance",
    tickformat="",
    decimals=".2f",
    unit="occurrences",
)
HOW = {  # how a word is predicted
    True: "A piece is masked together with the pieces of its word after it, and predicted from both sides.",
    False: "A piece is predicted from those before it.",
}


# === One word ===


def curve_table(run: Run, word: str) -> pd.DataFrame:
    """Return the surprisal of a word at every step, empty if it was not measured. Raises ResultsError.

    Columns: word, step, surprisal (bits), n, low, high (95 %, of a mean over the occurrences), chance.
    """
    table = results.read_surprisals(run, word)
    spreads = [
        np.frombuffer(each, "<f2").astype(float).std(ddof=1) if n > 1 else np.nan
        for each, n in zip(table["occurrences"], table["n"], strict=True)
    ]
    reach = curves.Z * np.array(spreads, float) / np.sqrt(table["n"].to_numpy())
    table = table[["word", "step", "surprisal", "n", "chance"]]
    return table.assign(low=table["surprisal"] - reach, high=table["surprisal"] + reach)


def curve(runs: Sequence[Run], axis: Axis, word: str) -> Figure:
    """Return the mean surprisal of a word at every step. Raises FigureError and ResultsError."""
    run = runs[0]

    def caption(table: pd.DataFrame) -> Caption:
        lowest = table.loc[table["surprisal"].idxmin()]
        return Caption(
            f"Mean surprisal of “{word}”: from {table['surprisal'].iloc[0]:.1f} bits at the first step to "
            f"{lowest['surprisal']:.1f} at its lowest.",
            sentences(
                f"Surprisal: minus log2 of the probability of all its pieces. {HOW['masked_words' in run_gives(run)]}",
                "Bands: 95 % of a mean over the occurrences. Dashed: chance, all pieces of the vocabulary alike.",
            ),
            f"Words: {data_note(run, METRIC, 'a list of words')}.",
        )

    name, title = f"{run.name}-word-{word.replace(' ', '-')}", f"Surprisal of “{word}”"
    return curves_figure(runs, axis, lambda own: curve_table(own, word), BITS, name, title, caption, METRIC)
