"""The multi-bootstrap: intervals over seeds and cases together, of the difference between two designs.

Sellam et al. (2022), "The MultiBERTs: BERT Reproductions for Robustness Analysis", Section 4: seeds are drawn again
with replacement, and so are cases, which all runs share. Seeds of two designs are not paired.
"""

import numpy as np
from numpy.typing import ArrayLike

from embryo_core.curves.scores import Floats

DRAWS = 1000
CHUNK = 2**18  # numbers drawn at once
CONFIDENCE = (2.5, 97.5)  # percentiles of a 95 % interval


def draw_cases(right: ArrayLike) -> Floats:
    """Return the shares [DRAWS, S] of right answers on cases drawn again, the same cases for all runs.

    `right` [S, N] is 1 where a run's answer to a case is right, 0 where it is wrong, and 0.5 for a tie.
    """
    right = np.asarray(right, float)
    cases, random = right.shape[1], np.random.default_rng(0)
    size = max(1, CHUNK // cases)
    shares = []
    for begin in range(0, DRAWS, size):
        rows = min(size, DRAWS - begin)
        drawn = random.integers(cases, size=(rows, cases)) + cases * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * cases).reshape(rows, cases)
        shares.append(counts @ right.T / cases)
    return np.concatenate(shares)


def draw_counts(shares: ArrayLike, n: ArrayLike) -> Floats:
    """Return shares [DRAWS, S] drawn from binomials of `shares` [S] of `n` [S] cases, where no case was kept."""
    shares, n = np.asarray(shares, float), np.asarray(n, int)
    return np.random.default_rng(0).binomial(n, np.clip(shares, 0, 1), size=(DRAWS, len(n))) / n


def difference_of_seeds(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of the mean over the second design's seeds minus that of the first.

    `first` [DRAWS, S] and `second` [DRAWS, T] are the shares of each seed on drawn cases. A single seed is drawn every
    time, so that the interval then says nothing about other seeds of its design.
    """
    random = np.random.default_rng(1)
    low, high = np.percentile(_draw_seeds(second, random) - _draw_seeds(first, random), CONFIDENCE)
    return float(low), float(high)


def _draw_seeds(shares: Floats, random: np.random.Generator) -> Floats:
    """Return the mean [DRAWS] over seeds that are drawn again for each draw of cases."""
    drawn = random.integers(shares.shape[1], size=shares.shape)
    return np.take_along_axis(shares, drawn, axis=1).mean(axis=1)
