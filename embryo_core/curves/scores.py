"""Statistics of stored results: rescaled and smoothed curves, intervals, onsets, peaks, histories and maps.

Scores are stored raw with their n; these pure functions are applied on reading (Sections 3, 4 and 6, Figures 1 to 11).
Values are in the order of steps. docs/metrics.md gives the reasons for the rules.
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

POSITIONS = ("same", "previous", "next", "first")  # relative positions in `position_weights` (Figure 4)
HISTORIES: tuple[History, ...] = ("learned", "oscillating", "forgotten", "never learned")
Z = 1.959963984540054  # two-sided 95 % point of the normal distribution
MIN_PRECISION_AT_1 = 0.02  # least precision at 1 of a relation that counts as learned


# === Curves ===


def rescale(values: ArrayLike, last: float) -> Floats:
    """Divide values [S] of a curve, or ends of its intervals, by its `last` value (Figure 1); all NaN if it is 0."""
    values = np.asarray(values, float)
    return values / last if last else np.full(len(values), np.nan)


def smooth(values: ArrayLike, window: int = 3) -> Floats:
    """Average each value [S] with its neighbours within an odd `window`, which is cut off at the ends.

    Use it for display only. Neighbours are adjacent points, however far apart their steps are. Raises ValueError for an
    even window.
    """
    if window < 1 or window % 2 == 0:
        raise ValueError(f"The window is an odd number of points. Received: {window}.")
    values = np.asarray(values, float)
    if not len(values):
        return values
    weights = np.ones(window)
    inner = slice(window // 2, window // 2 + len(values))
    return np.convolve(values, weights)[inner] / np.convolve(np.ones_like(values), weights)[inner]


def interval(value: ArrayLike, n: ArrayLike, z: float = Z) -> tuple[Floats, Floats]:
    """Compute Wilson's score interval (low, high) of a share `value` in [0, 1] of `n` > 0 cases; numbers or arrays.

    Unlike value +- 1.96 standard errors, it stays within [0, 1], and its width at 0 and at 1 is positive. `z` is the
    point of the normal distribution that sets the confidence, 95 % by default.
    """
    value, n = np.asarray(value, float), np.asarray(n, float)
    middle = value + z**2 / (2 * n)
    half_width = z * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return np.clip((middle - half_width) / scale, 0, value), np.clip((middle + half_width) / scale, value, 1)


def difference_interval(
    first: ArrayLike, second: ArrayLike, n: ArrayLike, z: float = Z, n_second: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Compute Newcombe's interval (low, high) of first - second, two shares of `n` > 0 cases each; numbers or arrays.

    `n_second` is the number of cases of the second share, if it differs; `z` is as in `interval`. This is method 10 of
    Newcombe (1998), which combines the two Wilson intervals as if the cases were independent. It is wider than needed
    for shares of the same cases, which usually rise and fall together.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    first_low, first_high = interval(first, n, z)
    second_low, second_high = interval(second, n if n_second is None else n_second, z)
    below = np.hypot(first - first_low, second_high - second)
    above = np.hypot(first_high - first, second - second_low)
    return first - second - below, first - second + above


@dataclass(frozen=True)
class Onset:
    """The step from which a curve stays at or above a share of its last value, with its interval of steps."""

    step: int
    earliest: int
    latest: int | None  # None if even the last value is not significantly above the share


def onset(
    steps: Sequence[int] | NDArray[np.integer],
    values: ArrayLike,
    n: ArrayLike,
    share: float = 0.5,
    floor: float = 0.0,
) -> Onset | None:
    """Return the onset of `values` [S] at `steps` [S], shares of `n` [S] cases; None if the last is not over `floor`.

    The curve rises from `floor`, and the level is `share` of the way from there to the last value. `earliest` is the
    first step from which no 95 % interval is entirely below the level; `latest` is the first from which none extends
    below it. The onset is the first step from `earliest` on whose value is at or above the level. A later dip whose
    interval still reaches the level may be chance, and does not move the onset.
    """
    values = np.asarray(values, float)
    if not len(values) or values[-1] <= floor:
        return None
    level, (low, high) = floor + share * (values[-1] - floor), interval(values, n)
    earliest = held_from(steps, high, level)
    assert earliest is not None  # the last interval contains the last value, which is at or above the level
    is_reached = (np.asarray(steps) >= earliest) & (values >= level)
    return Onset(int(steps[int(np.argmax(is_reached))]), earliest, held_from(steps, low, level))


def held_from(steps: Sequence[int] | NDArray[np.integer], values: ArrayLike, threshold: float) -> int | None:
    """Return the first of `steps` [S] from which `values` [S] stay at or above a threshold; None if the last is not.

    A value that is NaN, such as a bound that one case does not have, is not at or above it.
    """
    below = np.flatnonzero(~(np.asarray(values, float) >= threshold))
    first = below[-1] + 1 if len(below) else 0
    return int(steps[first]) if first < len(steps) else None


# === Peaks and layers ===


@dataclass(frozen=True)
class Peak:
    """The highest point of a curve, with its interval of steps (`earliest`, `latest`), and the last value."""

    step: int
    value: float
    last: float
    earliest: int
    latest: int

    @property
    def decay(self) -> float:
        """Return the fall of the curve from its peak to the last step; 0 if the last step is the peak."""
        return self.value - self.last


def peak(steps: Sequence[int] | NDArray[np.integer], values: ArrayLike, n: ArrayLike) -> Peak:
    """Return the peak of `values` [S], shares of `n` [S] cases, at `steps` [S], S > 0; the earliest of equal values.

    Its interval spans the steps whose values are not significantly below it.
    """
    values = np.asarray(values, float)
    n, highest = np.broadcast_to(n, values.shape), int(np.argmax(values))
    below, _ = difference_interval(values[highest], values, n[highest], n_second=n)
    ties = np.flatnonzero(below <= 0)
    first, last = int(steps[ties[0]]), int(steps[ties[-1]])
    return Peak(int(steps[highest]), float(values[highest]), float(values[-1]), first, last)


def expected_layer(values: ArrayLike, baseline: float) -> float | None:
    """Return the layer, 0 to L, at the centre of gravity of the gains of `values` [L + 1] over the `baseline`.

    That is the sum of layer x gain divided by the sum of gains, where a gain is max(0, value - baseline): L / 2 if all
    gains are equal, None if no value is above the baseline.
    """
    gains = np.maximum(0, np.asarray(values, float) - baseline)
    total = gains.sum()
    return float(gains @ np.arange(len(gains)) / total) if total > 0 else None


def expected_layer_interval(values: ArrayLike, baseline: float, n: ArrayLike) -> tuple[float, float] | None:
    """Compute the interval (low, high) of `expected_layer` for `values` [L + 1], shares of `n` > 0 cases each.

    It is None if the expected layer is. Each layer's gain moves within its Wilson interval, and moves the expected
    layer in proportion to the layer's distance from it; the moves are combined as roots of sums of squares (MOVER; Zou
    and Donner, 2008), as if the layers had been measured on different cases. The baseline counts as known.
    """
    values = np.asarray(values, float)
    middle = expected_layer(values, baseline)
    if middle is None:
        return None
    low, high = (np.maximum(0, ends - baseline) for ends in interval(values, n))
    gains = np.maximum(0, values - baseline)
    weights = (np.arange(len(gains)) - middle) / gains.sum()
    low_moves, high_moves = weights * (low - gains), weights * (high - gains)
    below, above = np.minimum(low_moves, high_moves), np.maximum(low_moves, high_moves)
    last = len(gains) - 1
    return max(0.0, float(middle - np.linalg.norm(below))), min(float(last), float(middle + np.linalg.norm(above)))


# === Attention maps ===


def normalise_rows(weights: ArrayLike) -> NDArray[np.floating]:
    """Divide each row of averaged maps [..., L, L] by its sum, which shows how a position divides its attention.

    The rows of an averaged map do not sum to 1 (docs/metrics.md), so they cannot be compared. Zeros stay zero.
    """
    weights = np.asarray(weights)
    sums = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(sums == 0, 1, sums)


def position_weights(maps: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the mean weight [..., 4] on each of POSITIONS in maps A [..., L, L], L at least 2.

    Each is a mean over the rows i that have the position: A[i, i], A[i, i-1], A[i, i+1] and A[i, 0]. Row 0 is left out
    of "first", since its first position is itself.
    """
    diagonals = [np.diagonal(maps, offset, -2, -1) for offset in (0, -1, 1)]
    means = [entries.mean(axis=-1, dtype=np.float64) for entries in (*diagonals, maps[..., 1:, 0])]
    return np.stack(means, axis=-1).astype(np.float32)


# === Histories ===


def classify_histories(correct: ArrayLike) -> NDArray[np.object_]:
    """Classify the history of each fact by whether its answer was right at each step, `correct` [F, S] bool.

    never learned   wrong at every step
    learned         right from some step on, to the last
    forgotten       right over one stretch of steps that ends before the last step
    oscillating     right over two or more stretches: learned, lost, and learned again, whatever the last answer is

    Every history is of exactly one kind. A stretch may be a single step.
    """
    correct = np.asarray(correct, bool)
    is_start = correct.copy()
    is_start[:, 1:] &= ~correct[:, :-1]
    stretches = is_start.sum(axis=1)
    is_last_right = correct[:, -1:].any(axis=1)  # whether the answer at the last step is right
    kinds = np.select(
        [stretches == 0, stretches > 1, is_last_right], ["never learned", "oscillating", "learned"], "forgotten"
    )
    return kinds.astype(object)


def classify_curve(values: ArrayLike, n: ArrayLike) -> Fate:
    """Classify a relation's history by its precision at 1 at each step, `values` [S], on `n` [S] facts.

    never learned   the 95 % interval is at no step entirely at or above MIN_PRECISION_AT_1
    learned         it never falls significantly below the highest value that it has reached
    declined        it falls, does not come back, and keeps at least half of its highest value
    forgotten       it falls, does not come back, and ends below half of its highest value
    oscillating     it falls and comes back, whatever follows

    It falls if the 95 % interval of the difference from its highest value so far is above 0. It comes back if that
    interval contains 0 again and it has risen significantly from its lowest value since.
    """
    values, n = np.asarray(values, float), np.broadcast_to(n, np.shape(values))
    if not len(values):
        return "never learned"
    low, high = interval(values, n)
    if low.max() < MIN_PRECISION_AT_1:
        return "never learned"

    def exceeds(first: int, second: int) -> bool:
        """Return whether the value at one index is significantly above that at another (see `difference_interval`)."""
        below = math.hypot(values[first] - low[first], high[second] - values[second])
        return values[first] - values[second] > below

    highest, lowest = 0, None  # indices of the values; `lowest` is None until the curve falls
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
