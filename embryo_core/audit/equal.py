"""Find checkpoints and single tensors whose numbers are equal at two steps."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import TensorSeries, move_ratio

MIN_NUMBERS = 8  # smallest tensor, in numbers, that cannot be equal by chance
TINY = 1e-30  # avoids division by 0
MAX_ROUNDINGS = 2.0  # rounding units: a tensor expected to move farther cannot stay equal by rounding


@dataclass(frozen=True)
class Twins:
    """Tensors at a wrong step that equal those at `equal_step`; all are indices."""

    tensors: tuple[int, ...]
    step: int
    equal_step: int


def find_equal_steps(sha256: Sequence[tuple[str, ...]], is_frozen: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Return groups of step indices whose tensors are all equal; neighbours for which `is_frozen(i, j)` count once."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for step, content in enumerate(sha256):
        if not (step > 0 and content == sha256[step - 1] and is_frozen(step - 1, step)):
            groups.setdefault(content, []).append(step)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def find_equal_tensors(series: TensorSeries, sha256: Sequence[tuple[str, ...]], indices: Sequence[int]) -> list[Twins]:
    """Return tensors that are equal at two of these steps, although they moved in between or should have moved.

    All tensors that two steps share form one fault, such as a wrong shard, and together decide which step is wrong.
    """
    pairs: dict[tuple[int, int], list[int]] = {}
    for tensor in np.flatnonzero(series.sizes >= MIN_NUMBERS).tolist():
        last_position: dict[str, int] = {}  # hash -> position of the last step that has it
        for k, step in enumerate(indices):
            digest = sha256[step][tensor]
            if digest in last_position and (
                k - last_position[digest] > 1 or _should_have_moved(series, tensor, indices, k)
            ):
                pairs.setdefault((last_position[digest], k), []).append(tensor)
            last_position[digest] = k
    return [_wrong_twin(series, tensors, indices, *pair) for pair, tensors in pairs.items()]


def _should_have_moved(series: TensorSeries, tensor: int, indices: Sequence[int], k: int) -> bool:
    """Return whether a tensor should have moved between steps k - 1 and k, by its other moves and the other tensors."""
    current_move = series.distances(indices[k - 1], indices[k])
    neighbour_pairs = [(indices[i], indices[j]) for i, j in ((k - 2, k - 1), (k, k + 1)) if i >= 0 and j < len(indices)]
    moves = [series.distances(i, j) for i, j in neighbour_pairs]
    expected_moves = [move[tensor] * move_ratio(current_move, move) for move in moves]
    rounding = series.resolution[tensor] * series.norms[tensor, indices[k]]
    return min(expected_moves, default=0.0) > MAX_ROUNDINGS * rounding


def _wrong_twin(series: TensorSeries, tensors: Sequence[int], indices: Sequence[int], i: int, j: int) -> Twins:
    """Decide which of two positions with equal tensors fits its neighbours worse, and return it as wrong."""
    earlier, later = indices[i], indices[j]
    if j - i == 1:  # the move into or out of the wrong step covers two intervals at once
        units = _units(series, [(indices[k], indices[k + 1]) for k in range(len(indices) - 1) if k != i])
        before, after = (_relative_move(series, tensors, indices, k, units) for k in (i - 1, j))
    else:
        measure = _lengthening if i > 0 and j < len(indices) - 1 else _misfit
        before, after = (measure(series, tensors, indices, k) for k in (i, j))
    return Twins(tuple(tensors), *((earlier, later) if before > after else (later, earlier)))


def _relative_move(
    series: TensorSeries, tensors: Sequence[int], indices: Sequence[int], k: int, units: np.ndarray
) -> float:
    """Return these tensors' move from the k-th step divided by the usual move, relative to other tensors."""
    if not 0 <= k < len(indices) - 1:
        return np.sqrt(2)  # beyond the series' end: the geometric mean of a move over one interval and over two
    return _relative(series.distances(indices[k], indices[k + 1]) / units, tensors)


def _lengthening(series: TensorSeries, tensors: Sequence[int], indices: Sequence[int], k: int) -> float:
    """Return the length of the path through the k-th step over one that skips it, relative to other tensors."""
    previous, step, following = indices[k - 1 : k + 2]
    direct = series.distances(previous, following)
    detours = (series.distances(previous, step) + series.distances(step, following)) / np.maximum(direct, TINY)
    return _relative(np.where(direct > 0, detours, np.inf), tensors)


def _misfit(series: TensorSeries, tensors: Sequence[int], indices: Sequence[int], k: int) -> float:
    """Return the largest |log| of these tensors' distance to a neighbour, relative to usual moves and other tensors."""
    neighbours = [indices[i] for i in (k - 1, k + 1) if 0 <= i < len(indices)]
    units = _units(series, list(itertools.pairwise(indices)))
    return max(
        abs(np.log(_relative(series.distances(indices[k], step) / units + TINY, tensors))) for step in neighbours
    )


def _units(series: TensorSeries, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return each tensor's median move over these pairs of steps, [T]."""
    return np.median([series.distances(i, j) for i, j in pairs], axis=0) + TINY


def _relative(values: np.ndarray, tensors: Sequence[int]) -> float:
    """Return the median of `values` over these tensors, divided by the median of the other finite values."""
    other_values = np.delete(values, tensors)
    other_values = other_values[np.isfinite(other_values)]
    return float(np.median(values[list(tensors)]) / max(np.median(other_values) if other_values.size else 1.0, TINY))
