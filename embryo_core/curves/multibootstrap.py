"""The multi-bootstrap: intervals of the difference between two designs, over seeds and cases together.

Sellam et al. (2022), "The MultiBERTs: BERT Reproductions for Robustness Analysis", Section 4: seeds and cases are
resampled with replacement. All runs share the cases; the seeds of two designs are not paired.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from embryo_core.curves.scores import Floats

DRAW_COUNT = 1000  # bootstrap samples
CHUNK_SIZE = 2**18  # numbers drawn at once
PERCENTILES = (2.5, 97.5)  # percentiles of a 95 % interval


def draw_cases(right: ArrayLike) -> Floats:
    """Return the shares [DRAW_COUNT, S] of right answers on resampled cases, the same for all runs.

    `right` [S, N] is 1 where a run's answer to a case is right, 0 where it is wrong, and 0.5 for a tie.
    """
    right = np.asarray(right, float)
    n = right.shape[1]
    return np.concatenate([counts @ right.T / n for counts in resampled_counts(n, DRAW_COUNT, CHUNK_SIZE, seed=0)])


def resampled_counts(n: int, draws: int, at_once: int, seed: int) -> Iterator[Floats]:
    """Yield how often each of n cases is in each of B draws, [B, n]; B * n is at most `at_once`, or B is 1.

    A draw has n cases, with replacement; B is the number of draws in a batch.
    """
    rng, batch_size = np.random.default_rng(seed), max(1, at_once // n)
    for start in range(0, draws, batch_size):
        row_count = min(batch_size, draws - start)
        indices = rng.integers(n, size=(row_count, n)) + n * np.arange(row_count)[:, None]
        yield np.bincount(indices.ravel(), minlength=row_count * n).reshape(row_count, n).astype(float)


def draw_shares(shares: ArrayLike, n: ArrayLike) -> Floats:
    """Return shares [DRAW_COUNT, S] from binomial draws with `shares` [S] of `n` [S] cases, if cases are not stored."""
    shares, n = np.asarray(shares, float), np.asarray(n, int)
    return np.random.default_rng(0).binomial(n, np.clip(shares, 0, 1), size=(DRAW_COUNT, len(n))) / n


def design_difference_interval(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the 95 % interval (low, high) of the second design's mean over seeds minus the first design's.

    `first` [DRAW_COUNT, S] and `second` [DRAW_COUNT, T] are the shares of each seed on drawn cases. A single seed is
    always drawn, so the interval then does not cover the variation between seeds.
    """
    rng = np.random.default_rng(1)
    low, high = np.percentile(_draw_seeds(second, rng) - _draw_seeds(first, rng), PERCENTILES)
    return float(low), float(high)


def _draw_seeds(shares: Floats, rng: np.random.Generator) -> Floats:
    """Return the mean [DRAW_COUNT] over seeds that are resampled for each draw of cases."""
    seed_indices = rng.integers(shares.shape[1], size=shares.shape)
    return np.take_along_axis(shares, seed_indices, axis=1).mean(axis=1)
