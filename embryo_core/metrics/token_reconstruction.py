"""Token reconstruction: does the model reproduce the words of an unmasked sentence? (Section 3, Figure 1a)"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics.treebank_words import PieceMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


class TokenReconstruction(PieceMetric):
    """Accuracy by part of speech: a word is correct if the best piece at each of its positions is the word's."""

    name = "token_reconstruction"

    def best_pieces(self, model: "Model", ids: np.ndarray) -> np.ndarray:
        rows, columns = np.divmod(np.arange(ids.size), ids.shape[1])
        return model.mlm_logits(ids, np.ones_like(ids), rows, columns).argmax(axis=1).reshape(ids.shape)
