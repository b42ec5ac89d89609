"""Steps on a linear or log axis: their positions, and log-spaced selections."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from embryo_core.curves.scores import Floats

Scale = Literal["linear", "log"]
SCALES: tuple[Scale, ...] = ("linear", "log")
STEP_0 = 0.5  # the value of step 0 on a log axis: one halving before step 1


def axis_values(steps: Sequence[int] | NDArray[np.integer], scale: Scale) -> Floats:
    """Return the values [S] of `steps` [S] on an axis; step 0 is at STEP_0 on a log axis."""
    values = np.asarray(steps, float)
    return np.where(values == 0, STEP_0, values) if scale == "log" else values


def axis_shares(steps: Sequence[int] | NDArray[np.integer], scale: Scale) -> Floats:
    """Return the positions of ascending `steps` [S], S > 0, on an axis from the first (0) to the last (1)."""
    values = axis_values(steps, scale)
    if scale == "log":
        values = np.log(values)
    return (values - values[0]) / ((values[-1] - values[0]) or 1.0)


def log_spaced(steps: Sequence[int] | NDArray[np.integer], count: int) -> list[int]:
    """Select up to `count` >= 2 of ascending steps: the first, the last, and steps evenly between on a log axis."""
    step_array = np.asarray(steps)
    if len(step_array) <= count:
        return step_array.tolist()
    first, second, last = step_array[[0, 1, -1]]
    # step 0 has no logarithm; the others are spaced from the second step
    targets = np.geomspace(first, last, count) if first else np.array([0, *np.geomspace(last, second, count - 1)[::-1]])
    indices = np.searchsorted(step_array, targets).clip(1, len(step_array) - 1)
    nearest = indices - (targets - step_array[indices - 1] < step_array[indices] - targets)
    return step_array[np.unique(np.maximum(nearest, np.arange(count)))].tolist()
