"""Numbers in sentences."""

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

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


def point(step: int | str, counted_in: str = "updates") -> str:
    """A step of a run by what it counts (see `types.Run`): "step 1,000", or "1,000 words".

    It may be text already, such as a number that a figure fills in.
    """
    number = f"{step:,}" if isinstance(step, Integral) else step
    if counted_in == "updates":
        return f"step {number}"
    return f"{number} {counted_in.removesuffix('s') if number == '1' else counted_in}"


def points(first: int, last: int, counted_in: str = "updates") -> str:
    """The steps from the first to the last: "step 8", "steps 0 to 1,000", or "0 to 1,000 words"."""
    if first == last:
        return point(first, counted_in)
    return several(f"{first:,} to {last:,}", counted_in)


def headed(text: str, counted_in: str = "updates") -> str:
    """The head of numbers that are steps: "peak at step", or "peak at, in words"."""
    return f"{text} step" if counted_in == "updates" else f"{text}, in {counted_in}"


def step_name(counted_in: str = "updates") -> str:
    """How a column of steps is headed by what they count: "step", or "words"."""
    return "step" if counted_in == "updates" else counted_in


def listed(steps: Sequence[int], counted_in: str = "updates") -> str:
    """Ascending steps by name, or some of many: "step 8", "steps 0, 8 (2 in all)", or "0, 8 words (2 in all)"."""
    named = [f"{step:,}" for step in steps]
    if len(named) == 1:
        return point(steps[0], counted_in)
    shown = named if len(named) <= LISTED else [*named[:4], "…", named[-1]]
    return f"{several(', '.join(shown), counted_in)} ({len(named):,} in all)"


def joined(steps: Sequence[int], counted_in: str = "updates") -> str:
    """All of these steps by name: "step 8", "steps 0, 8 and 16", or "0, 8 and 16 words"."""
    *named, last = (f"{step:,}" for step in steps)
    return several(f"{', '.join(named)} and {last}", counted_in) if named else point(steps[0], counted_in)


def several(numbers: str, counted_in: str = "updates") -> str:
    """Several steps, their numbers as text: "steps 0, 8", or "0, 8 words"."""
    return f"steps {numbers}" if counted_in == "updates" else f"{numbers} {counted_in}"
