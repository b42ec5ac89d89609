"""Batches without padding: sequences of equal length, with one batch on each core; texts are tokenized in chunks."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Pieces, Tokenizer

T = TypeVar("T")
TEXTS_AT_ONCE = 5000  # texts per chunk: their offsets take several times the memory of ids


def compute(
    model: "Model",
    sequences: Sequence[np.ndarray],
    work: Callable[[np.ndarray, np.ndarray], None],
    item_sequences: np.ndarray | None = None,
    tokens: int | None = None,
) -> None:
    """Call `work` with indices [b] and ids [b, L] of each batch, on all cores; `work` stores its results.

    A batch has at most `tokens` of `sequences`, ids [L] each. `item_sequences` [n] gives the index of the sequence of
    each of n items; by default, every sequence is an item.
    """
    item_sequences = np.arange(len(sequences)) if item_sequences is None else item_sequences
    lengths = np.array([len(each) for each in sequences], np.int64)[item_sequences]

    def stack(batch: np.ndarray) -> None:
        work(batch, np.stack([sequences[int(i)] for i in item_sequences[batch]]))

    for _ in compute_in_order(lengths, model.parallel_passes, stack, tokens or model.max_batch_tokens):
        pass


def compute_in_order(
    lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], T], tokens: int
) -> Iterator[tuple[np.ndarray, T]]:
    """Yield the indices of each batch and the result of `work` for them, always in the same order."""
    pool = ThreadPoolExecutor(cores)
    indices = list(equal_length_batches(lengths, tokens))
    try:
        yield from zip(indices, pool.map(work, indices), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def equal_length_batches(lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Yield indices [b] of sequences of equal length, longest first; b * length is at most `tokens`, b at least 1."""
    order = np.argsort(-lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(same):
            size = max(1, tokens // int(lengths[same[0]]))
            yield from (same[start : start + size] for start in range(0, len(same), size))


def encode_texts(tokenizer: "Tokenizer", texts: Sequence[str]) -> Iterator["Pieces"]:
    """Yield the pieces of each text, tokenized in chunks."""
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        yield from tokenizer.encode_texts(texts[start : start + TEXTS_AT_ONCE])
