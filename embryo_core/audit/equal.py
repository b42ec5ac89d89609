"""Steps, and single tensors, that have the numbers of another step."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series, growth

FEWEST = 8  # numbers of a tensor that are not equal by chance
LEAST = 1e-30
ROUNDINGS = 2.0  # relative roundings: a tensor that should have moved farther is not equal by rounding


@dataclass(frozen=True)
class Twin:
    """Tensor and step, by their indices, with the earlier or later step whose numbers they are."""

    tensor: int
    step: int
    like: int


def equal_steps(sha256: Sequence[tuple[str, ...]], explained: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Groups of steps, by index, whose tensors are all equal; not where it is `explained` that two in a row are."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for step, content in enumerate(sha256):
        group = groups.setdefault(content, [])
        if not (group and group[-1] == step - 1 and explained(step - 1, step)):
            group.append(step)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def equal_tensors(series: Series, sha256: Sequence[tuple[str, ...]], among: Sequence[int]) -> list[Twin]:
    """Tensors with the numbers of another of the steps `among`, though they moved in between, or should have."""
    found = []
    for tensor in np.flatnonzero(series.sizes >= FEWEST):
        last: dict[str, int] = {}  # position of the last step with these numbers
        for k, step in enumerate(among):
            own = sha256[step][tensor]
            if own in last and (k - last[own] > 1 or _moved(series, tensor, among, k)):
                found.append(_odd_one(series, int(tensor), among, last[own], k))
            last[own] = k
    return found


def _moved(series: Series, tensor: int, among: Sequence[int], k: int) -> bool:
    """Whether a tensor should have moved to the k-th step, by its moves around and those of the other tensors."""
    now = series.apart(among[k - 1], among[k])
    around = [(among[i], among[j]) for i, j in ((k - 2, k - 1), (k, k + 1)) if i >= 0 and j < len(among)]
    moves = [series.apart(i, j) for i, j in around]
    expected = [move[tensor] * growth(now, move) for move in moves]
    rounding = series.resolution[tensor] * series.norms[tensor, among[k]]
    return min(expected, default=0.0) > ROUNDINGS * rounding


def _odd_one(series: Series, tensor: int, among: Sequence[int], i: int, j: int) -> Twin:
    """Of two positions with equal numbers, the one that fits its neighbours less is the odd one."""
    one, other = among[i], among[j]
    astray = _lengthening if 0 < i and j < len(among) - 1 else _misfit
    if j - i > 1 and astray(series, tensor, among, i) > astray(series, tensor, among, j):
        return Twin(tensor, one, other)
    return Twin(tensor, other, one)


def _lengthening(series: Series, tensor: int, among: Sequence[int], k: int) -> float:
    """How much longer its way over the k-th step is than the one past it, beside the same of the other tensors."""
    before, step, after = among[k - 1 : k + 2]
    past = series.apart(before, after)
    over = (series.apart(before, step) + series.apart(step, after)) / np.maximum(past, LEAST)
    return float(over[tensor] / np.median(over[past > 0])) if past[tensor] > 0 else np.inf


def _misfit(series: Series, tensor: int, among: Sequence[int], k: int) -> float:
    """Factor by which its distance from a neighbour differs from those of the other tensors, as a logarithm.

    For the first and the last step, which no way leads over.
    """
    near = [among[i] for i in (k - 1, k + 1) if 0 <= i < len(among)]
    units = np.median([series.apart(i, j) for i, j in itertools.pairwise(among)], axis=0) + LEAST
    scaled = [series.apart(among[k], step) / units + LEAST for step in near]
    return max(abs(np.log(moved[tensor] / np.median(moved))) for moved in scaled)
