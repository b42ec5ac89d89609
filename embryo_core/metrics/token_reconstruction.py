"""Token reconstruction: does the model give back the words of an unmasked sentence? (Section 3, Figure 1a)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import part_of_speech
from embryo_core.metrics.batches import of_one_length
from embryo_core.metrics.part_of_speech import Treebank
from embryo_core.types import Checkpoint, Findings, Run, Sources

if TYPE_CHECKING:
    from embryo_core.model import Model


class TokenReconstruction:
    """Accuracy by part of speech: a word is correct if the best piece at each of its positions is its own."""

    name = "token_reconstruction"
    family = "tokens"
    every = 1
    source = "treebank"

    def supports(self, run: Run) -> bool:
        return run.family in ("albert", "bert")

    def read(self, model: "Model", sources: Sources) -> Treebank:
        return part_of_speech.read(model, sources)

    def compute(self, model: "Model", checkpoint: Checkpoint, data: Treebank) -> Findings:
        lengths = np.array([len(ids) for ids in data.sentences])
        offsets = np.cumsum([0, *lengths])  # of each sentence in the row of all pieces
        right = np.zeros(offsets[-1], bool)  # [CLS] and [SEP] stay false, no word holds them
        for batch in of_one_length(lengths):
            ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
            rows, columns = np.nonzero(np.ones_like(ids[:, 1:-1]))
            best = model.mlm_logits(ids, np.ones_like(ids), rows, columns + 1).argmax(axis=1)
            right[offsets[batch[rows]] + columns + 1] = best == ids[rows, columns + 1]
        right_before = np.cumsum([0, *right])
        first = offsets[data.sentence]
        correct = right_before[first + data.end] - right_before[first + data.start] == data.end - data.start
        return part_of_speech.findings(self.name, checkpoint, data, correct)
