"""Tokenized sequences of a task, encoded once for all checkpoints and stored without padding, and padded batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.tokenizers.encodings import Frame
from embryo_core.tokenizers.tokenizer import Tokenizer

POOL_SIZE = 64  # batches per pool sorted by length: larger pools need less padding, smaller ones mix examples better


@dataclass(frozen=True, eq=False)
class Sequences:
    """n sequences of pieces, concatenated in one array; the second segment of sequence i begins at piece second[i]."""

    ids: np.ndarray  # [all pieces] int32
    ends: np.ndarray  # [n + 1] int64: sequence i is ids[ends[i] : ends[i + 1]]
    second: np.ndarray  # [n] int64: pieces in the first segment
    pad_id: int | None

    def __len__(self) -> int:
        return len(self.second)

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of pieces in each sequence [n]."""
        return np.diff(self.ends)

    def batch(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ids, segments and attention mask, each [B, L] int64, of these rows, padded to the longest."""
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max())
        mask = columns < lengths[:, None]
        ids = np.full(mask.shape, self.pad_id or 0, np.int64)
        ids[mask] = np.concatenate([self.ids[self.ends[i] : self.ends[i + 1]] for i in rows])
        segments = (columns >= self.second[rows][:, None]) & mask
        return ids, segments.astype(np.int64), mask.astype(np.int64)


def encode(texts: Sequence[tuple[str, ...]], tokenizer: Tokenizer, length: int) -> Sequences:
    """Encode each text or pair in at most `length` pieces; in a pair the longer text is truncated first."""
    segments = [[encoding.ids for encoding in tokenizer.encode_texts(column)] for column in zip(*texts, strict=True)]
    frame = tokenizer.frame(len(segments))
    room = length - sum(map(len, frame.ids))
    truncated = [_truncate(list(pieces), room) for pieces in zip(*segments, strict=True)]
    return join(truncated, frame, tokenizer.pad_id)


def join(texts: Sequence[Sequence[np.ndarray]], frame: Frame, pad_id: int | None) -> Sequences:
    """Join one or two texts' pieces per sequence, with the special tokens of the frame around and between them."""
    prefix, *suffixes = frame.ids
    ids = [
        np.concatenate([prefix, *(array for pair in zip(pieces, suffixes, strict=True) for array in pair)])
        for pieces in texts
    ]
    ends = np.cumsum([0, *map(len, ids)])
    if frame.first is None:
        second = np.diff(ends)
    else:
        second = np.array([len(prefix) + len(pieces[0]) + frame.first for pieces in texts])
    return Sequences(np.concatenate(ids), ends, second, pad_id)


def _truncate(texts: list[np.ndarray], room: int) -> list[np.ndarray]:
    """Truncate one or two texts to `room` pieces in total; of two, the longer one is truncated first."""
    if len(texts) == 1:
        return [texts[0][:room]]
    first_length = min(len(texts[0]), max(room - len(texts[1]), room - room // 2))
    return [texts[0][:first_length], texts[1][: room - first_length]]


def training_batches(lengths: np.ndarray, size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield batches of rows forever, in random order; each row occurs once per epoch, with rows of similar length."""
    while True:
        order = random.permutation(len(lengths))
        batches = []
        for start in range(0, len(order), POOL_SIZE * size):
            pool = order[start : start + POOL_SIZE * size]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        for i in random.permutation(len(batches)):
            yield batches[i]


def batches_by_length(lengths: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield every row once, in batches of similar length."""
    order = np.argsort(lengths, kind="stable")
    return (order[i : i + size] for i in range(0, len(order), size))
