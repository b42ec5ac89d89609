"""Checkpoints that stand at the wrong step: swapped ones, and ones that belong nowhere in the series.

Weights move along a way that does not turn back: of three steps in a row the outer two are furthest apart. Where the
way turns back, or ends in a leap, another order is looked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series, turn

TURNED = -0.7  # of `turn`; -1/2 says nothing, and swapping two steps makes x to -1 - x
RESTLESS = -0.25  # median turn of a way that goes to and fro even in its best order: nothing tells it
LEAP = 20.0  # times as far as the next move, in proportion to the time between: more than a way ends with
FEWEST = 4  # steps of a series whose order can be told

Distance = Callable[[int, int], float]


@dataclass(frozen=True)
class Misplaced:
    """Indices of steps: pairs that hold each other's weights, and those that belong nowhere."""

    swapped: tuple[tuple[int, int], ...] = ()
    outside: tuple[int, ...] = ()

    @property
    def indices(self) -> set[int]:
        """All of them."""
        return {*self.outside, *(index for pair in self.swapped for index in pair)}


def misplaced(series: Series, among: Sequence[int]) -> Misplaced:
    """The steps, `among` those at these indices, whose weights do not continue those of their neighbours."""
    if len(among) < FEWEST:
        return Misplaced()
    distance = series.typical(among)
    way = _Way(series.steps, distance, list(among), list(among))
    swapped, outside = [], []
    while len(way.places) >= FEWEST and (suspects := way.suspects()):
        repaired, pair = way.exchanged(suspects)
        without, gone = way.without(suspects)
        if repaired.faults < way.faults and repaired.faults <= without.faults:
            way = repaired
            swapped.append(pair)
        else:
            way = without
            outside.append(gone)
    if np.median([_turn(triple, distance) for triple in _triples(way.order)]) < RESTLESS:
        return Misplaced()
    return Misplaced(tuple(swapped), tuple(outside))


@dataclass(frozen=True)
class _Way:
    """A series: at the k-th of the `places` lie the weights `order[k]`; both are indices of steps."""

    steps: Sequence[int]
    distance: Distance
    places: list[int]
    order: list[int]

    @property
    def faults(self) -> int:
        """How often the way turns back or begins or ends in a leap."""
        return len(self._turns()) + len(self._leaps())

    @property
    def oddity(self) -> tuple[int, float, float]:
        """What a right order has least of: faults, length, and, as a way is as long backwards, unevenness in time."""
        moves = np.array([self.distance(i, j) for i, j in zip(self.order, self.order[1:], strict=False)])
        times = np.diff([self.steps[place] for place in self.places])
        return self.faults, float(f"{moves.sum():.6g}"), float(np.log(np.maximum(moves, 1e-300) / times).std())

    def suspects(self) -> list[int]:
        """Positions that may be wrong: where the way turns back most, or leaps, with the positions around."""
        if turns := self._turns():
            worst = 1 + min(turns, key=turns.__getitem__)
            return [worst, worst - 1, worst + 1]
        return self._leaps()

    def exchanged(self, suspects: list[int]) -> tuple["_Way", tuple[int, int]]:
        """The best way after one of the suspects has changed places with any other, and those two places."""
        tried = [(self._exchange(k, other), k, other) for k in suspects for other in range(len(self.order)) if k != other]
        best, k, other = min(tried, key=lambda one: one[0].oddity)
        first, second = sorted((self.places[k], self.places[other]))
        return best, (first, second)

    def without(self, suspects: list[int]) -> tuple["_Way", int]:
        """The best way without one of the suspects, and its place."""
        tried = [(self._remove(k), self.places[k]) for k in suspects]
        return min(tried, key=lambda one: one[0].oddity)

    def _exchange(self, k: int, other: int) -> "_Way":
        order = self.order.copy()
        order[k], order[other] = order[other], order[k]
        return _Way(self.steps, self.distance, self.places, order)

    def _remove(self, k: int) -> "_Way":
        places, order = self.places.copy(), self.order.copy()
        del places[k], order[k]
        return _Way(self.steps, self.distance, places, order)

    def _turns(self) -> dict[int, float]:
        """The turns back, by the position before."""
        found = enumerate(_turn(triple, self.distance) for triple in _triples(self.order))
        return {k: value for k, value in found if value < TURNED}

    def _leaps(self) -> list[int]:
        """The ends at which the way leaps, as positions."""
        last = len(self.order) - 1
        return [k for k, nexts in ((0, (1, 2)), (last, (last - 1, last - 2))) if self._leap(k, *nexts) > LEAP]

    def _leap(self, end: int, near: int, far: int) -> float:
        """The move at an end over the next one, and over the ratio of their times where that is larger than 1."""
        usual = self.distance(self.order[near], self.order[far])
        time, usual_time = (abs(self.steps[self.places[i]] - self.steps[self.places[j]]) for i, j in ((end, near), (near, far)))
        return self.distance(self.order[end], self.order[near]) / max(usual * max(1.0, time / usual_time), 1e-300)


def _triples(order: Sequence[int]) -> list[tuple[int, int, int]]:
    return list(zip(order, order[1:], order[2:], strict=False))


def _turn(triple: tuple[int, int, int], distance: Distance) -> float:
    before, step, after = triple
    return turn(distance(before, step), distance(step, after), distance(before, after))
