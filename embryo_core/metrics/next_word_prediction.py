"""Next-word prediction: does a decoder predict a word from the words before it?

For decoders it replaces mask prediction (Section 3). The two are never merged into one measure, since mask prediction
also reads the words after the mask.
"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics.treebank_words import PieceMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


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
            logits = model.next_logits(ids, np.ones_like(ids), rows, columns)
            best[:, 1:] = logits.argmax(axis=1).reshape(batch, length - 1)
        return best
