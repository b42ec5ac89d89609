"""The phases of a run: where its masked-word loss turns, found by lines that meet at breakpoints (docs/metrics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from embryo_core.curves.scores import Floats

Name = Literal["start", "first fall", "plateau", "take-off", "later plateau", "later fall"]

LOSS = "masked_lm_loss"
FEWEST, MOST = 10, 96  # points that are fitted
BREAKS = 8  # at most: a run that has all six phases turns five times, and some turns are bends that lines follow
APART = 2  # points from a breakpoint to the next, or to an end
RESAMPLES = 200
FASTER = 1.15  # times the mean fall: a long plateau falls by about the mean
SWEEPS = 10  # at most, in each of which all breakpoints are moved
TINY = 1e-9  # what is left of a column beside others, relative to its squares, where that is rounding alone
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

    A stretch is fast where the fitted loss falls by over FASTER times as much per doubling as over the whole run, else
    slow; nor are there phases where none is fast.
    """
    at, values = _thinned(np.asarray(steps, float), np.asarray(losses, float))
    if len(at) < FEWEST:
        return []
    doublings = np.log2(at)
    lines = _Lines(doublings)
    turns, line = min(lines.fits(values), key=lambda fit: _criterion(values, fit[1], len(fit[0])))
    knots = [0, *turns, len(at) - 1]
    mean = (line[0] - line[-1]) / (doublings[-1] - doublings[0])
    fast = (-np.diff(line[knots]) > FASTER * mean * np.diff(doublings[knots])).tolist()
    if not turns or mean <= 0 or not any(fast):
        return []
    moved = doublings[lines.resampled(values, line, turns)]
    stretches = [[*group] for _, group in groupby(range(len(fast)), key=lambda i: fast[i])]
    names = _names([fast[group[0]] for group in stretches])
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


class _Lines:
    """Continuous lines with breakpoints at some of the points [S], found by moving breakpoints to better points.

    A line is a sum of columns: 1, the point, and for each point j the distance beyond it, which bends there. Products
    of columns tell what one or two more breakpoints explain beside others, for all places at once.
    """

    def __init__(self, points: Floats):
        self.size = len(points)
        at = (points - points[0]) / (points[-1] - points[0])
        bent = np.maximum(0, at[:, None] - at)
        self.columns = np.column_stack([np.ones_like(at), at, bent])
        self.products = self.columns.T @ self.columns

    def line(self, values: Floats, turns: Sequence[int]) -> Floats:
        """The line [S] of least squares with these breakpoints."""
        basis, _ = np.linalg.qr(self.columns[:, [0, 1, *(turn + 2 for turn in turns)]])
        return basis @ (basis.T @ values)

    def fits(self, values: Floats) -> list[tuple[list[int], Floats]]:
        """Breakpoints and line with none, with one, and so on, up to BREAKS or as many as there is room for.

        Upwards, the best further breakpoint joins those of the line before; downwards, the one that is needed least
        leaves. Each time any two neighbours, taken out together, are put where the squares are least, until none can be
        put better. Of the two lines with as many breakpoints the better one is taken.
        """
        along, rounding = (values - values.mean())[None] @ self.columns, _rounding(values)
        up: list[list[int]] = [[]]
        while len(up) <= BREAKS:
            gains = self._one_more(along, np.array([up[-1]], int))[0]
            if gains.max() < 0:
                break
            up.append(self._settled(along, sorted([*up[-1], int(gains.argmax())]), rounding))
        down = up[-1:]
        while len(down) < len(up):
            fewer = [[*combination] for combination in combinations(down[0], len(down[0]) - 1)]
            down.insert(0, self._settled(along, min(fewer, key=lambda turns: self._squares(values, turns)), rounding))
        best = [min(pair, key=lambda turns: self._squares(values, turns)) for pair in zip(up, down, strict=True)]
        return [(turns, self.line(values, turns)) for turns in best]

    def _squares(self, values: Floats, turns: Sequence[int]) -> float:
        return float(((values - self.line(values, turns)) ** 2).sum())

    def _settled(self, along: Floats, turns: list[int], rounding: float) -> list[int]:
        """Breakpoints of which no two neighbours can be put better by more than `rounding`."""
        for _ in range(SWEEPS):
            before = turns
            for first in range(len(turns) - 1):
                others = turns[:first] + turns[first + 2 :]
                gains = self._two_more(along, np.array([others], int))
                best = np.unravel_index(gains.argmax(), gains.shape)
                if gains[best] > gains[turns[first], turns[first + 1]] + rounding:
                    turns = sorted([*others, *map(int, best)])
            if turns == before:
                break
        return turns

    def resampled(self, values: Floats, line: Floats, turns: Sequence[int]) -> np.ndarray:
        """Indices [RESAMPLES, K] of the breakpoints where each residual of the line gets a random sign.

        The wild bootstrap of Wu (1986), since residuals are much larger where the loss moves than where it stands. From
        `turns`, each breakpoint in turn is put where the squares are least, until none can be put better.
        """
        residuals = (values - line) * np.sqrt(self.size / max(1, self.size - 2 - 2 * len(turns)))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.size, RESAMPLES))
        along = (line + residuals * signs.T) @ self.columns
        moved = np.tile(np.array(turns, int), (RESAMPLES, 1))
        for _ in range(SWEEPS):
            before = moved.copy()
            for place in range(len(turns)):
                gains = self._one_more(along, np.delete(moved, place, axis=1))
                moved[:, place] = np.where(gains.max(axis=1) < 0, moved[:, place], gains.argmax(axis=1))
            if (moved == before).all():
                break
        return moved

    def _one_more(self, along: Floats, others: np.ndarray) -> Floats:
        """The squares [B, S] that a breakpoint at each point explains beside others [B, k]; -1 where it cannot be.

        `along` [B, 2 + S] are the products of values with the columns.
        """
        cross, shares, rest = self._beside(along, others)
        left = self.products.diagonal()[2:] - (cross * shares).sum(axis=1)
        return np.where(self._free(others) & (left > TINY), rest**2 / np.maximum(left, TINY), -1)

    def _two_more(self, along: Floats, others: np.ndarray) -> Floats:
        """The squares [S, S] that breakpoints at a point and a later one explain beside others [1, k]."""
        (cross,), (shares,), (rest,) = self._beside(along, others)
        (free,), index = self._free(others), np.arange(self.size)
        products = self.products[2:, 2:] - cross.T @ shares
        own = products.diagonal()
        both, free = np.outer(own, own), free & (own > TINY)
        determinant = both - products**2
        explained = np.outer(rest**2, own)
        explained = explained + explained.T - 2 * products * np.outer(rest, rest)
        may = free[:, None] & free & (index - index[:, None] >= APART) & (determinant > TINY * both)
        return np.where(may, explained / np.where(may, determinant, 1), -1)

    def _beside(self, along: Floats, others: np.ndarray) -> tuple[Floats, Floats, Floats]:
        """Products [B, k + 2, S] of the other columns with those that bend, and their shares in these.

        Third, the products [B, S] of values with what of the bending columns the others do not have.
        """
        at = np.column_stack([np.tile([0, 1], (len(others), 1)), others + 2])
        rows = self.products[at]
        inner = np.take_along_axis(rows, at[:, None], axis=2)
        cross = rows[:, :, 2:]
        shares = np.linalg.solve(inner, cross)
        explained = (shares * np.take_along_axis(along, at, axis=1)[:, :, None]).sum(axis=1)
        return cross, shares, along[:, 2:] - explained

    def _free(self, others: np.ndarray) -> np.ndarray:
        """Where a breakpoint may be beside others [B, k]: bool [B, S]."""
        index = np.arange(self.size)
        inner = (index >= APART) & (index < self.size - APART)
        return inner & (np.abs(index - others[:, :, None]) >= APART).all(axis=1)


def _criterion(values: Floats, line: Floats, count: int) -> float:
    """Schwarz's criterion (BIC) of a line; a breakpoint costs two parameters, its place and its slope."""
    size = len(values)
    squares = float(((values - line) ** 2).sum()) + _rounding(values)
    return size * np.log(squares / size) + (2 + 2 * count) * np.log(size)


def _rounding(values: Floats) -> float:
    """The sum of squares that rounding of values alone to 32 bits may make."""
    return len(values) * float(np.finfo(np.float32).eps * np.abs(values).max()) ** 2
