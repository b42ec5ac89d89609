"""Batches without padding: sequences of one length together, and as many batches at once as there are cores."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

TOKENS = 1024  # a batch's activations then stay within a core's cache


def compute(lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], None], tokens: int = TOKENS) -> None:
    """Call `work` with the indices of each batch of sequences, in `cores` threads; it stores what it finds itself."""
    pool = ThreadPoolExecutor(cores)
    try:
        for _ in pool.map(work, of_one_length(lengths, tokens)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def of_one_length(lengths: np.ndarray, tokens: int = TOKENS) -> Iterator[np.ndarray]:
    """Indices [b] of sequences of equal length, b * length at most `tokens` (but b at least 1), longest first."""
    order = np.argsort(-lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(same):
            size = max(1, tokens // int(lengths[same[0]]))
            yield from (same[start : start + size] for start in range(0, len(same), size))
