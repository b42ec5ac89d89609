"""Single tensors that do not belong to their checkpoint: of the wrong sign, or out of line with the neighbouring steps.

A tensor of `n` numbers whose distance from its neighbours is `r` times the limit scores n^(1/3) ln r: many numbers
rarely agree by chance. Some tensors, such as those of the sentence loss, move back and forth along one line; so a
tensor must also have moved farther than usual, both to a step and from it.

A tensor that points away from both neighbours, which point the same way, has the wrong sign, however few its numbers.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from embryo_core.audit.series import Series, growth, residual

CERTAIN = 8.0  # threshold of the score of a tensor inside a series
CERTAIN_AT_END = 16.0  # the same at an end, which has neighbours on one side only
MAX_OFFSET = 1.1  # largest distance from the path, over the neighbours' distance, of a tensor in line; noise: 0.87
DETOUR = 3.0  # least ratio of the moves to and from a step to the moves around them
TURN = 1.3  # the same for a tensor of the wrong sign
NEIGHBOUR_MOVES = 2  # moves on either side to compare with
LEAP = 3.0  # least ratio of an end's move to the move that the next one and other tensors predict
ROUNDINGS = 8.0  # rounding units by which every number may differ without having moved
CHANCE = 5.0  # standard deviations of the cosine of unrelated tensors
PARALLEL = 0.5  # least cosine of parallel tensors; its negative: of opposite ones
KEPT = 0.6  # least cosine to the step before of a tensor that continues from it
LOST = 0.1  # largest cosine to the step before of a tensor that does not
STRIDE = 1.5  # least ratio of the latter's move to the likely move
PARALLEL_AFTER_ZERO = 0.8  # PARALLEL if the step before is all zeros
TINY = 1e-30
MIN_STEPS = 3  # steps for a comparison


def odd_tensors(
    series: Series, indices: Sequence[int], excluded: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return odd (tensor, step) pairs at these steps, all by index, sorted; without pairs `excluded` to be wrong."""
    # cached: most tensors have the same steps
    evidence = lru_cache(maxsize=None)(lambda steps: _evidence(series, steps))
    odd = []
    for tensor in range(len(series.names)):
        good = tuple(step for step in indices if (tensor, step) not in excluded)
        while len(good) >= MIN_STEPS and (worst := _worst(evidence(good), tensor)) is not None:
            odd.append((tensor, worst))
            good = tuple(step for step in good if step != worst)
    return sorted(odd)


def _worst(evidence: dict[int, np.ndarray], tensor: int) -> int | None:
    step = max(evidence, key=lambda step: evidence[step][tensor])
    return step if evidence[step][tensor] > 1 else None


def _evidence(series: Series, steps: Sequence[int]) -> dict[int, np.ndarray]:
    """Return the evidence against each tensor by step, [T], in units of the threshold."""
    numbers, last = np.cbrt(series.sizes), len(steps) - 1
    turned: np.ndarray | float
    evidence = {}
    for k, step in enumerate(steps):
        if 0 < k < last:
            ratio, certain, turned = _inside(series, steps, k), CERTAIN, _opposed(series, steps, k)
        else:
            neighbours = steps[:3] if k == 0 else steps[:-4:-1]
            ratio, certain = _at_end(series, *neighbours), CERTAIN_AT_END
            turned = np.maximum(_opposed_at_last(series, *neighbours), _lost_at_last(series, *neighbours)) if k else 0.0
        evidence[step] = np.maximum(numbers * np.log(np.maximum(ratio, TINY)) / certain, turned)
    return evidence


def _inside(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """Return how many times too far each tensor is from its neighbours at the k-th step, [T]: the largest of three.

    After a detour only: the distance from the line between them, and that distance over the one with the opposite sign,
    squared. Always: the cosine of the neighbours over the larger of the tensor's cosines to them.
    """
    before, step, after = steps[k - 1 : k + 2]
    times = np.log1p([series.steps[i] for i in (before, step, after)])
    share = (times[1] - times[0]) / (times[2] - times[0])
    apart = series.apart(before, after)
    still = apart + series.resolution * np.maximum(series.norms[:, before], series.norms[:, after]) + TINY
    aside = residual(series.apart(before, step), series.apart(step, after), apart, share)
    turned = residual(series.flipped(before, step), series.flipped(step, after), apart, share)
    flipped = np.where(aside > still, (aside / (turned + still / ROUNDINGS)) ** 2, 0.0)
    detour = _detour(series, steps, k)
    far = np.maximum(np.where(detour > DETOUR, aside / still / MAX_OFFSET, 0.0), np.where(detour > TURN, flipped, 0.0))
    nearest = np.maximum(series.cosines(before, step), series.cosines(step, after))
    strange = series.cosines(before, after) / np.maximum(nearest, CHANCE / np.sqrt(series.sizes))
    return np.maximum(far, strange / MAX_OFFSET)


def _opposed(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """Return how clearly each tensor points away from both neighbours while they agree, [T]: 1 is clear.

    0 for a tensor that also turns around nearby, as some of the sentence loss do.
    """
    turning = [
        series.cosines(steps[i], steps[i + 1])
        for i in range(max(0, k - 1 - NEIGHBOUR_MOVES), min(len(steps) - 1, k + 1 + NEIGHBOUR_MOVES))
        if i not in (k - 1, k)
    ]
    before, step, after, *later = steps[k - 1 : k + 3]
    to, away, across = (series.cosines(*pair) for pair in ((before, step), (step, after), (before, after)))
    clear = np.minimum(-np.maximum(to, away), across) / _parallel(series)
    if later:  # compare with the next two steps: a bias has no direction before its first update
        fresh = np.minimum(-away, series.cosines(after, later[0])) / _parallel(series, PARALLEL_AFTER_ZERO)
        # not a fault: training turns most tensors here
        if np.median(away[series.sizes >= np.median(series.sizes)]) <= KEPT:
            fresh = np.zeros_like(fresh)
        clear = np.where(series.norms[:, before] > 0, clear, fresh)
    return np.where(np.min(turning, axis=0, initial=1.0) > -_parallel(series) / 2, clear, 0.0)


def _opposed_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return how clearly each tensor points away from the step before, though the two before agree, [T]: 1 is clear.

    0 if moves of the usual length explain it. First steps are not judged: few tensors have a direction yet.
    """
    clear = np.minimum(-series.cosines(end, near), series.cosines(near, far)) / _parallel(series)
    return np.where(series.apart(end, near) > LEAP * _likely_move(series, end, near, far), clear, 0.0)


def _lost_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return 2 for each tensor that kept nothing of the step before, [T]: it is all zeros, or has another direction.

    Another direction counts only if the tensor's earlier steps agreed, other tensors still do, and it moved farther
    than they did.
    """
    zero = (series.norms[:, end] == 0) & (series.norms[:, near] > 0)
    kept, before = series.cosines(end, near), series.cosines(near, far)
    chance = CHANCE / np.sqrt(series.sizes)
    far_off = series.apart(end, near) > STRIDE * _likely_move(series, end, near, far)
    strange = (np.abs(kept) < LOST) & (chance < LOST) & (before > KEPT) & (np.median(kept) > KEPT) & far_off
    return np.where(zero | strange, 2.0, 0.0)


def _likely_move(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return the likely move of each tensor to the end, [T]: its move before, times the growth of the others' moves."""
    before = series.apart(near, far)
    return before * max(1.0, growth(series.apart(end, near), before))


def _parallel(series: Series, minimum: float = PARALLEL) -> np.ndarray:
    """Return the least cosine of parallel tensors, [T]; above 1 for tensors with too few numbers."""
    return np.maximum(minimum, CHANCE / np.sqrt(series.sizes))


def _detour(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """Return the smaller ratio of each tensor's moves to and from the k-th step to its usual move, [T].

    The usual move is the median of the moves around, each scaled by the growth of the other tensors' moves. Without
    moves around, the ratio is infinite.
    """
    moves = {
        i: series.apart(steps[i], steps[i + 1])
        for i in range(max(0, k - 1 - NEIGHBOUR_MOVES), min(len(steps) - 1, k + 1 + NEIGHBOUR_MOVES))
    }
    to, away = moves.pop(k - 1), moves.pop(k)
    if not moves:
        return np.full(len(series.names), np.inf)
    rounding = series.resolution * series.norms[:, steps[k]] + TINY
    usual = (np.median([move * growth(now, move) for move in moves.values()], axis=0) for now in (to, away))
    return np.minimum(*(now / (way + rounding) for now, way in zip((to, away), usual, strict=True)))


def _at_end(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return how many times too far each tensor leaps between its last two steps, or its first two, [T]."""
    rounding = series.resolution * series.norms[:, near] + TINY
    moved, usual = series.apart(end, near), series.apart(near, far)
    moving = usual > rounding
    others = np.median(moved[moving] / usual[moving]) if moving.any() else 1.0
    leap = np.where(moving, moved / (usual * max(others, 1.0) + ROUNDINGS * rounding) / LEAP, 0.0)
    flipped = np.where(series.norms[:, near] > 0, moved / (series.flipped(end, near) + rounding), 0.0)
    return np.maximum(leap, flipped)
