"""Turning points of a curve: the ends of rises and falls that are significant on the same items, or exceed a ratio."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_NAMED_MOVES = 3  # largest number of moves that a shape lists
CONFIDENCE = 0.95  # joint, for all comparisons of two steps
MIN_CHANGE = 1.1  # least ratio of the ends of a rise or fall, without a test on items


@dataclass(frozen=True)
class Turns:
    """The ends of a curve's rises and falls, as indices of its steps; empty for a flat curve."""

    points: tuple[int, ...]
    rises_first: bool = True

    @property
    def moves(self) -> tuple[str, ...]:
        """Return the moves of the curve, "rises" and "falls" in turn."""
        return tuple("rises" if (i % 2 == 0) == self.rises_first else "falls" for i in range(len(self.points) - 1))

    @property
    def shape(self) -> str:
        """Return the moves in words: "rises, falls"; "flat" without moves; the number of turns if there are many."""
        if len(self.moves) > MAX_NAMED_MOVES:
            return f"turns {len(self.moves) - 1} times, last {self.moves[-1]}"
        return ", ".join(self.moves) or "flat"


def find_turns(right: ArrayLike) -> Turns:
    """Return where the mean of `right` [n, S] turns: scores of n items in [0, 1] at each of S steps.

    A rise or fall counts if its lowest and highest points differ significantly. Two steps are compared on the same
    items: the statistic is the sum of the items' differences divided by the root of the sum of their squares (McNemar's
    test without correction; halves count as halves). Its bound holds for all pairs of steps together (Bonferroni), so
    that a flat curve of many steps seldom turns.
    """
    right = np.asarray(right, float)
    step_count = right.shape[1]
    bound = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / max(2, step_count * (step_count - 1)))

    def exceeds(first: int, second: int) -> bool:
        differences = right[:, first] - right[:, second]
        norm = float(np.sqrt((differences**2).sum()))
        return norm > 0 and float(differences.sum()) / norm > bound

    return _locate_turns(right.sum(axis=0), exceeds)


@dataclass(frozen=True)
class Stretch:
    """A stretch of a run, from step to step, in which a quantity rises or falls."""

    name: str
    start: int
    end: int


def stretches(steps: Sequence[int], values: ArrayLike) -> list[Stretch]:
    """Return the stretches in which positive `values` [S] grow or shrink by a ratio above MIN_CHANGE.

    They are named "grows" and "compresses".
    """
    logarithms = np.log(np.asarray(values, float))
    turns = _locate_turns(logarithms, lambda first, second: logarithms[first] - logarithms[second] > np.log(MIN_CHANGE))
    names = ["grows" if move == "rises" else "compresses" for move in turns.moves]
    return [Stretch(name, steps[i], steps[j]) for name, (i, j) in zip(names, pairwise(turns.points), strict=True)]


def _locate_turns(totals: NDArray[np.float64], exceeds: Callable[[int, int], bool]) -> Turns:
    """Return where `totals` [S] turn; `exceeds(i, j)` is whether the total at i counts as above the total at j."""
    points: list[int] = []
    is_rising: bool | None = None
    low = high = 0
    for i in range(1, len(totals)):
        if is_rising is not False and totals[i] > totals[high]:
            high = i
        if is_rising is not True and totals[i] < totals[low]:
            low = i
        if is_rising is not True and exceeds(i, low):
            points, is_rising, high = [*points, low], True, low + int(np.argmax(totals[low : i + 1]))
        elif is_rising is not False and exceeds(high, i):
            points, is_rising, low = [*points, high], False, high + int(np.argmin(totals[high : i + 1]))
    if is_rising is None:
        return Turns(())
    points.append(high if is_rising else low)
    return Turns(tuple(points), bool(totals[points[1]] > totals[points[0]]))


def falls_after_rise(turns: Turns) -> bool:
    """Return whether a curve falls somewhere after it has risen."""
    return ("rises", "falls") in set(pairwise(turns.moves))
