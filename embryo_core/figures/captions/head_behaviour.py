"""What the captions of "What a head does" say: what one number is, when a pattern counts as present, and where."""

import pandas as pd

from embryo_core.figures.markdown import literal
from embryo_core.figures.patterns import Pattern, baseline
from embryo_core.types import StepUnit
from embryo_core.words import percent, point, quantity

BASELINE = "baseline"  # in place of a change, where a head has to reach the best fixed offset


def value(pattern: Pattern, note: str, here: pd.DataFrame) -> str:
    """The caption of a pattern at one step, its rows being `here`, measured on what the `note` says."""
    return (
        f"{_sentence(pattern.means)}. {_sentence(literal(note))}; n = {here['n'].max():,} in each cell. Colours run "
        "from the lowest to the highest value of any head at any step. Click a cell for its head."
    )


def presence(frame: pd.DataFrame, change: float | None, since: pd.DataFrame, unit: StepUnit) -> str:
    """The rule by which a pattern counts as present, and the heads that have it, the earliest layer first."""
    return f"{_rule(frame, change, unit)} {_heads(since, unit)}"


def over_steps(rows: pd.DataFrame, chosen: tuple[int, int]) -> str:
    """The caption of the curves of all heads, the chosen layer and head large."""
    return (
        f"Layer {chosen[0]}, head {chosen[1]}, bold, among all {rows.groupby(['layer', 'head']).ngroups} heads, at "
        f"{quantity(rows['step'].nunique(), 'step')}, n = {rows['n'].max():,}. "
        "Click a point to choose its head and step."
    )


def change(option: str, first: int, unit: StepUnit) -> str:
    """A choice of the rule as its picker says it: "baseline", or a change since the `first` step."""
    if option == BASELINE:
        return "reached the best fixed offset"
    return f"{'risen' if option[0] == '+' else 'fallen'} by {option[1:]} since {point(first, unit)}"


def _rule(frame: pd.DataFrame, change: float | None, unit: StepUnit) -> str:
    if change is None:
        share, offset = baseline(frame)
        return (
            "The first step from which an attention head stays at least as accurate as the best fixed offset, up to "
            f"the last step. Always answering the word at {offset:+d} is right for {percent(share)} of the same words."
        )
    moved = "above" if change > 0 else "below"
    return (
        f"The first step from which a head's value stays at least {abs(change):g} {moved} its value at "
        f"{point(int(frame['step'].min()), unit)}, up to the last step."
    )


def _heads(since: pd.DataFrame, unit: StepUnit) -> str:
    present = since.dropna().sort_values(["step", "layer", "head"])
    if present.empty:
        return f"Of {quantity(len(since), 'head')}, none shows the pattern at the last step."
    firsts = present.drop_duplicates("layer")
    order = ", ".join(
        f"layer {row.layer} at {point(int(row.step), unit)} (head {row.head})" for row in firsts.itertuples()
    )
    show = "shows" if len(present) == 1 else "show"
    return (
        f"Of {quantity(len(since), 'head')}, {len(present):,} {show} the pattern at the last step; the first of each "
        f"layer: {order}."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
