"""Mask prediction: does the model guess a word that is masked as a whole? (Section 3, Figures 1b, 7 and 8)"""

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


class MaskPrediction(Metric):
    """Accuracy by part of speech: one word at a time is masked, and the best piece at each mask must be the word's.

    Variants of all sentences with as many pieces go through the model together, and the masked positions alone through
    its head; neither changes what is computed.
    """

    name = "mask_prediction"
    page = "tokens"
    source = "treebank"
    form = TREEBANK
    needs = frozenset({"masked_words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Treebank:
        return part_of_speech.read(tokenizer, limits, source)

    def compute(self, model: "Model", data: Treebank) -> Findings:
        lengths = np.array([len(ids) for ids in data.sentences])[data.sentence]
        correct = np.zeros(len(lengths), bool)

        def judge(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[i] for i in data.sentence[batch]])  # [b, L]
            positions = np.arange(ids.shape[1])
            masked = (positions >= data.start[batch, None]) & (positions < data.end[batch, None])  # [b, L]
            rows, columns = np.nonzero(masked)
            seen = np.where(masked, model.tokenizer.mask_id, ids)
            best = model.mlm_logits(seen, np.ones_like(ids), rows, columns).argmax(axis=1)
            wrong = np.bincount(rows, best != ids[rows, columns], minlength=len(batch))
            correct[batch] = wrong == 0

        batches.compute(lengths, model.passes_at_once, judge, model.tokens_at_once)
        return part_of_speech.findings(self.name, data, correct)
