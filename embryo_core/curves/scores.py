"""What is read off stored results: curves rescaled and smoothed, intervals, onsets, peaks, histories and maps.

Scores are stored raw with their n; these pure functions are applied on reading (Sections 3, 4 and 6, Figures 1 to 11).
Values are in the order of steps. docs/metrics.md states the same rules with their reasons.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
History = Literal["learned", "oscillating", "forgotten", "never learned"]
Fate = Literal[History, "declined"]

HISTORIES: tuple[History, ...] = ("learned", "oscillating", "forgotten", "never learned")
Z = 1.959963984540054  # two-sided 95 % of the normal distribution


# === Curves ===


def rescale(values: ArrayLike, last: float) -> Floats:
    """Values [S] of a curve, or ends of its intervals, divided by its `last` value (Figure 1); all NaN if it is 0."""
    values = np.asarray(values, float)
    return values / last if last else np.full(len(values), np.nan)


def smooth(values: ArrayLike, window: int = 3) -> Floats:
    """Mean [S] of each value with its neighbours within an odd `window`; at the ends, of those that there are.

    For the eye alone: nothing is computed from it. Neighbours are points, however many steps lie between them. Raises
    ValueError for an even window.
    """
    if window < 1 or window % 2 == 0:
        raise ValueError(f"The window is an odd number of points. Received: {window}.")
    values = np.asarray(values, float)
    if not len(values):
        return values
    weights = np.ones(window)
    reach = slice(window // 2, window // 2 + len(values))
    return np.convolve(values, weights)[reach] / np.convolve(np.ones_like(values), weights)[reach]


def interval(value: ArrayLike, n: ArrayLike, z: float = Z) -> tuple[Floats, Floats]:
    """Wilson's score interval (low, high) of a share `value` in [0, 1] of `n` > 0 cases; numbers or arrays.

    Unlike value +- 1.96 standard errors it stays within [0, 1], and has a width at 0 and at 1. `z` is the point of the
    normal distribution that sets the confidence, 95 % by default.
    """
    value, n = np.asarray(value, float), np.asarray(n, float)
    middle = value + z**2 / (2 * n)
    reach = z * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    whole = 1 + z**2 / n
    return np.clip((middle - reach) / whole, 0, value), np.clip((middle + reach) / whole, value, 1)


def difference_interval(
    first: ArrayLike, second: ArrayLike, n: ArrayLike, z: float = Z, n_second: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Newcombe's interval (low, high) of first - second, two shares of `n` > 0 cases each; numbers or arrays.

    Where the second is a share of another number of cases, that is `n_second`.

    Method 10 of Newcombe (1998), which joins the two intervals of Wilson as if the cases were independent. It is wider
    than needed for shares of the same cases, which as a rule rise and fall together. `z` as in `interval`.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    first_low, first_high = interval(first, n, z)
    second_low, second_high = interval(second, n if n_second is None else n_second, z)
    below = np.hypot(first - first_low, second_high - second)
    above = np.hypot(first_high - first, second - second_low)
    return first - second - below, first - second + above


@dataclass(frozen=True)
class Onset:
    """From which step a curve stays at or above a share of its last value, and between which steps that may lie.

    `latest` is None where even the last value is not surely above the share.
    """

    step: int
    earliest: int
    latest: int | None


def onset(
    steps: Sequence[int] | NDArray[np.integer],
    values: ArrayLike,
    n: ArrayLike,
    share: float = 0.5,
    floor: float = 0.0,
) -> Onset | None:
    """The onset of `values` [S] at `steps` [S], shares counted on `n` [S] cases; None where the last is no more than
    `floor`, the value from which the curve rises.

    `earliest` is the first step from which no 95 % interval lies below the level, `share` of the way from the floor to
    the last value; `latest` is the first from which none reaches below it. The onset is the first step from `earliest`
    on whose value has come up to the level. A later dip that may be chance, its interval still reaching the level, does
    not move it.
    """
    values = np.asarray(values, float)
    if not len(values) or values[-1] <= floor:
        return None
    level, (low, high) = floor + share * (values[-1] - floor), interval(values, n)
    earliest = held_from(steps, high, level)
    reached = (np.asarray(steps) >= earliest) & (values >= level)
    return Onset(int(steps[int(np.argmax(reached))]), earliest, held_from(steps, low, level))


def held_from(steps: Sequence[int] | NDArray[np.integer], values: ArrayLike, least: float) -> int | None:
    """The first of `steps` [S] from which `values` [S] stay at or above `least`; None if the last value is below it."""
    below = np.flatnonzero(np.asarray(values, float) < least)
    first = below[-1] + 1 if len(below) else 0
    return int(steps[first]) if first < len(steps) else None


# === Peaks and layers ===


@dataclass(frozen=True)
class Peak:
    """Where a curve is highest, and where it ends: the step of the peak, the value there, the value at the last step.

    From `earliest` to `latest` lie the steps whose values may be as high, as far as the number of cases can tell.
    """

    step: int
    value: float
    last: float
    earliest: int
    latest: int

    @property
    def decay(self) -> float:
        """How far the curve has come down from its peak by the last step; 0 where the last step is the peak."""
        return self.value - self.last


def peak(steps: Sequence[int] | NDArray[np.integer], values: ArrayLike, n: ArrayLike) -> Peak:
    """The peak of `values` [S], shares of `n` [S] cases, at `steps` [S], S > 0; of equally high points the earliest."""
    values = np.asarray(values, float)
    highest = int(np.argmax(values))
    below, _ = difference_interval(np.full(len(values), values[highest]), values, n)
    near = np.flatnonzero(below <= 0)
    first, last = int(steps[near[0]]), int(steps[near[-1]])
    return Peak(int(steps[highest]), float(values[highest]), float(values[-1]), first, last)


def expected_layer(values: ArrayLike, baseline: float) -> float | None:
    """The layer, 0 to L, at the centre of gravity of what `values` [L + 1] have above the `baseline`.

    The sum of layer x gain over the sum of gains, a gain being max(0, value - baseline); L / 2 where all layers gain
    alike, None where none is above the baseline.
    """
    gains = np.maximum(0, np.asarray(values, float) - baseline)
    total = gains.sum()
    return float(gains @ np.arange(len(gains)) / total) if total > 0 else None


def expected_layer_interval(
    values: ArrayLike, baseline: float, n: ArrayLike, z: float = Z
) -> tuple[float, float] | None:
    """Interval (low, high) of `expected_layer`, `values` [L + 1] being shares of `n` > 0 cases each; None where it is.

    Each layer's gain moves within its interval of Wilson, and the expected layer with it, in proportion to the layer's
    distance from it; the moves are joined as the roots of sums of squares (MOVER; Zou and Donner, 2008), as if the
    layers had been measured on different cases. The baseline counts as known. `z` as in `interval`.
    """
    values = np.asarray(values, float)
    middle = expected_layer(values, baseline)
    if middle is None:
        return None
    low, high = (np.maximum(0, ends - baseline) for ends in interval(values, n, z))
    gains = np.maximum(0, values - baseline)
    pull = (np.arange(len(gains)) - middle) / gains.sum()
    less, more = pull * (low - gains), pull * (high - gains)
    below, above = np.minimum(less, more), np.maximum(less, more)
    last = len(gains) - 1
    return max(0.0, float(middle - np.linalg.norm(below))), min(float(last), float(middle + np.linalg.norm(above)))


# === Attention maps ===


def normalise_rows(weights: ArrayLike) -> NDArray[np.floating]:
    """Averaged maps [..., L, L] with each row divided by its sum: how a position divides its attention.

    The rows of an averaged map do not sum to 1 (see docs/metrics.md), and so cannot be compared with each other; after
    this they can. A row that is 0 throughout stays so.
    """
    weights = np.asarray(weights)
    sums = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(sums == 0, 1, sums)


# === Histories ===


def classify_history(correct: ArrayLike) -> History:
    """The kind of a fact's history, from whether its answer was right at each step, `correct` [S] bool.

    never learned   wrong at every step
    learned         right from some step on, to the last
    forgotten       right over one stretch of steps, wrong before it (if there is a before) and from its end to the last
    oscillating     right over two or more stretches: learned, lost, and learned again, whatever the last answer is

    Every history is of exactly one kind. A stretch may be a single step.
    """
    correct = np.asarray(correct, bool)
    begins = correct & ~np.concatenate([[False], correct[:-1]])
    stretches = int(begins.sum())
    if stretches == 0:
        return "never learned"
    if stretches > 1:
        return "oscillating"
    return "learned" if correct[-1] else "forgotten"


def classify_histories(correct: ArrayLike) -> NDArray[np.object_]:
    """The kinds [F] of many histories at once, `correct` [F, S] bool; see `classify_history`."""
    correct = np.asarray(correct, bool)
    begins = correct.copy()
    begins[:, 1:] &= ~correct[:, :-1]
    stretches = begins.sum(axis=1)
    holds = correct[:, -1:].any(axis=1)  # at the last step
    kinds = np.select([stretches == 0, stretches > 1, holds], ["never learned", "oscillating", "learned"], "forgotten")
    return kinds.astype(object)


def classify_curve(values: ArrayLike, n: ArrayLike, least: float = 0.02) -> Fate:
    """The kind of a relation's history, from its precision at 1 at each step, `values` [S], on `n` [S] facts.

    never learned   at no step does the whole 95 % interval lie at or above `least`
    learned         it never falls significantly below the highest value that it has reached
    declined        it falls, does not come back, and keeps at least half of its highest value
    forgotten       it falls, does not come back, and ends below half of its highest value
    oscillating     it falls and comes back, whatever follows

    It falls where the 95 % interval of the difference from its highest value so far lies above 0. It comes back where
    that interval holds 0 again and it has risen significantly from its lowest value since.
    """
    values, n = np.asarray(values, float), np.broadcast_to(n, np.shape(values))
    if not len(values):
        return "never learned"
    low, high = interval(values, n)
    if low.max() < least:
        return "never learned"

    def exceeds(first: int, second: int) -> bool:
        """Whether the value at one index surely lies above that at another (see `difference_interval`)."""
        below = math.hypot(values[first] - low[first], high[second] - values[second])
        return values[first] - values[second] > below

    highest, lowest = 0, None  # indices; the latter since it fell, None: it has not
    for i in range(len(values)):
        if lowest is None:
            highest = max(highest, i, key=values.__getitem__)
            lowest = i if exceeds(highest, i) else None
        else:
            lowest = min(lowest, i, key=values.__getitem__)
            if exceeds(i, lowest) and not exceeds(highest, i):
                return "oscillating"
    if lowest is None:
        return "learned"
    return "forgotten" if values[-1] < values[highest] / 2 else "declined"
