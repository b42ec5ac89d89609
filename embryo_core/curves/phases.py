"""The phases of a run: stretches in which its loss falls fast or slowly, found by fitting lines (docs/metrics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from embryo_core.curves.scores import Floats

Name = Literal["start", "first fall", "plateau", "take-off", "later plateau", "later fall"]

# columns of the loss on words, in logs of masked language models and of decoders
LOSS_COLUMNS = ("masked_lm_loss", "next_token_loss")
MIN_POINTS, MAX_POINTS = 10, 96  # points of the fit
MAX_BREAKS = 8  # a run with all six phases turns five times, and some turns are bends that need several lines
MIN_DISTANCE = 2  # least number of points between two breakpoints, or between a breakpoint and an end
RESAMPLE_COUNT = 200  # bootstrap samples for the intervals of breakpoints
MIN_SPEED_RATIO = 1.15  # a fast stretch falls by more than this times the mean; a long plateau falls by about the mean
MAX_SWEEPS = 10  # passes over all breakpoints, each of which may move
TINY_RESIDUAL = 1e-9  # a smaller residual of a column, relative to its sum of squares, is rounding
SLOW_NAMES: tuple[Name, ...] = ("plateau", "later plateau")
FAST_NAMES: tuple[Name, ...] = ("first fall", "take-off", "later fall")


@dataclass(frozen=True)
class Phase:
    """A stretch of a run in which the loss falls slowly or fast; its start has an interval, `earliest` to `latest`."""

    name: Name
    start: int
    earliest: int
    latest: int
    end: int
    fall: float  # nats per doubling of the step


def loss_of_words(log: pd.DataFrame) -> str:
    """Return the name of a log's column with the loss on words; the column of masked words if the log has neither."""
    return next((name for name in LOSS_COLUMNS if name in log), LOSS_COLUMNS[0])


def phases_of_log(log: pd.DataFrame) -> list[Phase]:
    """Find the phases of a training log: from the held-out loss if measured often enough, else the training loss."""
    loss = loss_of_words(log)
    if not {"split", "step", loss} <= set(log):
        return []
    for split in ("heldout", "train"):
        rows = log[(log["split"] == split) & log[loss].notna() & (log["step"] > 0)].sort_values("step")
        if len(rows) >= MIN_POINTS:
            return phases(rows["step"].tolist(), rows[loss].to_numpy())
    return []


def phases(steps: Sequence[int], losses: ArrayLike) -> list[Phase]:
    """Find the phases of `losses` [S] at ascending `steps` [S] above 0; none without a breakpoint or an overall fall.

    A stretch is fast if the fitted loss falls more than MIN_SPEED_RATIO times as much per doubling of the step as over
    the whole run, else slow. Without a fast stretch there are no phases.
    """
    points, values = _bin_points(np.asarray(steps, float), np.asarray(losses, float))
    if len(points) < MIN_POINTS:
        return []
    doublings = np.log2(points)
    lines = _Lines(doublings)
    turns, line = min(lines.fits(values), key=lambda fit: _criterion(values, fit[1], len(fit[0])))
    knots = [0, *turns, len(points) - 1]
    mean_slope = (line[0] - line[-1]) / (doublings[-1] - doublings[0])
    is_fast = (-np.diff(line[knots]) > MIN_SPEED_RATIO * mean_slope * np.diff(doublings[knots])).tolist()
    if not turns or mean_slope <= 0 or not any(is_fast):
        return []
    resampled_turns = doublings[lines.resampled(values, line, turns)]
    stretches = [[*group] for _, group in groupby(range(len(is_fast)), key=lambda i: is_fast[i])]
    names = _name_stretches([is_fast[group[0]] for group in stretches])
    phase_list = []
    for name, group in zip(names, stretches, strict=True):
        first, last = knots[group[0]], knots[group[-1] + 1]
        low = high = doublings[first]
        if group[0]:
            low, high = _widen(_interval(resampled_turns, low), doublings)
        fall = (line[first] - line[last]) / (doublings[last] - doublings[first])
        start, earliest, latest, end = (round(2.0**x) for x in (doublings[first], low, high, doublings[last]))
        phase_list.append(Phase(name, start, earliest, latest, end, float(fall)))
    return phase_list


def _interval(resampled_turns: Floats, turn: float) -> Floats:
    """Return the 2.5th and 97.5th percentile of the breakpoint nearest to a turn in `resampled_turns` [R, K]."""
    nearest = np.abs(resampled_turns - turn).argmin(axis=1)
    return np.quantile(resampled_turns[np.arange(len(resampled_turns)), nearest], (0.025, 0.975), method="nearest")


def _widen(ends: Floats, points: Floats) -> Floats:
    """Return the points just outside the ends, since a turn may be anywhere between a breakpoint and its neighbours."""
    first, last = np.searchsorted(points, ends)
    return points[[max(0, first - 1), min(len(points) - 1, last + 1)]]


def _name_stretches(is_fast: Sequence[bool]) -> list[Name]:
    """Return the names of stretches that are alternately fast and slow."""
    names: list[Name] = [] if is_fast[0] else ["start"]
    falls = plateaus = 0
    for is_falling in is_fast[len(names) :]:
        choices, rank = (FAST_NAMES, falls) if is_falling else (SLOW_NAMES, plateaus)
        names.append(choices[min(rank, len(choices) - 1)])
        falls, plateaus = falls + is_falling, plateaus + (not is_falling)
    return names


def _bin_points(steps: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Average steps and values in MAX_POINTS bins of equal width in doublings; fewer points stay as they are."""
    if len(steps) <= MAX_POINTS:
        return steps, values
    edges = np.linspace(np.log2(steps[0]), np.log2(steps[-1]), MAX_POINTS + 1)
    bin_indices = np.clip(np.searchsorted(edges, np.log2(steps), side="right") - 1, 0, MAX_POINTS - 1)
    masks = [bin_indices == bin_index for bin_index in np.unique(bin_indices)]
    middles = np.array([2 ** np.log2(steps[mask]).mean() for mask in masks])
    middles[0], middles[-1] = steps[0], steps[-1]  # so that the phases cover the whole run
    return middles, np.array([values[mask].mean() for mask in masks])


class _Lines:
    """Continuous piecewise linear fits with breakpoints at some of the points [S].

    A line is a sum of columns: 1, the point, and for each breakpoint the distance beyond it, which bends the line
    there. The products of columns give the improvement by one or two additional breakpoints, for all places at once.
    """

    def __init__(self, points: Floats):
        self.size = len(points)
        positions = (points - points[0]) / (points[-1] - points[0])
        hinges = np.maximum(0, positions[:, None] - positions)
        self.columns = np.column_stack([np.ones_like(positions), positions, hinges])
        self.products = self.columns.T @ self.columns

    def line(self, values: Floats, turns: Sequence[int]) -> Floats:
        """Return the least-squares line [S] with these breakpoints."""
        basis, _ = np.linalg.qr(self.columns[:, [0, 1, *(turn + 2 for turn in turns)]])
        return basis @ (basis.T @ values)

    def fits(self, values: Floats) -> list[tuple[list[int], Floats]]:
        """Return breakpoints and line [S] for each number of breakpoints, from 0 to MAX_BREAKS or until no more fit.

        Forward selection adds the best further breakpoint; backward elimination removes the least needed one. After
        each change, every two neighbours are moved together to where the sum of squares is smallest, until no move
        helps. Of the two lines with the same number of breakpoints the better one is returned.
        """

        def squares(turns: Sequence[int]) -> float:
            return float(((values - self.line(values, turns)) ** 2).sum())

        products, rounding = (values - values.mean())[None] @ self.columns, _rounding_squares(values)
        forward: list[list[int]] = [[]]
        while len(forward) <= MAX_BREAKS:
            gains = self._one_more(products, np.array([forward[-1]], int))[0]
            if gains.max() < 0:
                break
            forward.append(self._sweep(products, sorted([*forward[-1], int(gains.argmax())]), rounding))
        backward = forward[-1:]
        while len(backward) < len(forward):
            candidates = [[*combination] for combination in combinations(backward[0], len(backward[0]) - 1)]
            backward.insert(0, self._sweep(products, min(candidates, key=squares), rounding))
        best_turns = [min(pair, key=squares) for pair in zip(forward, backward, strict=True)]
        return [(turns, self.line(values, turns)) for turns in best_turns]

    def _sweep(self, products: Floats, turns: list[int], rounding: float) -> list[int]:
        """Move breakpoints until no two neighbours can be improved by more than `rounding`."""
        for _ in range(MAX_SWEEPS):
            previous = turns
            for i in range(len(turns) - 1):
                other_turns = turns[:i] + turns[i + 2 :]
                gains = self._two_more(products, np.array([other_turns], int))
                best = np.unravel_index(gains.argmax(), gains.shape)
                if gains[best] > gains[turns[i], turns[i + 1]] + rounding:
                    turns = sorted([*other_turns, *map(int, best)])
            if turns == previous:
                break
        return turns

    def resampled(self, values: Floats, line: Floats, turns: Sequence[int]) -> np.ndarray:
        """Return the indices [RESAMPLE_COUNT, K] of the breakpoints refitted after giving the residuals random signs.

        This is the wild bootstrap of Wu (1986), used because residuals are much larger where the loss changes than on a
        plateau. Starting at `turns`, each breakpoint is moved to where the sum of squares is smallest, until no move
        helps.
        """
        residuals = (values - line) * np.sqrt(self.size / max(1, self.size - 2 - 2 * len(turns)))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.size, RESAMPLE_COUNT))
        products = (line + residuals * signs.T) @ self.columns
        resampled_turns = np.tile(np.array(turns, int), (RESAMPLE_COUNT, 1))
        for _ in range(MAX_SWEEPS):
            previous = resampled_turns.copy()
            for i in range(len(turns)):
                gains = self._one_more(products, np.delete(resampled_turns, i, axis=1))
                resampled_turns[:, i] = np.where(gains.max(axis=1) < 0, resampled_turns[:, i], gains.argmax(axis=1))
            if (resampled_turns == previous).all():
                break
        return resampled_turns

    def _one_more(self, products: Floats, breakpoints: np.ndarray) -> Floats:
        """Return the squares [B, S] that an additional breakpoint at each point explains; -1 where none is allowed.

        `breakpoints` [B, k] are the breakpoints so far, `products` [B, 2 + S] the products of values with the columns.
        """
        cross_products, coefficients, residuals = self._residuals(products, breakpoints)
        remaining = self.products.diagonal()[2:] - (cross_products * coefficients).sum(axis=1)
        return np.where(
            self._free(breakpoints) & (remaining > TINY_RESIDUAL),
            residuals**2 / np.maximum(remaining, TINY_RESIDUAL),
            -1,
        )

    def _two_more(self, value_products: Floats, breakpoints: np.ndarray) -> Floats:
        """Return the squares [S, S] that two additional breakpoints explain, given others [1, k]; -1 if not allowed."""
        (cross_products,), (coefficients,), (residuals,) = self._residuals(value_products, breakpoints)
        (is_allowed,), index = self._free(breakpoints), np.arange(self.size)
        products = self.products[2:, 2:] - cross_products.T @ coefficients
        squares = products.diagonal()
        norm_products, is_allowed = np.outer(squares, squares), is_allowed & (squares > TINY_RESIDUAL)
        determinant = norm_products - products**2
        explained = np.outer(residuals**2, squares)
        explained = explained + explained.T - 2 * products * np.outer(residuals, residuals)
        is_valid = (
            is_allowed[:, None]
            & is_allowed
            & (index - index[:, None] >= MIN_DISTANCE)
            & (determinant > TINY_RESIDUAL * norm_products)
        )
        return np.where(is_valid, explained / np.where(is_valid, determinant, 1), -1)

    def _residuals(self, products: Floats, breakpoints: np.ndarray) -> tuple[Floats, Floats, Floats]:
        """Regress the bending columns on the other columns.

        Returns the products [B, k + 2, S] of the others with the bending columns, the coefficients [B, k + 2, S], and
        the products [B, S] of values with the residuals of the bending columns.
        """
        columns = np.column_stack([np.tile([0, 1], (len(breakpoints), 1)), breakpoints + 2])
        rows = self.products[columns]
        gram = np.take_along_axis(rows, columns[:, None], axis=2)
        cross_products = rows[:, :, 2:]
        coefficients = np.linalg.solve(gram, cross_products)
        explained = (coefficients * np.take_along_axis(products, columns, axis=1)[:, :, None]).sum(axis=1)
        return cross_products, coefficients, products[:, 2:] - explained

    def _free(self, breakpoints: np.ndarray) -> np.ndarray:
        """Return where an additional breakpoint is allowed, given others [B, k]: bool [B, S]."""
        index = np.arange(self.size)
        is_inside = (index >= MIN_DISTANCE) & (index < self.size - MIN_DISTANCE)
        return is_inside & (np.abs(index - breakpoints[:, :, None]) >= MIN_DISTANCE).all(axis=1)


def _criterion(values: Floats, line: Floats, turn_count: int) -> float:
    """Compute Schwarz's criterion (BIC) of a line; each breakpoint has two parameters, its place and its slope."""
    size = len(values)
    squares = float(((values - line) ** 2).sum()) + _rounding_squares(values)
    return size * np.log(squares / size) + (2 + 2 * turn_count) * np.log(size)


def _rounding_squares(values: Floats) -> float:
    """Return the residual sum of squares that rounding to float32 may cause."""
    return len(values) * float(np.finfo(np.float32).eps * np.abs(values).max()) ** 2
