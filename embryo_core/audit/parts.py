"""Single tensors that do not belong to their checkpoint: of the wrong sign, or out of line with the neighbouring steps.

Few numbers come together by chance: where a tensor of `n` numbers is `r` times as far off as one in line may be, that
counts n^(1/3) ln r. But the numbers of some tensors move together, to and fro along one line, as those behind the
sentence loss do. So a tensor must also have moved farther than usual, both to a step and from there.

A tensor that points away from both neighbours, which point the same way, has the wrong sign, however few its numbers.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from embryo_core.audit.series import Series, growth, residual

CERTAIN = 8.0  # threshold of the score of a tensor inside a series
CERTAIN_AT_END = 16.0  # the same where there are neighbours on one side alone
ASIDE = 1.1  # largest distance from the path that is in line, over the neighbours' distance; noise alone gives 0.87
DETOUR = 3.0  # a move to a step, and the one from there, over what the moves around make likely
TURN = 1.3  # the same for a tensor of the wrong sign
AROUND = 2  # moves to either side that do
LEAP = 3.0  # a move over what the tensor's next move and those of the others make likely
ROUNDINGS = 8.0  # relative roundings by which every number may differ without having moved
CHANCE = 5.0  # standard deviations of the cosine of unrelated tensors
ALIKE = 0.5  # least cosine of tensors that point the same way; its negative, away from each other
KEPT, LOST = 0.6, 0.1  # least cosine of tensors to the step before, and the largest of one that has nothing of it
STRIDE = 1.5  # a move over what is likely, of such a tensor
ALIKE_AFTER_ZERO = 0.8  # the same, where there is no direction before to compare with
LEAST = 1e-30
FEWEST = 3  # steps that can be compared


def odd_tensors(
    series: Series, among: Sequence[int], known: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """(tensor, step) by their indices, in order; `among` these steps, and beside those not `known` to be wrong."""
    evidence = lru_cache(maxsize=None)(lambda steps: _evidence(series, steps))  # most tensors have the same steps
    found = []
    for tensor in range(len(series.names)):
        good = tuple(step for step in among if (tensor, step) not in known)
        while len(good) >= FEWEST and (worst := _worst(evidence(good), tensor)) is not None:
            found.append((tensor, worst))
            good = tuple(step for step in good if step != worst)
    return sorted(found)


def _worst(evidence: dict[int, np.ndarray], tensor: int) -> int | None:
    step = max(evidence, key=lambda step: evidence[step][tensor])
    return step if evidence[step][tensor] > 1 else None


def _evidence(series: Series, steps: Sequence[int]) -> dict[int, np.ndarray]:
    """What comes together for each step and tensor, in units of what has to, [T] by step."""
    numbers, last = np.cbrt(series.sizes), len(steps) - 1
    found = {}
    for k, step in enumerate(steps):
        if 0 < k < last:
            ratio, certain, turned = _inside(series, steps, k), CERTAIN, _opposed(series, steps, k)
        else:
            near = steps[:3] if k == 0 else steps[:-4:-1]
            ratio, certain = _at_end(series, *near), CERTAIN_AT_END
            turned = np.maximum(_opposed_at_last(series, *near), _lost_at_last(series, *near)) if k else 0.0
        found[step] = np.maximum(numbers * np.log(np.maximum(ratio, LEAST)) / certain, turned)
    return found


def _inside(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """How many times each tensor is too far from its neighbours at the k-th step, [T]: the most that one thing tells.

    After a detour alone: its distance from the way between them, and that distance over the one with the other sign,
    squared. And the cosine of the neighbours over the larger of its cosines to them.
    """
    before, step, after = steps[k - 1 : k + 2]
    times = np.log1p([series.steps[i] for i in (before, step, after)])
    share = (times[1] - times[0]) / (times[2] - times[0])
    apart = series.apart(before, after)
    still = apart + series.resolution * np.maximum(series.norms[:, before], series.norms[:, after]) + LEAST
    aside = residual(series.apart(before, step), series.apart(step, after), apart, share)
    turned = residual(series.flipped(before, step), series.flipped(step, after), apart, share)
    flipped = np.where(aside > still, (aside / (turned + still / ROUNDINGS)) ** 2, 0.0)
    detour = _detour(series, steps, k)
    far = np.maximum(np.where(detour > DETOUR, aside / still / ASIDE, 0.0), np.where(detour > TURN, flipped, 0.0))
    nearest = np.maximum(series.cosines(before, step), series.cosines(step, after))
    strange = series.cosines(before, after) / np.maximum(nearest, CHANCE / np.sqrt(series.sizes))
    return np.maximum(far, strange / ASIDE)


def _opposed(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """How clearly each tensor points away from both neighbours while they point the same way, [T]: 1 is clear.

    0 for a tensor that turns around nearby as well: some do, as those behind the sentence loss.
    """
    turning = [
        series.cosines(steps[i], steps[i + 1])
        for i in range(max(0, k - 1 - AROUND), min(len(steps) - 1, k + 1 + AROUND))
        if i not in (k - 1, k)
    ]
    before, step, after, *later = steps[k - 1 : k + 3]
    to, away, across = (series.cosines(*pair) for pair in ((before, step), (step, after), (before, after)))
    clear = np.minimum(-np.maximum(to, away), across) / _alike(series)
    if later:  # a bias has no direction before its first update: the next two steps tell that of the first
        fresh = np.minimum(-away, series.cosines(after, later[0])) / _alike(series, ALIKE_AFTER_ZERO)
        clear = np.where(series.norms[:, before] > 0, clear, fresh)
    return np.where(np.min(turning, axis=0, initial=1.0) > -_alike(series) / 2, clear, 0.0)


def _opposed_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """How clearly each tensor points away from the step before, though the two before are alike, [T]: 1 is clear.

    0 where it comes about by moves as they were. At a first step nothing is told: few have a direction yet.
    """
    clear = np.minimum(-series.cosines(end, near), series.cosines(near, far)) / _alike(series)
    return np.where(series.apart(end, near) > LEAP * _likely_move(series, end, near, far), clear, 0.0)


def _lost_at_last(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """Whether each tensor has nothing left of the step before, [T]: all its numbers are 0, or have no direction of it.

    The latter only where its steps before were alike, other tensors still are, and it moved farther than they did.
    """
    zero = (series.norms[:, end] == 0) & (series.norms[:, near] > 0)
    kept, before = series.cosines(end, near), series.cosines(near, far)
    chance = CHANCE / np.sqrt(series.sizes)
    far_off = series.apart(end, near) > STRIDE * _likely_move(series, end, near, far)
    strange = (np.abs(kept) < LOST) & (chance < LOST) & (before > KEPT) & (np.median(kept) > KEPT) & far_off
    return np.where(zero | strange, 2.0, 0.0)


def _likely_move(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """How far each tensor is likely to move to the end, [T]: its move before, times the growth of the others' moves."""
    before = series.apart(near, far)
    return before * max(1.0, growth(series.apart(end, near), before))


def _alike(series: Series, least: float = ALIKE) -> np.ndarray:
    """Cosine from which tensors point the same way, [T]; above 1 for those of so few numbers that none tells."""
    return np.maximum(least, CHANCE / np.sqrt(series.sizes))


def _detour(series: Series, steps: Sequence[int], k: int) -> np.ndarray:
    """How many times its usual way each tensor went to the k-th step, and from there, [T]: the smaller of both.

    Usual is the median of the moves around, each as much longer as those of the other tensors are. With none around,
    every way is long.
    """
    moves = {
        i: series.apart(steps[i], steps[i + 1])
        for i in range(max(0, k - 1 - AROUND), min(len(steps) - 1, k + 1 + AROUND))
    }
    to, away = moves.pop(k - 1), moves.pop(k)
    if not moves:
        return np.full(len(series.names), np.inf)
    rounding = series.resolution * series.norms[:, steps[k]] + LEAST
    usual = (np.median([move * growth(now, move) for move in moves.values()], axis=0) for now in (to, away))
    return np.minimum(*(now / (way + rounding) for now, way in zip((to, away), usual, strict=True)))


def _at_end(series: Series, end: int, near: int, far: int) -> np.ndarray:
    """How many times too far each tensor leaps between its last two steps, or its first two, [T]."""
    rounding = series.resolution * series.norms[:, near] + LEAST
    moved, usual = series.apart(end, near), series.apart(near, far)
    moving = usual > rounding
    others = np.median(moved[moving] / usual[moving]) if moving.any() else 1.0
    leap = np.where(moving, moved / (usual * max(others, 1.0) + ROUNDINGS * rounding) / LEAP, 0.0)
    flipped = np.where(series.norms[:, near] > 0, moved / (series.flipped(end, near) + rounding), 0.0)
    return np.maximum(leap, flipped)
