"""Numbers in sentences."""

from collections.abc import Sequence
from numbers import Integral

LISTED = 8  # steps that are named one by one


def quantity(n: int, noun: str) -> str:
    """That many of a regular noun: "1 checkpoint", "1,000 checkpoints"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


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
    of_several = point(f"{first:,} to {last:,}", counted_in)
    return of_several.replace("step ", "steps ") if counted_in == "updates" else of_several


def headed(text: str, counted_in: str = "updates") -> str:
    """The head of numbers that are steps: "peak at step", or "peak at, in words"."""
    return f"{text} step" if counted_in == "updates" else f"{text}, in {counted_in}"


def step_name(counted_in: str = "updates") -> str:
    """How a column of steps is headed by what they count: "step", or "words"."""
    return "step" if counted_in == "updates" else counted_in


def spread(steps: Sequence[int], noun: str = "step") -> str:
    """The first and the last of ascending steps: "step 5", "steps 0 to 1000"."""
    return f"{noun} {steps[0]}" if len(steps) == 1 else f"{noun}s {steps[0]} to {steps[-1]}"


def listed(steps: Sequence[int]) -> str:
    """Ascending steps by name, or some of many: "step 8", "steps 0, 8 (2 in all)"."""
    named = [f"{step:,}" for step in steps]
    if len(named) == 1:
        return f"step {named[0]}"
    shown = named if len(named) <= LISTED else [*named[:4], "…", named[-1]]
    return f"steps {', '.join(shown)} ({len(named):,} in all)"
