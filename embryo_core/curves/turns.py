"""Where a curve turns: its significant rises and falls, tested on the same items at every step."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_NAMED = 3  # moves whose names make a shape
CONFIDENCE = 0.95  # of all comparisons of two steps together


@dataclass(frozen=True)
class Turns:
    """The turning points of a curve as indices of its steps; two neighbours are the ends of a rise or a fall.

    Empty if the curve neither rises nor falls surely.
    """

    points: tuple[int, ...]
    rises_first: bool = True

    @property
    def moves(self) -> tuple[str, ...]:
        """Return "rises" and "falls" in their order."""
        return tuple("rises" if (i % 2 == 0) == self.rises_first else "falls" for i in range(len(self.points) - 1))

    @property
    def shape(self) -> str:
        """Return the moves as words: "rises, falls"; "flat" if there is none; of many, how often the curve turns."""
        if len(self.moves) > MAX_NAMED:
            return f"turns {len(self.moves) - 1} times, last {self.moves[-1]}"
        return ", ".join(self.moves) or "flat"


def find_turns(right: ArrayLike) -> Turns:
    """Return where the mean of `right` [n, S] turns: scores of n items in [0, 1] at each of S steps.

    A rise or fall counts from its lowest to its highest point if these differ surely. Two steps are compared on the
    same items: the sum of the items' differences divided by the root of the sum of their squares (McNemar's test
    without correction; halves count as halves). Its bound holds for all pairs of steps together (Bonferroni), so that a
    flat curve of many steps seldom turns.
    """
    right = np.asarray(right, float)
    steps = right.shape[1]
    bound = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / max(2, steps * (steps - 1)))
    totals = right.sum(axis=0)
    points: list[int] = []
    up: bool | None = None
    low = high = 0
    for i in range(1, steps):
        if up is not False and totals[i] > totals[high]:
            high = i
        if up is not True and totals[i] < totals[low]:
            low = i
        if up is not True and _exceeds(right, i, low, bound):
            points, up, high = [*points, low], True, i
        elif up is not False and _exceeds(right, high, i, bound):
            points, up, low = [*points, high], False, i
    if up is None:
        return Turns(())
    points.append(high if up else low)
    return Turns(tuple(points), bool(totals[points[1]] > totals[points[0]]))


def _exceeds(right: NDArray[np.float64], first: int, second: int, bound: float) -> bool:
    """Return whether the items are surely better at the first step than at the second."""
    differences = right[:, first] - right[:, second]
    spread = float(np.sqrt((differences**2).sum()))
    return spread > 0 and float(differences.sum()) / spread > bound


def falls_after_rise(turns: Turns) -> bool:
    """Return whether a curve falls somewhere after it has risen."""
    return ("rises", "falls") in set(pairwise(turns.moves))
