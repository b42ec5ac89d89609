"""What tokenizing returns: pieces and their words or characters, and the special tokens around a text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers


@dataclass(frozen=True)
class Encoding:
    """The pieces of a sequence of words, without special tokens."""

    ids: np.ndarray  # [pieces] int64
    word_of_piece: np.ndarray  # [pieces] int64: index of the (first) word of each piece, never decreasing
    spans: np.ndarray  # [words, 2] int64: the first piece of each word, and the end after its last piece

    @classmethod
    def of_words(cls, pieces: Sequence[Sequence[int]]) -> "Encoding":
        """Join the ids of the pieces of each word."""
        lengths = np.array([len(ids) for ids in pieces], np.int64)
        ends = lengths.cumsum()
        ids = np.array([i for ids in pieces for i in ids], np.int64)
        return cls(ids, np.repeat(np.arange(len(pieces)), lengths), np.stack([ends - lengths, ends], axis=1))

    @classmethod
    def of_text(cls, encoding: tokenizers.Encoding, ends: np.ndarray) -> "Encoding":
        """Return the pieces of a running text whose words end before the characters `ends`.

        A word has every piece with one of its characters, so a piece across two words belongs to both.
        """
        starts, stops = np.maximum.accumulate(np.array(encoding.offsets, np.int64).reshape(-1, 2)).T
        stops = np.maximum(stops, starts + 1)  # a piece that only marks the start of a text has no characters
        first = np.searchsorted(stops, [0, *ends[:-1]], side="right")
        last = np.maximum(np.searchsorted(starts, ends, side="left"), first)
        word_of_piece = np.minimum(np.searchsorted(ends, starts, side="right"), len(ends) - 1)
        return cls(np.array(encoding.ids, np.int64), word_of_piece, np.stack([first, last], axis=1))

    @classmethod
    def from_starts(cls, ids: Sequence[int], starts: Sequence[bool]) -> "Encoding":
        """Return pieces of which `starts` says whether each begins a word; the first one does."""
        bounds = np.append(np.flatnonzero(starts), len(ids)).astype(np.int64)
        words = np.cumsum(starts, dtype=np.int64) - 1
        return cls(np.array(ids, np.int64), words, np.stack([bounds[:-1], bounds[1:]], axis=1))


@dataclass(frozen=True)
class Pieces:
    """The pieces of a running text, without special tokens."""

    ids: np.ndarray  # [pieces] int32
    characters: np.ndarray  # [pieces, 2] int32: start and end of each in the text, including spaces before a word


@dataclass(frozen=True)
class Frame:
    """Special tokens around a text or a pair: ids (int32) before the first text, after it, and after the second."""

    ids: tuple[np.ndarray, ...]
    first: int | None  # how many ids after the first text belong to its segment; None: there is one segment

    @classmethod
    def of(cls, encoding: tokenizers.Encoding, texts: int, begin: np.ndarray, end: np.ndarray) -> "Frame":
        """Return the frame in the encoding of one text or a pair of `texts`.

        If it does not begin and end with the ids `begin` and `end`, the frame is begin, first, end, second, end.
        """
        special_positions: list[list[int]] = [[] for _ in range(texts + 1)]  # ids before, between and after the texts
        texts_before = 0
        for i, owner in enumerate(encoding.sequence_ids):
            if owner is None:
                special_positions[texts_before].append(i)
            else:
                texts_before = owner + 1
        ids = tuple(np.array([encoding.ids[i] for i in positions], np.int32) for positions in special_positions)
        if not (np.array_equal(ids[0], begin) and np.array_equal(ids[-1], end)):
            begin, end = begin.astype(np.int32), end.astype(np.int32)
            return cls((begin, *[end] * texts), None if texts == 1 else len(end))
        if texts == 1 or encoding.type_ids[encoding.sequence_ids.index(1)] == 0:
            return cls(ids, None)
        return cls(ids, sum(encoding.type_ids[i] == 0 for i in special_positions[1]))
