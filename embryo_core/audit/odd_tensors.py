"""Single tensors that do not belong to their checkpoint: of the wrong sign, or out of line with the neighbouring steps.

A tensor of n numbers whose distance from its neighbours is r times the limit scores n^(1/3) ln r, since large tensors
are rarely so far off by chance. Some tensors, such as those of the sentence loss, move back and forth along one line,
so a tensor must also have moved farther than usual, both to a step and from it.

A tensor that points away from both neighbours while they point the same way has the wrong sign; its score does not grow
with its size. The cosines of a small tensor must also exceed chance.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from embryo_core.audit.series import TensorSeries, move_ratio, residual

MIN_SCORE = 8.0  # score above which a tensor inside a series is odd
MIN_SCORE_AT_END = 16.0  # the same at an end, which has neighbours on one side only
MAX_OFFSET = 1.1  # largest distance of a regular tensor from the path, over its neighbours' distance; noise has 0.87
MIN_DETOUR = 3.0  # smallest ratio of the moves to and from an odd step to the moves around them
MIN_TURN = 1.3  # the same for a tensor of the wrong sign
NEIGHBOUR_MOVES = 2  # number of moves on either side that serve as comparison
MIN_LEAP_RATIO = 3.0  # smallest ratio of an odd end's move to the move that the next one and other tensors predict
MAX_ROUNDINGS = 8.0  # rounding units by which every number may differ without having moved
CHANCE_DEVIATIONS = 5.0  # standard deviations that the cosine of unrelated tensors may reach
MIN_PARALLEL = 0.5  # smallest cosine of parallel tensors; opposite tensors have at most the negative
MIN_KEPT_COSINE = 0.6  # cosine with the step before above which a tensor continues that step
MAX_LOST_COSINE = 0.1  # absolute cosine with the step before below which a tensor does not continue that step
MIN_STRIDE = 1.5  # smallest ratio of the move to the likely move, for a tensor that does not continue the step before
MIN_PARALLEL_AFTER_ZERO = 0.8  # MIN_PARALLEL if the step before is all zeros
TINY = 1e-30  # avoids division by 0
MIN_COMPARED_STEPS = 3  # fewest steps that can be compared


def find_odd_tensors(
    series: TensorSeries, indices: Sequence[int], excluded: Collection[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Return the odd (tensor, step) pairs among these steps, all as sorted indices.

    Pairs in `excluded` are known to be wrong: they are neither returned nor compared with.
    """
    # cached, since most tensors are compared over the same steps
    evidence = lru_cache(maxsize=None)(lambda steps: _evidence(series, steps))
    odd_pairs = []
    for tensor in range(len(series.names)):
        comparable = tuple(step for step in indices if (tensor, step) not in excluded)
        while len(comparable) >= MIN_COMPARED_STEPS and (worst := _worst(evidence(comparable), tensor)) is not None:
            odd_pairs.append((tensor, worst))
            comparable = tuple(step for step in comparable if step != worst)
    return sorted(odd_pairs)


def _worst(evidence: dict[int, np.ndarray], tensor: int) -> int | None:
    step = max(evidence, key=lambda step: evidence[step][tensor])
    return step if evidence[step][tensor] > 1 else None


def _evidence(series: TensorSeries, steps: Sequence[int]) -> dict[int, np.ndarray]:
    """Return for each step the evidence against each tensor, [T], in units of the threshold."""
    weights, last_index = np.cbrt(series.sizes), len(steps) - 1
    sign_evidence: np.ndarray | float
    evidence = {}
    for k, step in enumerate(steps):
        if 0 < k < last_index:
            ratio, certain, sign_evidence = _inside(series, steps, k), MIN_SCORE, _opposed(series, steps, k)
        else:
            neighbours = steps[:3] if k == 0 else steps[:-4:-1]
            ratio, certain = _at_end(series, *neighbours), MIN_SCORE_AT_END
            sign_evidence = (
                np.maximum(_opposed_at_last(series, *neighbours), _lost_at_last(series, *neighbours)) if k else 0.0
            )
        evidence[step] = np.maximum(weights * np.log(np.maximum(ratio, TINY)) / certain, sign_evidence)
    return evidence


def _inside(series: TensorSeries, steps: Sequence[int], k: int) -> np.ndarray:
    """Return by what factor each tensor at the k-th step exceeds its limit, [T]: the largest of three ratios.

    - the distance from the path between the neighbours, over theirs; 0 if the detour is below MIN_DETOUR
    - the square of that distance over the distance after a change of sign; 0 if the detour is below MIN_TURN
    - the cosine between the neighbours, over the larger of the tensor's cosines to them
    """
    previous, step, following = steps[k - 1 : k + 2]
    times = np.log1p([series.steps[i] for i in (previous, step, following)])
    time_share = (times[1] - times[0]) / (times[2] - times[0])
    span = series.distances(previous, following)
    noise_floor = span + series.resolution * np.maximum(series.norms[:, previous], series.norms[:, following]) + TINY
    offset = residual(series.distances(previous, step), series.distances(step, following), span, time_share)
    flipped_residual = residual(
        series.distances_to_negated(previous, step), series.distances_to_negated(step, following), span, time_share
    )
    sign_ratio = np.where(offset > noise_floor, (offset / (flipped_residual + noise_floor / MAX_ROUNDINGS)) ** 2, 0.0)
    detour = _detour(series, steps, k)
    excess = np.maximum(
        np.where(detour > MIN_DETOUR, offset / noise_floor / MAX_OFFSET, 0.0),
        np.where(detour > MIN_TURN, sign_ratio, 0.0),
    )
    nearest = np.maximum(series.cosines(previous, step), series.cosines(step, following))
    strange = series.cosines(previous, following) / np.maximum(nearest, CHANCE_DEVIATIONS / np.sqrt(series.sizes))
    return np.maximum(excess, strange / MAX_OFFSET)


def _opposed(series: TensorSeries, steps: Sequence[int], k: int) -> np.ndarray:
    """Return how clearly each tensor points away from both neighbours while they agree, [T]; 1 is the threshold.

    It is 0 for a tensor that also turns around at nearby steps, as some tensors of the sentence loss do.
    """
    nearby_cosines = [series.cosines(steps[i], steps[i + 1]) for i in _nearby(steps, k) if i not in (k - 1, k)]
    previous, step, following, *later = steps[k - 1 : k + 3]
    incoming, outgoing, across = (
        series.cosines(*pair) for pair in ((previous, step), (step, following), (previous, following))
    )
    opposition = np.minimum(-np.maximum(incoming, outgoing), across) / _parallel(series)
    if later:  # a bias is all zeros before its first update, and then is compared with the next two steps instead
        opposition_after_zero = np.minimum(-outgoing, series.cosines(following, later[0])) / _parallel(
            series, MIN_PARALLEL_AFTER_ZERO
        )
        # no fault if training turns most large tensors here
        if np.median(outgoing[series.sizes >= np.median(series.sizes)]) <= MIN_KEPT_COSINE:
            opposition_after_zero = np.zeros_like(opposition_after_zero)
        opposition = np.where(series.norms[:, previous] > 0, opposition, opposition_after_zero)
    return np.where(np.min(nearby_cosines, axis=0, initial=1.0) > -_parallel(series) / 2, opposition, 0.0)


def _opposed_at_last(series: TensorSeries, end: int, near: int, far: int) -> np.ndarray:
    """Return how clearly each tensor points away from the step before while the two before agree, [T]; 1 is the limit.

    It is 0 if the move is not much longer than usual. The first step is not judged, since few tensors have a direction
    yet.
    """
    opposition = np.minimum(-series.cosines(end, near), series.cosines(near, far)) / _parallel(series)
    return np.where(
        series.distances(end, near) > MIN_LEAP_RATIO * _likely_move(series, end, near, far), opposition, 0.0
    )


def _lost_at_last(series: TensorSeries, end: int, near: int, far: int) -> np.ndarray:
    """Return 2 for each tensor that kept nothing of the step before, else 0, [T].

    Such a tensor has become all zeros, or has a new direction although its earlier steps agreed, most tensors kept
    theirs, and it moved farther than expected.
    """
    is_zeroed = (series.norms[:, end] == 0) & (series.norms[:, near] > 0)
    cosine, previous_cosine = series.cosines(end, near), series.cosines(near, far)
    chance = CHANCE_DEVIATIONS / np.sqrt(series.sizes)
    is_far = series.distances(end, near) > MIN_STRIDE * _likely_move(series, end, near, far)
    is_lost = (
        (np.abs(cosine) < MAX_LOST_COSINE)
        & (chance < MAX_LOST_COSINE)
        & (previous_cosine > MIN_KEPT_COSINE)
        & (np.median(cosine) > MIN_KEPT_COSINE)
        & is_far
    )
    return np.where(is_zeroed | is_lost, 2.0, 0.0)


def _likely_move(series: TensorSeries, end: int, near: int, far: int) -> np.ndarray:
    """Return the likely move of each tensor to the end, [T]: its previous move times the median growth of all moves."""
    previous_move = series.distances(near, far)
    return previous_move * max(1.0, move_ratio(series.distances(end, near), previous_move))


def _parallel(series: TensorSeries, minimum: float = MIN_PARALLEL) -> np.ndarray:
    """Return the cosine from which each tensor counts as parallel, [T]; above 1 (never) for very small tensors."""
    return np.maximum(minimum, CHANCE_DEVIATIONS / np.sqrt(series.sizes))


def _detour(series: TensorSeries, steps: Sequence[int], k: int) -> np.ndarray:
    """Return the smaller ratio of each tensor's moves to and from the k-th step to its usual move, [T].

    The usual move is the median of the moves nearby, each scaled by the median growth of all tensors' moves. Without
    moves nearby, the ratio is infinite.
    """
    moves = {i: series.distances(steps[i], steps[i + 1]) for i in _nearby(steps, k)}
    incoming, outgoing = moves.pop(k - 1), moves.pop(k)
    if not moves:
        return np.full(len(series.names), np.inf)
    rounding = series.resolution * series.norms[:, steps[k]] + TINY

    def ratio(adjacent_move: np.ndarray) -> np.ndarray:
        usual_move = np.median([move * move_ratio(adjacent_move, move) for move in moves.values()], axis=0)
        return adjacent_move / (usual_move + rounding)

    return np.minimum(ratio(incoming), ratio(outgoing))


def _nearby(steps: Sequence[int], k: int) -> range:
    """Return the moves to and from the k-th step and those around them, each by the position of its first step."""
    return range(max(0, k - 1 - NEIGHBOUR_MOVES), min(len(steps) - 1, k + 1 + NEIGHBOUR_MOVES))


def _at_end(series: TensorSeries, end: int, near: int, far: int) -> np.ndarray:
    """Return by what factor each tensor's move at an end of the series exceeds its limit, [T]."""
    rounding = series.resolution * series.norms[:, near] + TINY
    move, previous_move = series.distances(end, near), series.distances(near, far)
    is_moving = previous_move > rounding
    usual_ratio = np.median(move[is_moving] / previous_move[is_moving]) if is_moving.any() else 1.0
    leap_ratio = np.where(
        is_moving, move / (previous_move * max(usual_ratio, 1.0) + MAX_ROUNDINGS * rounding) / MIN_LEAP_RATIO, 0.0
    )
    flipped_ratio = np.where(series.norms[:, near] > 0, move / (series.distances_to_negated(end, near) + rounding), 0.0)
    return np.maximum(leap_ratio, flipped_ratio)
