"""Single tensors that do not belong to their checkpoint: of the wrong sign, or out of line with the neighbouring steps.

A tensor of n numbers whose distance from its neighbours is r times the limit scores n^(1/3) ln r, since large tensors
are rarely so far off by chance. Some tensors, such as those of the sentence loss, move back and forth along one line,
so a tensor must also have moved farther than usual, both to a step and from it.

A tensor that points away from both neighbours while they point the same way has the wrong sign, whatever its size.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from embryo_core.audit.series import Series, growth, residual

CERTAIN = 8.0  # score above which a tensor inside a series is odd
CERTAIN_AT_END = 16.0  # the same at an end, which has neighbours on one side only
MAX_OFFSET = 1.1  # largest distance of a regular tensor from the path, over its neighbours' distance; noise has 0.87
DETOUR = 3.0  # smallest ratio of the moves to and from an odd step to the moves around them
TURN = 1.3  # the same for a tensor of the wrong sign
NEIGHBOUR_MOVES = 2  # number of moves on either side that serve as comparison
LEAP = 3.0  # smallest ratio of an odd end's move to the move that the next one and other tensors predict
ROUNDINGS = 8.0  # rounding units by which every number may differ without having moved
CHANCE = 5.0  # standard deviations that the cosine of unrelated tensors may reach
PARALLEL = 0.5  # smallest cosine of parallel tensors; opposite tensors have at most the negative
KEPT = 0.6  # cosine with the step before above which a tensor continues that step
LOST = 0.1  # absolute cosine with the step before below which a tensor does not continue that step
STRIDE = 1.5  # smallest ratio of the move to the likely move, for a tensor that does not continue the step before
PARALLEL_AFTER_ZERO = 0.8  # PARALLEL if the step before is all zeros
TINY = 1e-30  # avoids division by 0
MIN_STEPS = 3  # fewest steps that can be compared


def odd_tensors(
    series: Series, indices: Sequence[int], excluded: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return the odd (tensor, step) pairs among these steps, all as sorted indices.

    Pairs in `excluded` are known to be wrong: they are neither returned nor compared with.
    """
    # cached, since most tensors are compared over the same steps
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
    """Return for each step the evidence against each tensor, [T], in units of the threshold."""
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
    """Return by what factor each tensor at the k-th step exceeds its limit, [T]: the largest of three ratios.

    - the distance from the path between the neighbours, over the neighbours' distance; 0 if the detour is below DETOUR
    - the square of that distance over the distance after a change of sign; 0 if the detour is below TURN
    - the cosine between the neighbours, over the larger of the tensor's cosines to them
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
    """Return how clearly each tensor points away from both neighbours while they agree, [T]; 1 is the threshold.

    It is 0 for a tensor that also turns around at nearby steps, as some tensors of the sentence loss do.
    """
    turning = [
        series.cosines(steps[i], steps[i + 1])
        for i in range(max(0, k - 1 - NEIGHBOUR_MOVES), min(len(steps) - 1, k + 1 + NEIGHBOUR_MOVES))
        if i not in (k - 1, k)
    ]
    before, step, after, *later = steps[k - 1 : k + 3]
    to, away, across = (series.cosines(*pair) for pair in ((before, step), (step, after), (before, after)))
    clear = np.minimum(-np.maximum(to, away), across) / _parallel(series)
    if later:  # a bias is all zeros before its first update, and then is compared with the next two steps instead
        fresh = np.minimum(-away, series.cosines(after, later[0])) / _parallel(series, PARALLEL_AFTER_ZERO)
        # no fault if training turns most large tensors here
        if np.median(away[series.sizes >= np.median(series.sizes)]) <= KEPT:
            fresh = np.zeros_like(fresh)
        clear = np.where(series.norms[:, before] > 0, clear, fresh)
    return np.where(np.min(turning, axis=0, initial=1.0) > -_parallel(series) / 2, clear, 0.0)


def _opposed_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return how clearly each tensor points away from the step before while the two before agree, [T]; 1 is the limit.

    It is 0 if the move is not much longer than usual. The first step is not judged, since few tensors have a direction
    yet.
    """
    clear = np.minimum(-series.cosines(end, near), series.cosines(near, far)) / _parallel(series)
    return np.where(series.apart(end, near) > LEAP * _likely_move(series, end, near, far), clear, 0.0)


def _lost_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return 2 for each tensor that kept nothing of the step before, else 0, [T].

    Such a tensor has become all zeros, or has a new direction although its earlier steps agreed, most tensors kept
    theirs, and it moved farther than expected.
    """
    zero = (series.norms[:, end] == 0) & (series.norms[:, near] > 0)
    kept, before = series.cosines(end, near), series.cosines(near, far)
    chance = CHANCE / np.sqrt(series.sizes)
    far_off = series.apart(end, near) > STRIDE * _likely_move(series, end, near, far)
    strange = (np.abs(kept) < LOST) & (chance < LOST) & (before > KEPT) & (np.median(kept) > KEPT) & far_off
    return np.where(zero | strange, 2.0, 0.0)


def _likely_move(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Return the likely move of each tensor to the end, [T]: its previous move times the median growth of all moves."""
    before = series.apart(near, far)
    return before * max(1.0, growth(series.apart(end, near), before))


def _parallel(series: Series, minimum: float = PARALLEL) -> np.ndarray:
    """Return the cosine from which each tensor counts as parallel, [T]; above 1, so never, for very small ones."""
    return np.maximum(minimum, CHANCE / np.sqrt(series.sizes))


def _detour(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """Return the smaller ratio of each tensor's moves to and from the k-th step to its usual move, [T].

    The usual move is the median of the moves nearby, each scaled by the median growth of all tensors' moves. Without
    moves nearby, the ratio is infinite.
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
    """Return by what factor each tensor's move at an end of the series exceeds its limit, [T]."""
    rounding = series.resolution * series.norms[:, near] + TINY
    moved, usual = series.apart(end, near), series.apart(near, far)
    moving = usual > rounding
    others = np.median(moved[moving] / usual[moving]) if moving.any() else 1.0
    leap = np.where(moving, moved / (usual * max(others, 1.0) + ROUNDINGS * rounding) / LEAP, 0.0)
    flipped = np.where(series.norms[:, near] > 0, moved / (series.flipped(end, near) + rounding), 0.0)
    return np.maximum(leap, flipped)
