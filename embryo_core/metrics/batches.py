"""Batches without padding: sequences of equal length together, one batch on each core."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def compute(lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], None], tokens: int) -> None:
    """Call `work`, which stores its results itself, with the indices of each batch in `cores` threads."""
    for _ in compute_in_order(lengths, cores, work, tokens):
        pass


def compute_in_order(
    lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], T], tokens: int
) -> Iterator[tuple[np.ndarray, T]]:
    """Yield the indices of each batch and what `work` returned for them, always in the same order."""
    pool = ThreadPoolExecutor(cores)
    indices = list(of_one_length(lengths, tokens))
    try:
        yield from zip(indices, pool.map(work, indices), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def of_one_length(lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Yield indices [b] of sequences of equal length, longest first; b * length is at most `tokens`, b at least 1."""
    order = np.argsort(-lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(same):
            size = max(1, tokens // int(lengths[same[0]]))
            yield from (same[start : start + size] for start in range(0, len(same), size))
