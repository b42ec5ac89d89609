"""Find steps and single tensors whose numbers are equal to those of another step."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series, growth

MIN_NUMBERS = 8  # numbers of a tensor that cannot be equal by chance
TINY = 1e-30
ROUNDINGS = 2.0  # rounding units: a tensor that should have moved farther is not equal by rounding


@dataclass(frozen=True)
class Twins:
    """Tensors at a step that are equal to those at another step, `like`; all by index."""

    tensors: tuple[int, ...]
    step: int
    like: int


def equal_steps(sha256: Sequence[tuple[str, ...]], is_frozen: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Return groups of steps, by index, whose tensors are all equal, except neighbours for which `is_frozen(i, j)`."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for step, content in enumerate(sha256):
        group = groups.setdefault(content, [])
        if not (group and group[-1] == step - 1 and is_frozen(step - 1, step)):
            group.append(step)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def equal_tensors(series: Series, sha256: Sequence[tuple[str, ...]], indices: Sequence[int]) -> list[Twins]:
    """Return tensors that are equal to those of another of these steps, although they moved or should have moved.

    Those that two steps share are one fault, such as a wrong shard: all of them decide which of the two is wrong.
    """
    pairs: dict[tuple[int, int], list[int]] = {}
    for tensor in np.flatnonzero(series.sizes >= MIN_NUMBERS).tolist():
        last: dict[str, int] = {}  # hash -> position of the last step that has it
        for k, step in enumerate(indices):
            digest = sha256[step][tensor]
            if digest in last and (k - last[digest] > 1 or _should_have_moved(series, tensor, indices, k)):
                pairs.setdefault((last[digest], k), []).append(tensor)
            last[digest] = k
    return [_wrong_twin(series, tensors, indices, *pair) for pair, tensors in pairs.items()]


def _should_have_moved(series: Series, tensor: int, indices: Sequence[int], k: int) -> bool:
    """Return whether a tensor should have moved to the k-th step, judged by other moves and other tensors."""
    now = series.apart(indices[k - 1], indices[k])
    around = [(indices[i], indices[j]) for i, j in ((k - 2, k - 1), (k, k + 1)) if i >= 0 and j < len(indices)]
    moves = [series.apart(i, j) for i, j in around]
    expected = [move[tensor] * growth(now, move) for move in moves]
    rounding = series.resolution[tensor] * series.norms[tensor, indices[k]]
    return min(expected, default=0.0) > ROUNDINGS * rounding


def _wrong_twin(series: Series, tensors: Sequence[int], indices: Sequence[int], i: int, j: int) -> Twins:
    """Return the one of two positions with equal numbers that fits its neighbours less."""
    one, other = indices[i], indices[j]
    if j - i == 1:  # the path before or after the wrong one covers both intervals
        units = _units(series, [(indices[k], indices[k + 1]) for k in range(len(indices) - 1) if k != i])
        astray = (
            _relative_move(series, tensors, indices, i - 1, units),
            _relative_move(series, tensors, indices, j, units),
        )
    else:
        measure = _lengthening if i > 0 and j < len(indices) - 1 else _misfit
        astray = measure(series, tensors, indices, i), measure(series, tensors, indices, j)
    return Twins(tuple(tensors), *((one, other) if astray[0] > astray[1] else (other, one)))


def _relative_move(series: Series, tensors: Sequence[int], indices: Sequence[int], k: int, units: np.ndarray) -> float:
    """Return how much longer than usual the move from the k-th step is for these tensors, relative to other tensors."""
    if not 0 <= k < len(indices) - 1:
        return np.sqrt(2)  # unknown: the geometric mean of one interval and two
    return _relative(series.apart(indices[k], indices[k + 1]) / units, tensors)


def _lengthening(series: Series, tensors: Sequence[int], indices: Sequence[int], k: int) -> float:
    """Return how much longer the path through the k-th step is than one that skips it, relative to other tensors."""
    before, step, after = indices[k - 1 : k + 2]
    past = series.apart(before, after)
    over = (series.apart(before, step) + series.apart(step, after)) / np.maximum(past, TINY)
    return _relative(np.where(past > 0, over, np.inf), tensors)


def _misfit(series: Series, tensors: Sequence[int], indices: Sequence[int], k: int) -> float:
    """Return the log of the ratio of an end's distance to its neighbour to that of the other tensors."""
    neighbours = [indices[i] for i in (k - 1, k + 1) if 0 <= i < len(indices)]
    units = _units(series, list(itertools.pairwise(indices)))
    return max(abs(np.log(_relative(series.apart(indices[k], step) / units + TINY, tensors))) for step in neighbours)


def _units(series: Series, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the median move of each tensor between these pairs of steps, [T]."""
    return np.median([series.apart(i, j) for i, j in pairs], axis=0) + TINY


def _relative(values: np.ndarray, tensors: Sequence[int]) -> float:
    """Return the median of these tensors divided by that of the others, over finite values."""
    others = np.delete(values, tensors)
    others = others[np.isfinite(others)]
    return float(np.median(values[list(tensors)]) / max(np.median(others) if others.size else 1.0, TINY))
