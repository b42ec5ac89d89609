"""Log probabilities of pieces in sentences: of masked pieces by an encoder, of next pieces by a decoder.

Batches have sentences of equal length, and the model's head is applied only at the scored positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

MAX_LOGITS = 2**24  # logits of a decoder's batch, which may need them at every position


@dataclass(frozen=True, eq=False)
class EncodedSentence:
    """A sentence of P pieces: ids [L], special tokens included, and the index of each piece's word [P]."""

    ids: np.ndarray
    words: np.ndarray


def score_sentences(model: "Model", sentences: Sequence[EncodedSentence], whole_words: bool) -> list[np.ndarray]:
    """Return the log probability (nats) of each piece of each sentence, float64 [P] each.

    An encoder predicts a masked piece; if `whole_words`, the later pieces of its word are masked too. A decoder
    predicts a piece from the pieces before it; if no token begins a text, the first piece has the score 0.
    """
    piece_counts = np.array([len(encoded.words) for encoded in sentences])
    piece_index = np.concatenate([np.arange(count) for count in piece_counts])
    end = piece_index + 1
    if whole_words:
        end = np.concatenate([np.searchsorted(encoded.words, encoded.words, side="right") for encoded in sentences])
    sentence = np.repeat(np.arange(len(sentences)), piece_counts)
    scores = score_pieces(model, [encoded.ids for encoded in sentences], sentence, piece_index, end)
    return np.split(scores, np.cumsum(piece_counts)[:-1])


def score_pieces(
    model: "Model", sentences: Sequence[np.ndarray], sentence: np.ndarray, piece_index: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the log probability (nats), float64 [n], of n pieces in `sentences`, ids [L] each (see `score_sentences`).

    Piece i is at `piece_index[i]`, counted from 0 after the special tokens, of `sentence[i]`; pieces are grouped by
    sentence. An encoder also masks the pieces after it up to `end[i]`, exclusive.
    """
    if "masked_words" in model.capabilities:
        return _score_masked(model, sentences, sentence, piece_index, end)
    return _score_from_left(model, sentences, sentence, piece_index)


def _score_masked(
    model: "Model", sentences: Sequence[np.ndarray], sentence: np.ndarray, piece_index: np.ndarray, end: np.ndarray
) -> np.ndarray:
    scores = np.zeros(len(piece_index))
    first = len(model.tokenizer.begin)

    def score(batch: np.ndarray, ids: np.ndarray) -> None:
        rows, columns, positions = np.arange(len(batch)), first + piece_index[batch], np.arange(ids.shape[1])
        is_masked = (positions >= columns[:, None]) & (positions < first + end[batch, None])
        masked_ids = np.where(is_masked, model.tokenizer.mask_id, ids)
        logits = model.mlm_logits(masked_ids, rows, columns)  # [b, V]
        scores[batch] = _log_probabilities(logits, ids[rows, columns])

    batches.map_batches(model, sentences, score, sentence)
    return scores


def _score_from_left(
    model: "Model", sentences: Sequence[np.ndarray], sentence: np.ndarray, piece_index: np.ndarray
) -> np.ndarray:
    scores = np.zeros(len(piece_index))
    columns = len(model.tokenizer.begin) + piece_index
    offsets = np.searchsorted(sentence, np.arange(len(sentences) + 1))  # index of each sentence's first piece

    def score(batch: np.ndarray, ids: np.ndarray) -> None:
        indices = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in batch])
        indices = indices[columns[indices] > 0]  # nothing predicts the first token of a text
        rows = np.searchsorted(batch, sentence[indices])  # the indices of a batch ascend
        logits = model.next_logits(ids, rows, columns[indices] - 1)  # [p, V]
        scores[indices] = _log_probabilities(logits, ids[rows, columns[indices]])

    batches.map_batches(
        model, sentences, score, tokens=min(model.max_batch_tokens, MAX_LOGITS // model.vocabulary_size)
    )
    return scores


def _log_probabilities(logits: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Return the log probabilities [n] of `pieces` [n], one for each row of logits [n, V]."""
    top = logits.max(axis=1, keepdims=True)
    scores = np.take_along_axis(logits, pieces[:, None], axis=1) - top
    return scores[:, 0].astype(np.float64) - np.log(np.exp(logits - top).sum(axis=1, dtype=np.float64))
