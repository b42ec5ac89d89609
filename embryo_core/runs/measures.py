"""Held-out accuracy by length, masking and position, as pretraining noted it in log.jsonl at every checkpoint."""

from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct, ValidationError, convert

from embryo_core.runs.log import read_log
from embryo_core.runs.value_types import Count, Label, resolve
from embryo_core.types import Run


class Positions(Struct, frozen=True):
    """Masked pieces at some positions of their sequences."""

    first: Count
    last: Count
    accuracy: Annotated[float, Meta(ge=0, le=1)]
    n: Annotated[int, Meta(ge=1, le=2**63 - 1)]


class Measure(Struct, frozen=True):
    """Held-out sequences of one length, masked in one way; a row may say more of them."""

    length: Count
    masking: Label
    positions: Annotated[list[Positions], Meta(max_length=1000)]


resolve(globals())


class Measured(NamedTuple):
    """Accuracy of the `n` masked pieces at positions `first` to `last` of sequences of `length` tokens."""

    step: int
    length: int
    masking: str  # "training", "single pieces 15 %", "whole words 15 %" or "single pieces 15 %, all [MASK]"
    first: int
    last: int
    accuracy: float
    n: int
    sample: int  # masked pieces at all positions: what tells sequences from others of the length


def read_measures(run: Run) -> list[Measured]:
    """Every measure by position in the order of steps; none where the log has none of this form.

    Raises BrokenRun where the log as a whole cannot be read.
    """
    return [
        Measured(
            row["step"],
            measure.length,
            measure.masking,
            group.first,
            group.last,
            group.accuracy,
            group.n,
            sum(each.n for each in measure.positions),
        )
        for row in read_log(run)
        if row["split"] == "heldout"
        for measure in _measures(row.get("measures"))
        for group in measure.positions
    ]


def _measures(value: Any) -> list[Measure]:
    """A row's measures; none where one of them has another form, as those of replaced tokens have."""
    try:
        return convert(value, list[Measure])
    except ValidationError:
        return []
