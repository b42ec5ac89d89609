"""The age of acquisition of words: the step at which a word's surprisal is halfway from chance to its best.

Chang and Bergen (2022), "Word Acquisition in Neural Language Models": a sigmoid over the logarithm of the steps is
fitted to the surprisals of a word; the word is acquired where the sigmoid crosses the middle between chance (all pieces
equally probable) and the lowest surprisal that the word reaches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embryo_core.curves.scores import Floats

MIN_STEPS = 4  # steps after step 0: a sigmoid has four parameters
MAX_STEPS = 100  # a longer series is thinned to this many steps, evenly over their logarithm
MIN_OCCURRENCES = 5  # least number of occurrences for an age
RESAMPLES = 200  # bootstrap samples of a word's occurrences
SEED = 0  # seed of the bootstrap
TAILS = (0.025, 0.975)  # quantiles of a 95 % interval
FINE, COARSE = (480, 64), (120, 16)  # numbers of middles and rates on the grid of fits; resamples use the coarse one
VALUES_AT_ONCE = 2**22  # curves times sigmoids of the grid, in memory at once
# Reasons why a word has no age.
FEW_STEPS = f"fewer than {MIN_STEPS} steps after step 0"
FEW = f"fewer than {MIN_OCCURRENCES} occurrences"
CHANCE = "never significantly below chance"
EARLY, LATE = "halfway before the first step", "halfway after the last step"


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """N falling curves: bottom + (top - bottom) / (1 + exp(rate * (log10(step) - middle))), arrays [N]."""

    top: Floats
    bottom: Floats
    rate: Floats
    middle: Floats

    def at(self, steps: ArrayLike) -> Floats:
        """Return the values [N, S] at steps above 0."""
        return self.bottom[:, None] + (self.top - self.bottom)[:, None] * _falls(
            np.log10(np.asarray(steps, float)), self.middle[:, None], self.rate[:, None]
        )

    def crossing(self, level: ArrayLike) -> Floats:
        """Return log10 of the step [N] at which each falls to its level: -inf if it is always below, inf if never."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (np.asarray(level, float) - self.bottom) / (self.top - self.bottom)
            log_step = self.middle - np.log(share / (1 - share)) / self.rate
        return np.where(share >= 1, -np.inf, np.where(share > 0, log_step, np.inf))


@dataclass(frozen=True, eq=False)
class Ages:
    """The step at which each of W words is acquired, with its 95 % interval, arrays [W]; NaN for words without one."""

    step: Floats
    earliest: Floats  # -inf if the interval extends before the first step
    latest: Floats  # inf if the interval extends beyond the last step
    reasons: tuple[str, ...]  # reasons for missing ages; "" for a word with an age
    fits: Sigmoids


def find_ages(steps: Sequence[int], occurrences: Sequence[NDArray[np.floating]], chance: ArrayLike) -> Ages:
    """Return the ages of W words from the surprisals of each word's occurrences [S, n] and the chance surprisals [W].

    Intervals are percentiles of a bootstrap over occurrences, which are drawn once for all steps.
    """
    chance, words = np.asarray(chance, float), len(occurrences)
    after = _thin(np.asarray(steps, float))
    evaluated = np.asarray(steps, float)[after]
    if len(evaluated) < MIN_STEPS or not words:
        none = np.full(words, np.nan)
        return Ages(none, none, none, (FEW_STEPS,) * words, Sigmoids(none, none, none, none))
    curves = [np.asarray(surprisals, float)[after] for surprisals in occurrences]
    means = np.stack([curve.mean(axis=1) for curve in curves])
    fits = fit_sigmoids(evaluated, means)
    log_ages = fits.crossing((chance + means.min(axis=1)) / 2)
    ages, low, high = (np.full(words, np.nan) for _ in range(3))
    reasons = [FEW if curve.shape[1] < MIN_OCCURRENCES else "" for curve in curves]
    resampled = _resample([curve for curve, why in zip(curves, reasons, strict=True) if not why])
    again = fit_sigmoids(evaluated, resampled.reshape(-1, len(evaluated)), COARSE)
    few = np.array([bool(why) for why in reasons])
    levels = (chance[~few, None] + resampled.min(axis=2)) / 2
    crossings = again.crossing(levels.ravel()).reshape(-1, RESAMPLES)
    for i, samples, resampled_ages in zip(np.flatnonzero(~few), resampled, crossings, strict=True):
        reasons[i] = _why_not(evaluated, means[i], samples, chance[i], log_ages[i])
        if not reasons[i]:
            ends = 10 ** np.quantile(resampled_ages, TAILS, method="inverted_cdf")
            ages[i] = 10 ** log_ages[i]
            first, last = min(ends[0], ages[i]), max(ends[1], ages[i])  # the interval contains the age
            low[i] = first if first >= evaluated[0] else -np.inf
            high[i] = last if last <= evaluated[-1] else np.inf
    return Ages(ages, low, high, tuple(reasons), fits)


def _thin(steps: Floats) -> NDArray[np.integer]:
    """Return the indices of the steps after step 0, thinned to MAX_STEPS."""
    after = np.flatnonzero(steps > 0)
    if len(after) <= MAX_STEPS:
        return after
    logs = np.log10(steps[after])
    wanted = np.linspace(logs[0], logs[-1], MAX_STEPS)
    return after[np.unique(np.abs(logs[:, None] - wanted).argmin(axis=0))]


def _why_not(steps: Floats, mean: Floats, samples: Floats, chance: float, crossing: float) -> str:
    """Return the reason why a word has no age, or "", from mean surprisals [S] and those of samples [RESAMPLES, S]."""
    if np.quantile(samples[:, mean.argmin()], TAILS[1]) >= chance:
        return CHANCE
    if crossing < np.log10(steps[0]):
        return EARLY
    return LATE if crossing > np.log10(steps[-1]) else ""


def _resample(curves: Sequence[Floats]) -> Floats:
    """Return mean curves [W, RESAMPLES, S] of bootstrap samples of curves [S, n]; words are independent."""
    resampled = []
    for curve in curves:
        n = curve.shape[1]
        drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        resampled.append(drawn @ curve.T / n)
    return np.stack(resampled) if resampled else np.zeros((0, RESAMPLES, 1))


# === Fitting ===


def fit_sigmoids(steps: ArrayLike, values: ArrayLike, grid: tuple[int, int] = FINE) -> Sigmoids:
    """Fit a falling sigmoid over log10 of S steps above 0 to each row of values [N, S] by least squares.

    Top and bottom are linear, so only middle and rate are searched: on a grid, then between the grid's middles. If no
    falling curve fits, the result is flat: its top is its bottom.
    """
    x, y = np.log10(np.asarray(steps, float)), np.asarray(values, float)
    reach = x[-1] - x[0]
    middles = np.linspace(x[0] - 0.1 * reach, x[-1] + 0.1 * reach, grid[0])
    # log(81) spans the fall from nine tenths to one tenth
    rates = np.log(81) / (reach * np.geomspace(0.02, 2, grid[1]))
    flat = _unit(_falls(x, np.tile(middles, grid[1])[:, None], np.repeat(rates, grid[0])[:, None])).astype(np.float32)
    best, gain = np.zeros(len(y), int), np.zeros((len(y), 3))
    at_once = VALUES_AT_ONCE // len(flat)
    for start in range(0, len(y), at_once):
        chunk = slice(start, start + at_once)
        fitted = (y[chunk] - y[chunk].mean(axis=1, keepdims=True)).astype(np.float32) @ flat.T
        best[chunk] = fitted.argmax(axis=1)
        around_best = np.clip(best[chunk, None] + [-1, 0, 1], 0, len(flat) - 1)
        gain[chunk] = np.take_along_axis(fitted, around_best, axis=1)
    place = best % len(middles)
    inner = (place > 0) & (place < len(middles) - 1)
    middle = middles[place] + np.where(inner, _vertex(gain), 0) * (middles[1] - middles[0])
    rate = rates[best // len(middles)]
    shape = _falls(x, middle[:, None], rate[:, None])
    spread = shape - shape.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.nan_to_num((spread * y).sum(axis=1) / (spread**2).sum(axis=1), posinf=0, neginf=0)
    bottom = y.mean(axis=1) - height * shape.mean(axis=1)
    return Sigmoids(np.where(height > 0, bottom + height, bottom), bottom, rate, middle)


def _falls(x: Floats, middle: Floats, rate: Floats) -> Floats:
    """Return the values at x of sigmoids that fall from 1 to 0."""
    return 0.5 - 0.5 * np.tanh(rate * (x - middle) / 2)


def _unit(shapes: Floats) -> Floats:
    """Return shapes [..., S] with mean 0 and length 1; a shape that is constant over the steps becomes 0."""
    shapes = shapes - shapes.mean(axis=-1, keepdims=True)
    length = np.linalg.norm(shapes, axis=-1, keepdims=True)
    return np.where(length > 1e-3, shapes / np.maximum(length, 1e-3), 0)


def _vertex(gain: Floats) -> Floats:
    """Return where the parabola through three gains [N, 3] is highest, up to half a cell from the middle one."""
    below, top, above = gain.T
    bend = below - 2 * top + above
    return np.where(bend < 0, np.clip(0.5 * (below - above) / np.where(bend < 0, bend, -1), -0.5, 0.5), 0)
