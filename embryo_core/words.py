"""Numbers in sentences."""

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from embryo_core.types import StepUnit

if TYPE_CHECKING:
    import pandas as pd

LISTED = 8  # steps that are named one by one


def quantity(n: int, noun: str) -> str:
    """That many of a regular noun: "1 checkpoint", "1,000 checkpoints"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent(share: float, decimals: int = 1) -> str:
    """A share in percent: "28.3 %"."""
    return f"{share:.{decimals}%}".replace("%", " %")


def span(n: "pd.Series") -> str:
    """The least and the most of counts, what is missing left out: "1,000", or "8 to 1,000"."""
    least, most = f"{n.min():,.0f}", f"{n.max():,.0f}"
    return least if least == most else f"{least} to {most}"


def point(step: int | str, unit: StepUnit) -> str:
    """A step of a run by what it counts (see `types.Run`): "step 1,000", or "1,000 words".

    It may be text already, such as a number that a figure fills in.
    """
    number = f"{step:,}" if isinstance(step, Integral) else step
    if unit == StepUnit.UPDATES:
        return f"step {number}"
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def points(first: int, last: int, unit: StepUnit) -> str:
    """The steps from the first to the last: "step 8", "steps 0 to 1,000", or "0 to 1,000 words"."""
    if first == last:
        return point(first, unit)
    return several(f"{first:,} to {last:,}", unit)


def headed(text: str, unit: StepUnit) -> str:
    """The head of numbers that are steps: "peak at step", or "peak at, in words"."""
    return f"{text} step" if unit == StepUnit.UPDATES else f"{text}, in {unit}"


def step_name(unit: StepUnit) -> str:
    """How a column of steps is headed by what they count: "step", or "words"."""
    return "step" if unit == StepUnit.UPDATES else unit


def listed(steps: Sequence[int], unit: StepUnit) -> str:
    """Ascending steps by name, or some of many: "step 8", "steps 0, 8 (2 in all)", or "0, 8 words (2 in all)"."""
    named = [f"{step:,}" for step in steps]
    if len(named) == 1:
        return point(steps[0], unit)
    shown = named if len(named) <= LISTED else [*named[:4], "…", named[-1]]
    return f"{several(', '.join(shown), unit)} ({len(named):,} in all)"


def joined(steps: Sequence[int], unit: StepUnit) -> str:
    """All of these steps by name: "step 8", "steps 0, 8 and 16", or "0, 8 and 16 words"."""
    *named, last = (f"{step:,}" for step in steps)
    return several(f"{', '.join(named)} and {last}", unit) if named else point(steps[0], unit)


def several(numbers: str, unit: StepUnit) -> str:
    """Several steps, their numbers as text: "steps 0, 8", or "0, 8 words"."""
    return f"steps {numbers}" if unit == StepUnit.UPDATES else f"{numbers} {unit}"
