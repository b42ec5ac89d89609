"""Steps and single tensors whose numbers are those of another step."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series, growth

MIN_NUMBERS = 8  # of a tensor that cannot be equal by chance
TINY = 1e-30
ROUNDINGS = 2.0  # relative roundings: a tensor that should have moved farther is not equal by rounding


@dataclass(frozen=True)
class Twin:
    """A tensor at a step that has the numbers of another step, `like`; all by index."""

    tensor: int
    step: int
    like: int


def equal_steps(sha256: Sequence[tuple[str, ...]], explained: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Return groups of steps, by index, whose tensors are all equal, unless that is `explained` for neighbours."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for step, content in enumerate(sha256):
        group = groups.setdefault(content, [])
        if not (group and group[-1] == step - 1 and explained(step - 1, step)):
            group.append(step)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def equal_tensors(series: Series, sha256: Sequence[tuple[str, ...]], among: Sequence[int]) -> list[Twin]:
    """Return tensors with the numbers of another step `among` these, though they moved or should have moved."""
    found = []
    for tensor in np.flatnonzero(series.sizes >= MIN_NUMBERS).tolist():
        last: dict[str, int] = {}  # position of the last step with these numbers
        for k, step in enumerate(among):
            own = sha256[step][tensor]
            if own in last and (k - last[own] > 1 or _moved(series, tensor, among, k)):
                found.append(_odd_one(series, tensor, among, last[own], k))
            last[own] = k
    return found


def _moved(series: Series, tensor: int, among: Sequence[int], k: int) -> bool:
    """Return whether a tensor should have moved to the k-th step, judged by other moves and other tensors."""
    now = series.apart(among[k - 1], among[k])
    around = [(among[i], among[j]) for i, j in ((k - 2, k - 1), (k, k + 1)) if i >= 0 and j < len(among)]
    moves = [series.apart(i, j) for i, j in around]
    expected = [move[tensor] * growth(now, move) for move in moves]
    rounding = series.resolution[tensor] * series.norms[tensor, among[k]]
    return min(expected, default=0.0) > ROUNDINGS * rounding


def _odd_one(series: Series, tensor: int, among: Sequence[int], i: int, j: int) -> Twin:
    """Return the one of two positions with equal numbers that fits its neighbours less."""
    one, other = among[i], among[j]
    astray = _lengthening if i > 0 and j < len(among) - 1 else _misfit
    if j - i > 1 and astray(series, tensor, among, i) > astray(series, tensor, among, j):
        return Twin(tensor, one, other)
    return Twin(tensor, other, one)


def _lengthening(series: Series, tensor: int, among: Sequence[int], k: int) -> float:
    """Return how much longer the path through the k-th step is than past it, relative to the other tensors."""
    before, step, after = among[k - 1 : k + 2]
    past = series.apart(before, after)
    over = (series.apart(before, step) + series.apart(step, after)) / np.maximum(past, TINY)
    return float(over[tensor] / np.median(over[past > 0])) if past[tensor] > 0 else np.inf


def _misfit(series: Series, tensor: int, among: Sequence[int], k: int) -> float:
    """Return the log of the factor by which the distance to a neighbour differs from that of the other tensors.

    For the first and the last step, which have a neighbour on one side only.
    """
    near = [among[i] for i in (k - 1, k + 1) if 0 <= i < len(among)]
    units = np.median([series.apart(i, j) for i, j in itertools.pairwise(among)], axis=0) + TINY
    scaled = [series.apart(among[k], step) / units + TINY for step in near]
    return max(abs(np.log(moved[tensor] / np.median(moved))) for moved in scaled)
