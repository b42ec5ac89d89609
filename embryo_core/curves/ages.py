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

MIN_FITTED_STEPS = 4  # steps after step 0: a sigmoid has four parameters
MAX_STEPS = 100  # a longer series is fitted at this many steps, evenly over their logarithm
MIN_OCCURRENCES = 5  # least number of occurrences for an age
RESAMPLE_COUNT = 200  # bootstrap samples of a word's occurrences
SEED = 0  # seed of the bootstrap
TAILS = (0.025, 0.975)  # quantiles of a 95 % interval
# numbers of middles and rates on the grid of fits; resamples use the coarse one
FINE_GRID, COARSE_GRID = (480, 64), (120, 16)
MAX_VALUES_AT_ONCE = 2**22  # curves times sigmoids of the grid, in memory at once
# Reasons why a word has no age.
FEW_STEPS = f"fewer than {MIN_FITTED_STEPS} steps after step 0"
FEW_OCCURRENCES = f"fewer than {MIN_OCCURRENCES} occurrences"
NOT_BELOW_CHANCE = "never significantly below chance"
BEFORE_FIRST_STEP, AFTER_LAST_STEP = "halfway before the first step", "halfway after the last step"


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """N falling curves: bottom + (top - bottom) / (1 + exp(rate * (log10(step) - middle))), arrays [N]."""

    top: Floats
    bottom: Floats
    rate: Floats
    middle: Floats

    def at(self, steps: ArrayLike) -> Floats:
        """Return the values [N, S] at steps above 0."""
        return self.bottom[:, None] + (self.top - self.bottom)[:, None] * _falling_sigmoid(
            np.log10(np.asarray(steps, float)), self.middle[:, None], self.rate[:, None]
        )

    def log_step_at(self, level: ArrayLike) -> Floats:
        """Return log10 of the step at which each curve falls to its `level` [N]: -inf if always below, inf if never."""
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

    Intervals are percentiles of a bootstrap over occurrences, which are drawn once for all steps. Sigmoids are fitted
    to at most `MAX_STEPS` steps; the lowest surprisals are those of all steps after step 0.
    """
    chance, word_count = np.asarray(chance, float), len(occurrences)
    later_steps = np.asarray(steps, float)[is_later := np.asarray(steps) > 0]
    indices = _log_spaced_indices(later_steps)
    evaluated_steps = later_steps[indices]
    if len(evaluated_steps) < MIN_FITTED_STEPS or not word_count:
        missing = np.full(word_count, np.nan)
        return Ages(missing, missing, missing, (FEW_STEPS,) * word_count, Sigmoids(missing, missing, missing, missing))
    curves = [np.asarray(surprisals, float)[is_later] for surprisals in occurrences]
    means = np.stack([curve.mean(axis=1) for curve in curves])
    fits = fit_sigmoids(evaluated_steps, means[:, indices])
    log_ages = fits.log_step_at((chance + means.min(axis=1)) / 2)
    ages, low, high = (np.full(word_count, np.nan) for _ in range(3))
    reasons = [FEW_OCCURRENCES if curve.shape[1] < MIN_OCCURRENCES else "" for curve in curves]
    frequent_curves = [curve for curve, reason in zip(curves, reasons, strict=True) if not reason]
    resampled_curves, lowest, at_lowest_mean = _resample(frequent_curves, indices)
    resampled_fits = fit_sigmoids(evaluated_steps, resampled_curves.reshape(-1, len(evaluated_steps)), COARSE_GRID)
    is_rare = np.array([bool(reason) for reason in reasons])
    levels = (chance[~is_rare, None] + lowest) / 2
    crossings = resampled_fits.log_step_at(levels.ravel()).reshape(-1, RESAMPLE_COUNT)
    for i, samples, resampled_ages in zip(np.flatnonzero(~is_rare), at_lowest_mean, crossings, strict=True):
        reasons[i] = _reason_without_age(evaluated_steps, samples, chance[i], log_ages[i])
        if not reasons[i]:
            ends = 10 ** np.quantile(resampled_ages, TAILS, method="inverted_cdf")
            ages[i] = 10 ** log_ages[i]
            first, last = min(ends[0], ages[i]), max(ends[1], ages[i])  # the interval contains the age
            low[i] = first if first >= evaluated_steps[0] else -np.inf
            high[i] = last if last <= evaluated_steps[-1] else np.inf
    return Ages(ages, low, high, tuple(reasons), fits)


def _log_spaced_indices(steps: Floats) -> NDArray[np.integer]:
    """Return the indices of at most MAX_STEPS log-spaced steps of those above 0."""
    if len(steps) <= MAX_STEPS:
        return np.arange(len(steps))
    log_steps = np.log10(steps)
    targets = np.linspace(log_steps[0], log_steps[-1], MAX_STEPS)
    return np.unique(np.abs(log_steps[:, None] - targets).argmin(axis=0))


def _reason_without_age(steps: Floats, samples: Floats, chance: float, crossing: float) -> str:
    """Return the reason why a word has no age, or "", from samples [R] of its lowest mean surprisal."""
    if np.quantile(samples, TAILS[1]) >= chance:
        return NOT_BELOW_CHANCE
    if crossing < np.log10(steps[0]):
        return BEFORE_FIRST_STEP
    return AFTER_LAST_STEP if crossing > np.log10(steps[-1]) else ""


def _resample(curves: Sequence[Floats], indices: NDArray[np.integer]) -> tuple[Floats, Floats, Floats]:
    """Return mean curves of R = RESAMPLE_COUNT bootstrap samples of W curves [S, n]; words are independent.

    They are returned at the fitted steps, whose `indices` are given: [W, R, indices]. The lowest value of each over
    all steps [W, R] follows, and the value [W, R] at the step where the mean of the word's curve is lowest.
    """
    mean_curves = np.zeros((len(curves), RESAMPLE_COUNT, len(indices)))
    lowest, at_lowest_mean = np.zeros((2, len(curves), RESAMPLE_COUNT))
    for i, curve in enumerate(curves):
        n = curve.shape[1]
        counts = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), RESAMPLE_COUNT)
        samples = counts @ curve.T / n
        mean_curves[i], lowest[i] = samples[:, indices], samples.min(axis=1)
        at_lowest_mean[i] = samples[:, curve.mean(axis=1).argmin()]
    return mean_curves, lowest, at_lowest_mean


# === Fitting ===


def fit_sigmoids(steps: ArrayLike, values: ArrayLike, grid: tuple[int, int] = FINE_GRID) -> Sigmoids:
    """Fit a falling sigmoid over log10 of S steps above 0 to each row of values [N, S] by least squares.

    Top and bottom are linear, so only middle and rate are searched: on a grid, then between the grid's middles. If no
    falling curve fits, the result is flat: its top and bottom are the mean.
    """
    x, y = np.log10(np.asarray(steps, float)), np.asarray(values, float)
    span = x[-1] - x[0]
    middles = np.linspace(x[0] - 0.1 * span, x[-1] + 0.1 * span, grid[0])
    # log(81) spans the fall from nine tenths to one tenth
    rates = np.log(81) / (span * np.geomspace(0.02, 2, grid[1]))
    unit_shapes = _normalise(
        _falling_sigmoid(x, np.tile(middles, grid[1])[:, None], np.repeat(rates, grid[0])[:, None])
    ).astype(np.float32)
    best, gain = np.zeros(len(y), int), np.zeros((len(y), 3))
    chunk_size = MAX_VALUES_AT_ONCE // len(unit_shapes)
    for start in range(0, len(y), chunk_size):
        chunk = slice(start, start + chunk_size)
        projections = (y[chunk] - y[chunk].mean(axis=1, keepdims=True)).astype(np.float32) @ unit_shapes.T
        best[chunk] = projections.argmax(axis=1)
        neighbours = np.clip(best[chunk, None] + [-1, 0, 1], 0, len(unit_shapes) - 1)
        gain[chunk] = np.take_along_axis(projections, neighbours, axis=1)
    middle_index = best % len(middles)
    is_inside = (middle_index > 0) & (middle_index < len(middles) - 1)
    middle = middles[middle_index] + np.where(is_inside, _vertex(gain), 0) * (middles[1] - middles[0])
    rate = rates[best // len(middles)]
    shape = _falling_sigmoid(x, middle[:, None], rate[:, None])
    centred = shape - shape.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.nan_to_num((centred * y).sum(axis=1) / (centred**2).sum(axis=1), posinf=0, neginf=0)
    height = np.maximum(height, 0)
    bottom = y.mean(axis=1) - height * shape.mean(axis=1)
    return Sigmoids(bottom + height, bottom, rate, middle)


def _falling_sigmoid(x: Floats, middle: Floats, rate: Floats) -> Floats:
    """Return the values at x of sigmoids that fall from 1 to 0."""
    return 0.5 - 0.5 * np.tanh(rate * (x - middle) / 2)


def _normalise(shapes: Floats) -> Floats:
    """Return shapes [..., S] with mean 0 and length 1; a shape that is constant over the steps becomes 0."""
    shapes = shapes - shapes.mean(axis=-1, keepdims=True)
    length = np.linalg.norm(shapes, axis=-1, keepdims=True)
    return np.where(length > 1e-3, shapes / np.maximum(length, 1e-3), 0)


def _vertex(gain: Floats) -> Floats:
    """Return where the parabola through three gains [N, 3] is highest, up to half a cell from the middle one."""
    below, top, above = gain.T
    bend = below - 2 * top + above
    return np.where(bend < 0, np.clip(0.5 * (below - above) / np.where(bend < 0, bend, -1), -0.5, 0.5), 0)
