"""Token reconstruction: does the model give back the words of an unmasked sentence? (Section 3, Figure 1a)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.corpora import TREEBANK
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches, part_of_speech
from embryo_core.metrics.part_of_speech import Treebank
from embryo_core.types import Findings

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.engine.tokenizer import Tokenizer


class TokenReconstruction(Metric):
    """Accuracy by part of speech: a word is correct if the best piece at each of its positions is its own."""

    name = "token_reconstruction"
    page = "tokens"
    source = "treebank"
    form = TREEBANK
    needs = frozenset({"masked_words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Treebank:
        return part_of_speech.read(tokenizer, limits, source)

    def compute(self, model: "Model", data: Treebank) -> Findings:
        lengths = np.array([len(ids) for ids in data.sentences])
        offsets = np.cumsum([0, *lengths])  # of each sentence in the row of all pieces
        right = np.zeros(offsets[-1], bool)

        def judge(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
            rows, columns = np.divmod(np.arange(ids.size), ids.shape[1])
            best = model.mlm_logits(ids, np.ones_like(ids), rows, columns).argmax(axis=1)
            right[offsets[batch[rows]] + columns] = best == ids.ravel()

        batches.compute(lengths, model.passes_at_once, judge, model.tokens_at_once)
        right_before = np.cumsum([0, *right])
        first = offsets[data.sentence]
        correct = right_before[first + data.end] - right_before[first + data.start] == data.end - data.start
        return part_of_speech.findings(self.name, data, correct)
