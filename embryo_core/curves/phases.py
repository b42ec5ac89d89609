"""The phases of a run: where its masked-word loss turns, found by lines that meet at breakpoints (docs/metrics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, pairwise
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from embryo_core.curves.scores import Floats

Name = Literal["start", "first fall", "plateau", "take-off", "later plateau", "later fall"]

LOSS = "masked_lm_loss"
FEWEST, MOST = 10, 28  # points that are fitted
BREAKS = 5  # at most: a run that has all six phases turns so often
APART = 2  # points from a breakpoint to the next, or to an end
RESAMPLES = 200
LINES = 1024  # that are compared at once, so that what is summed stays in a processor's cache
SLOW: tuple[Name, ...] = ("plateau", "later plateau")
FAST: tuple[Name, ...] = ("first fall", "take-off", "later fall")


@dataclass(frozen=True)
class Phase:
    """A stretch of a run in which the loss falls slowly or fast; from `earliest` to `latest` it may have begun.

    The first phase begins where the run does. `fall` is in nats per doubling of the step.
    """

    name: Name
    start: int
    earliest: int
    latest: int
    end: int
    fall: float


def phases_of_log(log: pd.DataFrame) -> list[Phase]:
    """The phases of a training log: of its held-out loss where that was measured often enough, else of the other."""
    if not {"split", "step", LOSS} <= set(log):
        return []
    for split in ("heldout", "train"):
        rows = log[(log["split"] == split) & log[LOSS].notna() & (log["step"] > 0)].sort_values("step")
        if len(rows) >= FEWEST:
            return phases(rows["step"].tolist(), rows[LOSS].to_numpy())
    return []


def phases(steps: Sequence[int], losses: ArrayLike) -> list[Phase]:
    """The phases of `losses` [S] at ascending `steps` [S] above 0; none where no line turns, or the loss never falls.

    A stretch is fast where the fitted loss falls by more per doubling than over the whole run, else slow.
    """
    at, values = _thinned(np.asarray(steps, float), np.asarray(losses, float))
    if len(at) < FEWEST:
        return []
    doublings = np.log2(at)
    most = min(BREAKS, (len(at) - 2 * APART - 1) // APART + 1)  # for which there is room
    fitted = [_Fits(doublings, count) for count in range(most + 1)]
    fit = min(fitted, key=lambda one: one.criterion(values))
    turns, line = fit.best(values)
    mean = (line[0] - line[-1]) / (doublings[-1] - doublings[0])
    if not turns or mean <= 0:
        return []
    moved = doublings[fit.resampled(values, line)]
    knots = [0, *turns, len(at) - 1]
    falls = -np.diff(line[knots]) / np.diff(doublings[knots])
    stretches = [[*group] for _, group in groupby(range(len(falls)), key=lambda i: bool(falls[i] > mean))]
    names = _names([bool(falls[group[0]] > mean) for group in stretches])
    found = []
    for name, group in zip(names, stretches, strict=True):
        first, last = knots[group[0]], knots[group[-1] + 1]
        ends = _widened(_interval(moved, doublings[first]), doublings) if group[0] else (doublings[first],) * 2
        fall = (line[first] - line[last]) / (doublings[last] - doublings[first])
        found.append(Phase(name, *(round(2.0**x) for x in (doublings[first], *ends, doublings[last])), float(fall)))
    return found


def _interval(moved: Floats, turn: float) -> Floats:
    """The 2.5th and 97.5th percentile of the breakpoints, one of each resample [R, K], that are nearest to a turn."""
    nearest = np.abs(moved - turn).argmin(axis=1)
    return np.quantile(moved[np.arange(len(moved)), nearest], (0.025, 0.975), method="nearest")


def _widened(ends: Floats, points: Floats) -> Floats:
    """The two `points` next to the ends, outwards: a turn may lie anywhere between a breakpoint and its neighbours."""
    first, last = np.searchsorted(points, ends)
    return points[[max(0, first - 1), min(len(points) - 1, last + 1)]]


def _names(fast: Sequence[bool]) -> list[Name]:
    """The names of stretches that are fast and slow by turns."""
    names: list[Name] = [] if fast[0] else ["start"]
    falls = plateaus = 0
    for falling in fast[len(names) :]:
        kinds, number = (FAST, falls) if falling else (SLOW, plateaus)
        names.append(kinds[min(number, len(kinds) - 1)])
        falls, plateaus = falls + falling, plateaus + (not falling)
    return names


def _thinned(steps: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Steps and values as they are, or their means in MOST bins of equal width in doublings, empty ones left out."""
    if len(steps) <= MOST:
        return steps, values
    edges = np.linspace(np.log2(steps[0]), np.log2(steps[-1]), MOST + 1)
    which = np.clip(np.searchsorted(edges, np.log2(steps), side="right") - 1, 0, MOST - 1)
    bins = [which == number for number in np.unique(which)]
    middles = np.array([2 ** np.log2(steps[one]).mean() for one in bins])
    middles[0], middles[-1] = steps[0], steps[-1]  # the phases cover the whole run
    return middles, np.array([values[one].mean() for one in bins])


class _Fits:
    """All continuous lines with so many breakpoints at points [S], as orthonormal bases [C, S, K + 2] of theirs."""

    def __init__(self, points: Floats, count: int):
        self.size, self.count = len(points), count
        inner = range(APART, self.size - APART)
        self.turns = [
            turns for turns in combinations(inner, count) if all(b - a >= APART for a, b in pairwise(turns))
        ]
        at = np.array(self.turns, int).reshape(len(self.turns), count)
        bent = np.maximum(0, points[None, :, None] - points[at][:, None, :])
        straight = np.stack([np.ones_like(points), points], axis=-1)
        straight = np.broadcast_to(straight, (len(self.turns), self.size, 2))
        self.bases, _ = np.linalg.qr(np.concatenate([straight, bent], axis=-1))

    def _explained(self, values: Floats) -> Floats:
        """The sums of squares [C, B] that each line explains of values [S, B]."""
        explained = []
        for bases in np.array_split(self.bases, len(self.bases) // LINES + 1):
            along = bases.transpose(0, 2, 1).reshape(-1, self.size) @ values
            explained.append((along**2).reshape(len(bases), -1, values.shape[1]).sum(axis=1))
        return np.concatenate(explained)

    def best(self, values: Floats) -> tuple[tuple[int, ...], Floats]:
        """Indices of the breakpoints of the line with the least squares, and that line [S]."""
        which = int(np.argmax(self._explained(values[:, None])[:, 0]))
        basis = self.bases[which]
        return self.turns[which], basis @ (basis.T @ values)

    def criterion(self, values: Floats) -> float:
        """Schwarz's criterion (BIC) of the best line; a breakpoint costs two parameters, its place and its slope."""
        _, line = self.best(values)
        rounding = self.size * (np.finfo(np.float32).eps * np.abs(values).max()) ** 2
        squares = float(((values - line) ** 2).sum()) + rounding
        return self.size * np.log(squares / self.size) + (2 + 2 * self.count) * np.log(self.size)

    def resampled(self, values: Floats, line: Floats) -> np.ndarray:
        """Indices [RESAMPLES, K] of the breakpoints where each residual of the line gets a random sign.

        The wild bootstrap of Wu (1986), since residuals are much larger where the loss moves than where it stands.
        """
        residuals = (values - line) * np.sqrt(self.size / max(1, self.size - 2 - 2 * self.count))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.size, RESAMPLES))
        return np.array(self.turns)[np.argmax(self._explained(line[:, None] + residuals[:, None] * signs), axis=0)]
