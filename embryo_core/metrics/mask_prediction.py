"""Mask prediction: does the model guess a word that is masked as a whole? (Section 3, Figures 1b, 7 and 8)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.part_of_speech import Treebank, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


class MaskPrediction(WordMetric):
    """Accuracy by part of speech: one word at a time is masked, and the best piece at each mask must be the word's.

    Variants of all sentences with as many pieces go through the model together, and the masked positions alone through
    its head; neither changes what is computed.
    """

    name = "mask_prediction"

    def judge(self, model: "Model", data: Treebank) -> np.ndarray:
        lengths = np.array([len(ids) for ids in data.sentences])[data.sentence]
        correct = np.zeros(len(lengths), bool)

        def judge_batch(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[i] for i in data.sentence[batch]])  # [b, L]
            positions = np.arange(ids.shape[1])
            masked = (positions >= data.start[batch, None]) & (positions < data.end[batch, None])  # [b, L]
            rows, columns = np.nonzero(masked)
            seen = np.where(masked, model.tokenizer.mask_id, ids)
            best = model.mlm_logits(seen, np.ones_like(ids), rows, columns).argmax(axis=1)
            wrong = np.bincount(rows, best != ids[rows, columns], minlength=len(batch))
            correct[batch] = wrong == 0

        batches.compute(lengths, model.passes_at_once, judge_batch, model.tokens_at_once)
        return correct
