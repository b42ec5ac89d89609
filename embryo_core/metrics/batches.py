"""Batches of sequences of equal length, which need no padding, one on each core; texts are tokenized in chunks."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.encodings import Pieces
    from embryo_core.tokenizers.tokenizer import Tokenizer

T = TypeVar("T")
TEXTS_PER_CHUNK = 5000  # texts tokenized per chunk: character offsets take several times the memory of ids


def map_batches(
    model: "Model",
    sequences: Sequence[np.ndarray],
    work: Callable[[np.ndarray, np.ndarray], None],
    item_sequences: np.ndarray | None = None,
    tokens: int | None = None,
) -> None:
    """Call `work` on all cores with the item indices [b] and ids [b, L] of each batch; `work` stores its own results.

    `sequences` are arrays of ids [L]. `item_sequences` [n] has the index of the sequence of each of n items; by
    default, every sequence is one item. A batch has at most `tokens` tokens, by default `model.max_batch_tokens`.
    """
    item_sequences = np.arange(len(sequences)) if item_sequences is None else item_sequences
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)[item_sequences]

    def stack(batch: np.ndarray) -> None:
        work(batch, np.stack([sequences[int(i)] for i in item_sequences[batch]]))

    for _ in compute_in_order(lengths, model.parallel_passes, stack, tokens or model.max_batch_tokens):
        pass


def compute_in_order(
    lengths: np.ndarray, cores: int, work: Callable[[np.ndarray], T], tokens: int
) -> Iterator[tuple[np.ndarray, T]]:
    """Yield the indices [b] of each batch and the result of `work` on them, always in the same order."""
    pool = ThreadPoolExecutor(cores)
    indices = list(equal_length_batches(lengths, tokens))
    try:
        yield from zip(indices, pool.map(work, indices), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def equal_length_batches(lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Yield indices [b] of sequences of equal length, longest first; b * length is at most `tokens` unless b is 1."""
    order = np.argsort(-lengths, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if len(group):
            size = max(1, tokens // int(lengths[group[0]]))
            yield from (group[start : start + size] for start in range(0, len(group), size))


def encode_texts(tokenizer: "Tokenizer", texts: Sequence[str]) -> Iterator["Pieces"]:
    """Yield the pieces of each text; texts are tokenized in chunks of TEXTS_PER_CHUNK."""
    for start in range(0, len(texts), TEXTS_PER_CHUNK):
        yield from tokenizer.encode_texts(texts[start : start + TEXTS_PER_CHUNK])
