"""What the caption of held-out accuracy by length and position says."""

import pandas as pd

from embryo_core.curves import difference_interval
from embryo_core.figures.markdown import literal
from embryo_core.words import percent

MASKED = {"training": "as in training"}  # how a way of masking is written; others as they are


def masked(masking: str) -> str:
    """A way of masking, as the picker and the caption have it."""
    return MASKED.get(masking, masking)


def by_position(data: pd.DataFrame, masking: str) -> str:
    """The caption of `charts.measures.curves_of`: the last step, and how far the last positions are from the first."""
    last = data.groupby("curve", sort=False).last()
    return (
        f"{_difference(last)}Share of masked pieces of held-out text predicted exactly, masked "
        f"{literal(masked(masking))}; the same sequences and masks at every step. Band: 95 % interval. Dashed: always "
        f"the training text's most frequent word. n at the last step: {_counts(last)}."
    )


def _difference(last: pd.DataFrame) -> str:
    """The first and the last group of positions of the longest sequences, where there are two."""
    length = last.index[-1].partition(",")[0]
    longest = last[[name.startswith(f"{length},") for name in last.index]]
    if len(longest) < 2:
        return ""
    (first, one), (second, other) = next(longest.iterrows()), (longest.index[-1], longest.iloc[-1])
    low, high = (100 * end for end in difference_interval(other["value"], one["value"], other["n"], n_second=one["n"]))
    return (
        f"In sequences of {length}, {second.partition(', ')[2]} are at {percent(other['value'])} and "
        f"{first.partition(', ')[2]} at {percent(one['value'])}: a difference of "
        f"{100 * (other['value'] - one['value']):+.1f} points ({low:+.1f} to {high:+.1f}). "
    )


def _counts(last: pd.DataFrame) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in last["n"].items())
