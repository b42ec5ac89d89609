"""Checkpoints at the wrong step: swapped, out of place in the whole series, or from another training.

In training, weights follow a path that does not turn back: of three steps in a row, the outer two are furthest apart.
If the path turns back, or ends in a leap, a better order is searched for.

A step of another training keeps nothing of the step before. The share of weights w that the next weights w' keep is
<w, w'> / min(|w|^2, |w'|^2). It is about 0 for weights of another seed, however far either has moved, but also after
long training with weight decay. So it is compared with the neighbouring intervals, in which <w, w'> / |w|^2 is 1
without weight decay, and exp(-d) if decay shrinks w by that factor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from embryo_core.audit.series import TensorSeries, turn

MAX_TURN = -0.7  # the path turns back below this value of `turn`; -1/2 leaves the order open, a swap maps x to -1 - x
MIN_MEDIAN_TURN = -0.25  # median turn below which no order can be inferred, since the path turns back in every order
MAX_LEAP_RATIO = 20.0  # largest ratio of an end's move to the next one, per time, that training can cause
TINY = 1e-300  # avoids division by 0
TURNED_SHARE = 0.6  # share of the large tensors that turn back if a whole checkpoint is misplaced
SHARD_SHARE = 0.25  # share of the large tensors that turn back if a shard is misplaced
MIN_TENSORS = 3  # fewest large tensors of a shard
MIN_ORDERED_STEPS = 4  # fewest steps from which an order can be inferred


@dataclass(frozen=True)
class MisplacedSteps:
    """Misplaced steps, by index: pairs that hold each other's weights, and steps that fit nowhere."""

    swapped: tuple[tuple[int, int], ...] = ()
    outside: tuple[int, ...] = ()

    @property
    def indices(self) -> set[int]:
        """Return the indices of all misplaced steps."""
        return {*self.outside, *(index for pair in self.swapped for index in pair)}


def find_misplaced_steps(series: TensorSeries, indices: Sequence[int]) -> MisplacedSteps:
    """Find the steps among `indices` whose weights do not continue the neighbouring ones."""
    if len(indices) < MIN_ORDERED_STEPS:
        return MisplacedSteps()
    return _find_misplaced(series.large_tensors(indices), indices)


def find_misplaced_shard(series: TensorSeries, indices: Sequence[int]) -> tuple[tuple[str, ...], MisplacedSteps]:
    """Return the names of large tensors that turn back together at some step, and the steps where they are misplaced.

    They may be a shard of another step: a wrong checkpoint turns more tensors, and a single tensor may turn by chance.
    """
    if len(indices) < MIN_ORDERED_STEPS:
        return (), MisplacedSteps()
    large = series.large_tensors(indices)
    triples = zip(indices, indices[1:], indices[2:], strict=False)
    turned_back = [
        turn(large.sketched_distances(i, j), large.sketched_distances(j, k), large.sketched_distances(i, k)) < MAX_TURN
        for i, j, k in triples
    ]
    turn_together = max(turned_back, key=np.sum)
    if turn_together.sum() < max(MIN_TENSORS, SHARD_SHARE * len(large.names)):
        return (), MisplacedSteps()
    shard = large.select(turn_together, np.ones(len(large.names)))
    return shard.names, _find_misplaced(shard, indices)


def _find_misplaced(large: TensorSeries, indices: Sequence[int]) -> MisplacedSteps:
    """Find the steps among `indices` at which the path of these large tensors turns back or leaps."""
    if not large.names:
        return MisplacedSteps()
    path = _Path(large.steps, *_medians(large), list(indices), list(indices))
    swapped_slots, outside_slots = [], []
    while len(path.slots) >= MIN_ORDERED_STEPS and (suspects := path.find_suspects()):
        exchanged_path, pair = path.exchange_best(suspects)
        shortened_path, removed_slot = path.remove_best(suspects)
        if exchanged_path.faults < path.faults and exchanged_path.faults <= shortened_path.faults:
            path = exchanged_path
            swapped_slots.append(pair)
        else:
            path = shortened_path
            outside_slots.append(removed_slot)
    if np.median(path.turns) < MIN_MEDIAN_TURN:
        return MisplacedSteps()
    return MisplacedSteps(tuple(swapped_slots), tuple(outside_slots))


@dataclass(frozen=True)
class _Path:
    """An assumed order of a series: `slots[k]` holds the weights of `order[k]`, both indices of `steps`."""

    steps: tuple[int, ...]
    move: Callable[[int, int], float]  # distance between two steps
    turn: Callable[[int, int, int], float]  # how far three steps turn back (`series.turn`)
    slots: list[int]
    order: list[int]

    @property
    def turns(self) -> list[float]:
        """Return how far the path turns back at each inner position, for most tensors."""
        triples = zip(self.order, self.order[1:], self.order[2:], strict=False)
        return [self.turn(*triple) for triple in triples]

    @property
    def faults(self) -> int:
        """Return the number of positions at which the path turns back, or begins or ends with a leap."""
        return sum(value < MAX_TURN for value in self.turns) + len(self._leaps())

    @property
    def cost(self) -> tuple[int, float, float]:
        """Return the cost that the right order minimises: faults, length, and (to reject a reversal) uneven pace."""
        moves = np.array([self.move(i, j) for i, j in zip(self.order, self.order[1:], strict=False)])
        times = np.diff([self.steps[slot] for slot in self.slots])
        return self.faults, float(f"{moves.sum():.6g}"), float(np.log(np.maximum(moves, TINY) / times).std())

    def find_suspects(self) -> list[int]:
        """Return positions that may be wrong: the sharpest turn and its neighbours, else ends with a long move."""
        turns = self.turns
        if min(turns) < MAX_TURN:
            worst = 1 + int(np.argmin(turns))
            return [worst, worst - 1, worst + 1]
        return self._leaps()

    def exchange_best(self, suspects: list[int]) -> tuple["_Path", tuple[int, int]]:
        """Return the best path after exchanging a suspect with any other position, and the two slots."""
        positions = range(len(self.order))
        candidates = [
            (self._exchange(k, position), k, position) for k in suspects for position in positions if k != position
        ]
        best, k, position = min(candidates, key=lambda candidate: candidate[0].cost)
        first_slot, second_slot = sorted((self.slots[k], self.slots[position]))
        return best, (first_slot, second_slot)

    def remove_best(self, suspects: list[int]) -> tuple["_Path", int]:
        """Return the best path after removing one suspect, and the suspect's slot."""
        candidates = [(self._remove(k), self.slots[k]) for k in suspects]
        return min(candidates, key=lambda candidate: candidate[0].cost)

    def _exchange(self, k: int, position: int) -> "_Path":
        order = self.order.copy()
        order[k], order[position] = order[position], order[k]
        return replace(self, order=order)

    def _remove(self, k: int) -> "_Path":
        slots, order = self.slots.copy(), self.order.copy()
        del slots[k], order[k]
        return replace(self, slots=slots, order=order)

    def _leaps(self) -> list[int]:
        """Return the ends of the path, as positions, at which it leaps."""
        last_position = len(self.order) - 1
        return [
            k
            for k, nexts in ((0, (1, 2)), (last_position, (last_position - 1, last_position - 2)))
            if self._leap(k, *nexts) > MAX_LEAP_RATIO
        ]

    def _leap(self, end: int, near: int, far: int) -> float:
        """Return the ratio of an end's move to the next move, divided by the ratio of their times if it exceeds 1."""
        step = [self.steps[self.slots[k]] for k in (end, near, far)]
        times = max(1.0, abs((step[0] - step[1]) / (step[1] - step[2])))
        return self.move(self.order[end], self.order[near]) / max(
            times * self.move(self.order[near], self.order[far]), TINY
        )


def _medians(series: TensorSeries) -> tuple[Callable[[int, int], float], Callable[[int, int, int], float]]:
    """Return cached functions: median distance between two steps, and how far the path through three steps turns back.

    A path turns back only if most tensors do (TURNED_SHARE): if fewer do, they are misplaced, not the checkpoint.
    """

    @lru_cache(maxsize=1_000_000)
    def move(i: int, j: int) -> float:
        return float(np.median(series.sketched_distances(i, j)))

    @lru_cache(maxsize=1_000_000)
    def turned_back(i: int, j: int, k: int) -> float:
        turns = turn(series.sketched_distances(i, j), series.sketched_distances(j, k), series.sketched_distances(i, k))
        return float(np.quantile(turns, TURNED_SHARE))

    return move, turned_back


# === Steps of another training ===

MIN_KEPT_SHARE = 0.1  # a kept share below this counts as nothing kept
# smallest ratio of the forgetting rate at a break to the rates of the neighbouring intervals
MIN_FORGETTING_RATIO = 4.0
CHANCE_DEVIATIONS = 5.0  # standard deviations that the share of unrelated weights may reach
LOST_SHARE = 0.6  # share of the large tensors that are lost with a whole checkpoint; a shard has fewer
MIN_COMPARED_STEPS = 3  # fewest steps that can be compared


@dataclass(frozen=True)
class ForeignSteps:
    """Steps that do not continue the rest of the series, and the two steps of the break between them, by index."""

    steps: tuple[int, ...]
    before: int
    after: int
    kept_share: float  # share of `before` that `after` keeps


def kept_share(series: TensorSeries, i: int, j: int) -> float:
    """Return the share of step i that large tensors keep at step j; NaN if it is indistinguishable from chance."""
    norms, is_large = _large(series, i, j)
    ratio = norms.max(1)[is_large] / norms.min(1)[is_large]
    chance = CHANCE_DEVIATIONS * ratio / np.sqrt(series.sizes[is_large])
    if not is_large.any() or np.median(chance) / np.sqrt(is_large.sum()) > MIN_KEPT_SHARE:
        return np.nan
    return float(np.quantile(series.cosines(i, j)[is_large] * ratio, LOST_SHARE))


def forgetting_rate(series: TensorSeries, i: int, j: int) -> float:
    """Return how fast training forgets from step i to step j: -ln of the kept share, per step."""
    norms, is_large = _large(series, i, j)
    share = series.cosines(i, j)[is_large] * norms[is_large, 1] / norms[is_large, 0]
    kept = np.clip(np.quantile(share, LOST_SHARE) if is_large.any() else 1.0, MIN_KEPT_SHARE, 1.0)
    return float(-np.log(kept) / (series.steps[j] - series.steps[i]))


def _large(series: TensorSeries, i: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tensors' norms at two steps, [T, 2], and a mask [T] of the large, non-zero tensors."""
    norms = series.norms[:, [i, j]]
    is_large = (series.sizes > np.median(series.sizes)) & (norms.min(1) > 0)
    return norms, is_large if is_large.any() else norms.min(1) > 0


def find_foreign_steps(series: TensorSeries, indices: Sequence[int]) -> list[ForeignSteps]:
    """Return the groups among these steps that do not continue the longest one; none if training forgets fast."""
    if len(indices) < MIN_COMPARED_STEPS:
        return []
    pairs = list(pairwise(indices))
    shares = np.array([kept_share(series, *pair) for pair in pairs])
    rates = np.array([forgetting_rate(series, *pair) for pair in pairs])
    usual_pairs = np.flatnonzero(~(shares < MIN_KEPT_SHARE))
    breaks = []
    for k in np.flatnonzero(shares < MIN_KEPT_SHARE).tolist():
        neighbours = [*usual_pairs[usual_pairs < k][-1:], *usual_pairs[usual_pairs > k][:1]]
        if neighbours and rates[k] > MIN_FORGETTING_RATIO * rates[neighbours].max():
            breaks.append(k)
    groups = [tuple(group.tolist()) for group in np.split(np.array(indices), [k + 1 for k in breaks])]
    usual = groups.index(max(groups, key=len))
    foreign_groups = []
    for k, group in enumerate(groups):
        if k != usual:
            gap = breaks[k if k < usual else k - 1]  # the break between the group and the usual steps
            foreign_groups.append(ForeignSteps(group, indices[gap], indices[gap + 1], float(shares[gap])))
    return foreign_groups
