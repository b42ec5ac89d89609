"""Attention: maps of every head, averaged over the sentences of a treebank (Figure 4).

Entry [i, j] of a map is the mean weight from position i to position j over the sentences that have both. Position 0 is
[CLS]; [SEP] ends each sentence, and there is no padding. A map covers the positions that at least MIN_SENTENCES
sentences reach, at most MAX_LENGTH. Its rows do not sum to 1, because entries far from [CLS] average over longer
sentences only (see curves.normalise_rows).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.metric import Limits, Source
from embryo_core.metrics.attention_pass import AttentionMetric
from embryo_core.metrics.treebank_words import Sentence, encode
from embryo_core.types import AttentionMap, Findings
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

MAX_LENGTH = 64
MIN_SENTENCES = 10  # behind every entry, or all sentences if there are fewer


@dataclass(frozen=True, eq=False)
class MapSentences:
    """Encoded sentences and the side L of their maps."""

    sentences: tuple[Sentence, ...]
    length: int
    summary: dict[str, Any]


class Attention(AttentionMetric):
    """Computes one map per layer and head from the sentences that fit the model's positions."""

    name = "attention"

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> MapSentences:
        sentences = encode(tokenizer, limits, source).sentences
        lengths = np.array([len(sentence.ids) for sentence in sentences])
        length = min(int(np.sort(lengths)[-min(MIN_SENTENCES, len(lengths))]), MAX_LENGTH)
        summary = {
            "sentences": len(sentences),
            "length": length,
            "sentences_per_position": [int((lengths > position).sum()) for position in range(length)],
            "note": f"averaged over {quantity(len(sentences), 'sentence')} of {source.path.name}",
        }
        return MapSentences(sentences, length, summary)

    def observe(self, model: "Model", data: MapSentences) -> "MapSums":
        return MapSums(model, data)


class MapSums:
    """Sums of the weights of every head over the sentences of one checkpoint."""

    def __init__(self, model: "Model", data: MapSentences):
        self._sentences = len(data.sentences)
        self._total = np.zeros((model.num_layers, model.num_heads, data.length, data.length))
        self._reached = np.zeros((data.length, data.length), np.int64)  # sentences that have both positions

    def sum_batch(self, batch: np.ndarray, weights: np.ndarray) -> np.ndarray:
        side = len(self._reached)
        return weights[..., :side, :side].sum(axis=1, dtype=np.float64)  # [layers, heads, end, end]

    def add(self, batch: np.ndarray, sums: np.ndarray) -> None:
        end = sums.shape[-1]
        self._total[:, :, :end, :end] += sums
        self._reached[:end, :end] += len(batch)

    def findings(self) -> Findings:
        mean = (self._total / self._reached).astype(np.float32)
        return Findings(
            attention=[
                AttentionMap(layer + 1, head + 1, mean[layer, head], self._sentences)
                for layer, head in np.ndindex(mean.shape[:2])
            ]
        )
