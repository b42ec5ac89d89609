"""The steps at which a foreign run saved, as far as the checkpoints at hand tell it."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

FEWEST_POWERS = 3  # of two, before a grid of doublings is taken for planned


def planned(steps: Sequence[int]) -> tuple[int, ...]:
    """The steps at hand, and those missing between them where they lie on an even grid but for a few gaps.

    A grid is even where at least half of the distances are the same. Below its first distance, powers of two are a grid
    of their own, as in many series.
    """
    found = sorted(steps)
    every = _even_distance(found)
    even: set[int] = set()
    if every is not None:
        first = min(step for step in found if step % every == found[-1] % every)
        even = set(range(first, found[-1], every))
    low = [step for step in found if 0 < step and (every is None or step < every)]
    powers = len(low) >= FEWEST_POWERS and all(step & (step - 1) == 0 for step in low)
    doublings = {2**k for k in range(low[0].bit_length() - 1, low[-1].bit_length())} if powers else set()
    return tuple(sorted({*found, *even, *doublings}))


def _even_distance(steps: Sequence[int]) -> int | None:
    distances = [later - earlier for earlier, later in pairwise(steps)]
    if not distances:
        return None
    times, most = max((times, distance) for distance, times in Counter(distances).items())
    above = sum(later > most for later in steps[1:])
    return most if times > 1 and 2 * times >= above else None
