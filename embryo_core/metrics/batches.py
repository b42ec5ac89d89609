"""Batches without padding: sequences of one length together, and as many batches at once as there are cores."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def compute(lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], None], tokens: int) -> None:
    """Call `work` with the indices of each batch of sequences, in `cores` threads; it stores what it finds itself."""
    for _ in compute_in_order(lengths, cores, work, tokens):
        pass


def compute_in_order(
    lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], T], tokens: int
) -> Iterator[tuple[np.ndarray, T]]:
    """The indices of each batch and what `work` returned for them; batches come in the same order at every call."""
    pool = ThreadPoolExecutor(cores)
    indices = list(of_one_length(lengths, tokens))
    try:
        yield from zip(indices, pool.map(work, indices), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def of_one_length(lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Indices [b] of sequences of equal length, b * length at most `tokens` (but b at least 1), longest first."""
    order = np.argsort(-lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(same):
            size = max(1, tokens // int(lengths[same[0]]))
            yield from (same[start : start + size] for start in range(0, len(same), size))
