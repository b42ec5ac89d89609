"""Infer the steps at which a foreign run saved from the available checkpoints."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

FEWEST_POWERS = 3  # of two, before a grid of doublings is taken for planned
TRIED = 16  # distances, the most frequent ones
COVERED = 2 / 3  # of an even grid that must be present for the rest to count as missing


def planned(steps: Sequence[int], every: int = 0) -> tuple[int, ...]:
    """Return the available steps and those missing from an even grid of which two thirds are present.

    Below the grid's first distance, powers of two are another grid, as in many series. `every` is the distance that the
    training recorded; its grid also needs two thirds of its steps, and the last step may be off it.
    """
    found = sorted(steps)
    grids = [_grid([step for step in found if step % every == 0], every)] if every else []
    even = max([*grids, *(_grid(found, distance) for distance in _distances(found))], key=len, default=range(0))
    distance = even.step if even else None
    low = [step for step in found if step > 0 and (distance is None or step < distance)]
    powers = len(low) >= FEWEST_POWERS and all(step & (step - 1) == 0 for step in low)
    doublings = {2**k for k in range(low[0].bit_length() - 1, low[-1].bit_length())} if powers else set()
    return tuple(sorted({*found, *even, *doublings}))


def _distances(steps: Sequence[int]) -> list[int]:
    """Return the distances between steps that occur more than once."""
    times = Counter(later - earlier for earlier, later in pairwise(steps)).most_common(TRIED)
    return [distance for distance, count in times if count > 1]


def _grid(steps: Sequence[int], distance: int) -> range:
    """Return the even grid that ends at the last step; empty if too few of the steps are on it."""
    if not steps:
        return range(0)
    on_it = [step for step in steps if step % distance == steps[-1] % distance]
    grid = range(on_it[0], on_it[-1] + 1, distance)
    return grid if len(on_it) >= COVERED * len(grid) else range(0)
