"""Positions: the size of position embeddings relative to word embeddings, and the similarity of states.

    positions_deviation    standard deviation of all entries of an embedding table of n rows: of "words", of
                           "positions", and of ranges "positions 0 to 63", "positions 64 to 127", "positions 128 to
                           255", ... A model without an embedding for each position has the group "words" only.
    positions_cosine       mean cosine between the states of two different pieces of a sentence, without [CLS] and
                           [SEP]: the mean over all pairs, then over the n sentences of at least two pieces. Layer 0 is
                           the embeddings that enter the first layer.

If positions deviate far less than words, the model hardly represents order (docs/metrics.md). If cosines are near 1,
the states of a sentence hardly differ (Ethayarajh, 2019, https://arxiv.org/abs/1909.00512, intra-sentence similarity).
"""

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.corpora import TREEBANK_FORM
from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings, Score
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches, treebank_words
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

FIRST_GROUP = 64  # positions of the first range; each range ends at twice the end of the one before


class Positions(Metric):
    """Standard deviations of the embedding tables, and mean cosines between the states of a sentence of a treebank."""

    name = "positions"
    page = "overview"
    source = "treebank"
    form = TREEBANK_FORM
    needs = frozenset({"states"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> treebank_words.EncodedSentences:
        treebank = treebank_words.encode(tokenizer, limits, source)
        sentences = tuple(sentence for sentence in treebank.sentences if len(sentence.word_of_piece) >= 2)
        if not sentences:
            raise CorpusError(f"{source.path} has no sentence of two pieces or more; give another treebank.")
        pairs = sum(comb(len(sentence.word_of_piece), 2) for sentence in sentences)
        note = f"{quantity(pairs, 'pair')} of pieces in {quantity(len(sentences), 'sentence')} of {source.path.name}"
        note += treebank.reading
        return treebank_words.EncodedSentences(sentences, {"sentences": len(sentences), "pairs": pairs, "note": note})

    def compute(self, model: "Model", data: treebank_words.EncodedSentences) -> Findings:
        return Findings(scores=[*_deviations(model), *_cosines(model, data)])


def _deviations(model: "Model") -> list[Score]:
    """Return the standard deviation of each embedding table and of each range of positions."""
    words, positions = model.embeddings()
    tables = {"words": words}
    if positions is not None:
        tables["positions"] = positions
        start, end = 0, min(FIRST_GROUP, len(positions))
        while start < len(positions):
            tables[f"positions {start} to {end - 1}"] = positions[start:end]
            start, end = end, min(2 * end, len(positions))
    return [
        Score("positions_deviation", float(table.std(dtype=np.float64)), len(table), group)
        for group, table in tables.items()
    ]


def _cosines(model: "Model", data: treebank_words.EncodedSentences) -> list[Score]:
    """Return the mean cosine between states of a sentence at each layer."""
    cosines = np.zeros((model.num_layers + 1, len(data.sentences)))

    def measure(batch: np.ndarray, ids: np.ndarray) -> None:
        inside = data.sentences[batch[0]].inside
        cosines[:, batch] = mean_cosine(model.hidden_states(ids)[:, :, inside])

    batches.map_batches(model, [sentence.ids for sentence in data.sentences], measure)
    return [
        Score("positions_cosine", float(values.mean()), len(values), layer=layer)
        for layer, values in enumerate(cosines)
    ]


def mean_cosine(states: np.ndarray) -> np.ndarray:
    """Return the mean cosine [...] over all pairs of different states among P >= 2 states [..., P, H].

    The squared norm of the sum of P unit vectors is P plus the cosines of all ordered pairs. A state of zeros has the
    cosine 0 with every other.
    """
    states = states.astype(np.float64)
    pieces = states.shape[-2]
    units = states / np.maximum(np.linalg.norm(states, axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    own = (units**2).sum(axis=(-2, -1))  # the number of states that are not zeros
    return ((units.sum(axis=-2) ** 2).sum(axis=-1) - own) / (pieces * (pieces - 1))
