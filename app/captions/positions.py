"""What the captions of the embeddings of positions and of the states of a sentence say."""

import pandas as pd

from app.captions.markdown import literal
from app.charts.positions import POSITIONS, WORDS


def deviation(data: pd.DataFrame) -> str:
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
        f"The standard deviation of {groups[0]}, over that of the words, is least at step {step:,} ({ratio[step]:.2f})"
        f"{_at_last(ratio, step)}. Standard deviation of all numbers of an embedding table; small "
        "positions hardly tell a model the order of words, and those that training never saw stay as they were drawn. "
        f"n: rows of a table ({counted})."
    )


def cosine(data: pd.DataFrame, note: str) -> str:
    """The caption of the cosines on what the `note` says."""
    last = data[data["curve"] == data["curve"].max()].set_index("step")["value"]
    highest = int(last.idxmax())
    return (
        f"The states of a sentence are most alike in the last layer at step {highest:,} ({last[highest]:.2f})"
        f"{_at_last(last, highest)}. Mean cosine between the states of two different pieces of a sentence, "
        "then over the sentences; [CLS] and [SEP] are left out. At 1 all pieces have states of one direction. "
        f"n = {int(data['n'].max()):,} sentences. Data: {literal(note)}."
    )


def _at_last(values: pd.Series, told: int) -> str:
    """The value at the last evaluated step, where that is not the one that was told."""
    return "" if values.index[-1] == told else f", and {values.iloc[-1]:.2f} at step {values.index[-1]:,}, the last"
