"""Steps of another training: their weights keep nothing of those of the step before.

The share of a step that the next one keeps is <w, w'> / |w|^2, or / |w'|^2 if that is smaller: about 0 for weights of
another seed, however far either has moved, but also after long training with weight decay. So it is weighed against
the intervals beside it, where <w, w'> / |w|^2 is 1 without weight decay, and exp(-d) if decay shrinks w by that.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series

MAX_LOST = 0.1  # largest share that says nothing of the step before is left
CALM = 4.0  # how many times slower, per time, the intervals beside a break must forget
CHANCE = 5.0  # standard deviations of the share of unrelated weights
LOST_SHARE = 0.6  # share of the large tensors that are lost with a checkpoint; a shard holds fewer
MIN_STEPS = 3  # that can be compared


@dataclass(frozen=True)
class Strangers:
    """Steps that do not descend from the others, and the break between them: two steps, by index."""

    steps: tuple[int, ...]
    before: int
    after: int
    kept: float  # share of `before` that `after` keeps


def kept(series: Series, i: int, j: int) -> float:
    """Return the share of step i that step j keeps, as most large tensors do; NaN if chance hides it."""
    norms, used = _large(series, i, j)
    ratio = norms.max(1)[used] / norms.min(1)[used]
    chance = CHANCE * ratio / np.sqrt(series.sizes[used])
    if not used.any() or np.median(chance) / np.sqrt(used.sum()) > MAX_LOST:
        return np.nan
    return float(np.quantile(series.cosines(i, j)[used] * ratio, LOST_SHARE))


def forgotten(series: Series, i: int, j: int) -> float:
    """Return how fast training forgets from step i to step j, per unit of steps."""
    norms, used = _large(series, i, j)
    share = series.cosines(i, j)[used] * norms[used, 1] / norms[used, 0]
    left = np.clip(np.quantile(share, LOST_SHARE) if used.any() else 1.0, MAX_LOST, 1.0)
    return float(-np.log(left) / (series.steps[j] - series.steps[i]))


def _large(series: Series, i: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the norms of the tensors at two steps, [T, 2], and the large ones that are not zeros, a mask [T]."""
    norms = series.norms[:, [i, j]]
    used = (series.sizes > np.median(series.sizes)) & (norms.min(1) > 0)
    return norms, used if used.any() else norms.min(1) > 0


def strangers(series: Series, among: Sequence[int]) -> list[Strangers]:
    """Return the groups of steps `among` these that descend from no other; none if training forgets fast."""
    if len(among) < MIN_STEPS:
        return []
    pairs = list(itertools.pairwise(among))
    shares = np.array([kept(series, *pair) for pair in pairs])
    rates = np.array([forgotten(series, *pair) for pair in pairs])
    usual_pairs = np.flatnonzero(~(shares < MAX_LOST))
    breaks = []
    for k in np.flatnonzero(shares < MAX_LOST).tolist():
        beside = [*usual_pairs[usual_pairs < k][-1:], *usual_pairs[usual_pairs > k][:1]]
        if beside and rates[k] > CALM * rates[beside].max():
            breaks.append(k)
    parts = [tuple(part.tolist()) for part in np.split(np.array(among), [k + 1 for k in breaks])]
    usual = parts.index(max(parts, key=len))
    found = []
    for k, part in enumerate(parts):
        if k != usual:
            at = breaks[k if k < usual else k - 1]  # between the group and the usual ones
            found.append(Strangers(part, among[at], among[at + 1], float(shares[at])))
    return found
