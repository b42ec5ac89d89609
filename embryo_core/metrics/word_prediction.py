"""Metrics of predicted words: reconstruction, mask prediction, and next words (Section 3, Figures 1, 7 and 8).

Next-word prediction replaces mask prediction for decoders. The two are never merged into one measure, since mask
prediction also reads the words after the mask.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.treebank_words import TreebankWords, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


class PieceMetric(WordMetric):
    """Base of the metrics that predict all pieces of a sentence in one pass."""

    @abstractmethod
    def best_pieces(self, model: "Model", ids: np.ndarray) -> np.ndarray:
        """Return the best piece [b, L] at each position of ids [b, L]."""

    def judge(self, model: "Model", data: TreebankWords) -> np.ndarray:
        offsets = np.cumsum([0, *map(len, data.sentences)])  # start of each sentence in the array of all pieces
        right = np.zeros(offsets[-1], bool)

        def judge_batch(batch: np.ndarray, ids: np.ndarray) -> None:
            right[offsets[batch][:, None] + np.arange(ids.shape[1])] = self.best_pieces(model, ids) == ids

        batches.map_batches(model, data.sentences, judge_batch)
        right_before = np.cumsum([0, *right])
        starts = offsets[data.sentence]
        return right_before[starts + data.end] - right_before[starts + data.start] == data.end - data.start


class TokenReconstruction(PieceMetric):
    """Accuracy by part of speech: a word is correct if the best piece at each of its positions is the word's."""

    name = "token_reconstruction"

    def best_pieces(self, model: "Model", ids: np.ndarray) -> np.ndarray:
        rows, columns = np.divmod(np.arange(ids.size), ids.shape[1])
        return model.mlm_logits(ids, rows, columns).argmax(axis=1).reshape(ids.shape)


class NextWordPrediction(PieceMetric):
    """Accuracy by part of speech: a word is right if each of its pieces is the best after the true pieces before it.

    The first word of a sentence is predicted from the token that begins a text; without such a token it is left out.
    """

    name = "next_word_prediction"
    needs = frozenset({"next_words"})

    def best_pieces(self, model: "Model", ids: np.ndarray) -> np.ndarray:
        batch, length = ids.shape
        best = np.full(ids.shape, -1)  # nothing predicts the first piece
        if length > 1:
            rows, columns = np.divmod(np.arange(batch * (length - 1)), length - 1)
            logits = model.next_logits(ids, rows, columns)
            best[:, 1:] = logits.argmax(axis=1).reshape(batch, length - 1)
        return best


class MaskPrediction(WordMetric):
    """Accuracy by part of speech: all pieces of a word are masked, and the best piece at each mask must be right."""

    name = "mask_prediction"

    def judge(self, model: "Model", data: TreebankWords) -> np.ndarray:
        correct = np.zeros(len(data.sentence), bool)

        def judge_batch(batch: np.ndarray, ids: np.ndarray) -> None:
            positions = np.arange(ids.shape[1])
            is_masked = (positions >= data.start[batch, None]) & (positions < data.end[batch, None])  # [b, L]
            rows, columns = np.nonzero(is_masked)
            masked_ids = np.where(is_masked, model.tokenizer.mask_id, ids)
            best = model.mlm_logits(masked_ids, rows, columns).argmax(axis=1)
            wrong_counts = np.bincount(rows, best != ids[rows, columns], minlength=len(batch))
            correct[batch] = wrong_counts == 0

        batches.map_batches(model, data.sentences, judge_batch, data.sentence)
        return correct
