"""What the captions of the embeddings of positions and of the states of a sentence say."""

import pandas as pd

from embryo_core.figures.markdown import literal
from embryo_core.figures.positions import POSITIONS, WORDS
from embryo_core.types import StepUnit
from embryo_core.words import point


def deviation(data: pd.DataFrame, unit: StepUnit) -> str:
    """The caption of the deviations: how large positions are beside words, least and last."""
    n = data.groupby("curve", sort=False)["n"].last()
    counted = ", ".join(f"{name} n = {rows:,}" for name, rows in n.items())
    table = data.pivot(index="step", columns="curve", values="value")
    groups = [name for name in table if name.startswith(POSITIONS)]
    if not groups:
        return f"Standard deviation of the word embeddings; this model has no embedding for each position. {counted}."
    ratio = table[groups[0]] / table[WORDS]
    step = int(ratio.idxmin())
    return (
        f"The standard deviation of {groups[0]}, over that of the words, is least at {point(step, unit)} "
        f"({ratio[step]:.2f}){_at_last(ratio, step, unit)}. Standard deviation of all numbers of an embedding "
        "table; small positions hardly tell a model the order of words, and those that training never saw stay as they "
        "were drawn. "
        f"n: rows of a table ({counted})."
    )


def cosine(data: pd.DataFrame, note: str, unit: StepUnit) -> str:
    """The caption of the cosines on what the `note` says."""
    last = data[data["curve"] == data["curve"].max()].set_index("step")["value"]
    highest = int(last.idxmax())
    return (
        f"The states of a sentence are most alike in the last layer at {point(highest, unit)} "
        f"({last[highest]:.2f}){_at_last(last, highest, unit)}. Mean cosine between the states of two different "
        "pieces of a sentence, then over the sentences; [CLS] and [SEP] are left out. At 1 all pieces have states of "
        f"one direction. n = {int(data['n'].max()):,} sentences. Data: {literal(note)}."
    )


def _at_last(values: pd.Series, told: int, unit: StepUnit) -> str:
    """The value at the last evaluated step, where that is not the one that was told."""
    last = int(values.index[-1])
    return "" if last == told else f", and {values.iloc[-1]:.2f} at {point(last, unit)}, the last"
