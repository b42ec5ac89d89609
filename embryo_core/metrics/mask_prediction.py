"""Mask prediction: does the model predict a word whose pieces are all masked? (Section 3, Figures 1b, 7 and 8)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.treebank_words import TreebankWords, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


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
            best = model.mlm_logits(masked_ids, np.ones_like(ids), rows, columns).argmax(axis=1)
            wrong_counts = np.bincount(rows, best != ids[rows, columns], minlength=len(batch))
            correct[batch] = wrong_counts == 0

        batches.map_batches(model, data.sentences, judge_batch, data.sentence)
        return correct
