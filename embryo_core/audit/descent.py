"""Steps of another training: their weights keep nothing of those of the step before.

The share of a step that the next one keeps is <w, w'> / |w|^2, or / |w'|^2 if that is smaller: 1 without weight decay,
about 0 for weights of another seed, however far either has moved.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.audit.series import Series

LOST = 0.1  # largest share that says nothing of the step before is left
CALM = 10.0  # how many times slower, per time, a neighbouring interval must forget
CHANCE = 5.0  # standard deviations of the share of unrelated weights
MOST = 0.6  # share of the large tensors that are lost with a checkpoint; a shard holds fewer
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
    norms = series.norms[:, [i, j]].min(1), series.norms[:, [i, j]].max(1)
    used = (series.sizes > np.median(series.sizes)) & (norms[0] > 0)
    used = used if used.any() else norms[0] > 0
    ratio = norms[1][used] / norms[0][used]
    chance = CHANCE * ratio / np.sqrt(series.sizes[used])
    if not used.any() or np.median(chance) / np.sqrt(used.sum()) > LOST:
        return np.nan
    return float(np.quantile(series.cosines(i, j)[used] * ratio, MOST))


def strangers(series: Series, among: Sequence[int]) -> list[Strangers]:
    """Return the groups of steps `among` these that do not descend from the others.

    Nothing is reported if training forgets fast, by weight decay or over a long interval.
    """
    if len(among) < MIN_STEPS:
        return []
    pairs = list(itertools.pairwise(range(len(among))))
    shares = np.array([kept(series, among[i], among[j]) for i, j in pairs])
    times = np.diff([series.steps[i] for i in among])
    forgotten = -np.log(np.clip(np.nan_to_num(shares, nan=LOST), LOST, 1)) / times
    breaks = []
    for k in np.flatnonzero(shares < LOST).tolist():
        beside = [forgotten[n] for n in (k - 1, k + 1) if 0 <= n < len(pairs)]
        if forgotten[k] > CALM * min(beside):
            breaks.append(k)
    parts = [tuple(part.tolist()) for part in np.split(np.array(among), [k + 1 for k in breaks])]
    usual = parts.index(max(parts, key=len))
    found = []
    for k, part in enumerate(parts):
        if k != usual:
            at = breaks[k if k < usual else k - 1]  # between the group and the usual ones
            found.append(Strangers(part, among[at], among[at + 1], float(shares[at])))
    return found
