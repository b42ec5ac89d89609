"""Batches without padding: sequences of one length together, as many as fill a budget of tokens."""

from collections.abc import Iterator

import numpy as np

# A batch's activations should stay within the processor's cache; see benchmarks/evaluation.py.
TOKENS = 2048


def of_one_length(lengths: np.ndarray, tokens: int = TOKENS) -> Iterator[np.ndarray]:
    """Indices [b] of sequences of equal length, b * length at most `tokens` (but b at least 1), shortest first."""
    order = np.argsort(lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(same):
            size = max(1, tokens // int(lengths[same[0]]))
            yield from (same[start : start + size] for start in range(0, len(same), size))
