"""Numbers in sentences."""

from collections.abc import Sequence

LISTED = 8  # steps that are named one by one


def quantity(n: int, noun: str) -> str:
    """That many of a regular noun: "1 checkpoint", "1,000 checkpoints"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


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
