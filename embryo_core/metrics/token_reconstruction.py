"""Token reconstruction: does the model reproduce the words of an unmasked sentence? (Section 3, Figure 1a)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.treebank_words import TreebankWords, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


class TokenReconstruction(WordMetric):
    """Measures accuracy by part of speech: a word is correct if the best piece at each of its positions is its own."""

    name = "token_reconstruction"

    def judge(self, model: "Model", data: TreebankWords) -> np.ndarray:
        lengths = np.array([len(ids) for ids in data.sentences])
        offsets = np.cumsum([0, *lengths])  # of each sentence in the row of all pieces
        right = np.zeros(offsets[-1], bool)

        def judge_batch(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
            rows, columns = np.divmod(np.arange(ids.size), ids.shape[1])
            best = model.mlm_logits(ids, np.ones_like(ids), rows, columns).argmax(axis=1)
            right[offsets[batch[rows]] + columns] = best == ids.ravel()

        batches.compute(lengths, model.passes_at_once, judge_batch, model.tokens_at_once)
        right_before = np.cumsum([0, *right])
        first = offsets[data.sentence]
        return right_before[first + data.end] - right_before[first + data.start] == data.end - data.start
