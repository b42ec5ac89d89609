"""Attention maps of every head, averaged over a treebank (Figure 4), and the pass that all attention metrics share.

Entry [i, j] of a map is the mean weight from position i to position j over the sentences that have both. Position 0 is
[CLS]; [SEP] ends each sentence, and there is no padding. A map covers the positions that at least MIN_SENTENCES
sentences reach, at most MAX_LENGTH. Its rows do not sum to 1, because entries far from [CLS] average over longer
sentences only (see curves.normalise_rows).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from embryo_core.corpora import TREEBANK_FORM
from embryo_core.measurements import AttentionMap, Findings
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches
from embryo_core.metrics.treebank_words import EncodedSentences, encode
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

MAX_LENGTH = 64  # largest number of positions of a map
MIN_SENTENCES = 10  # least number of sentences averaged in an entry; all sentences if there are fewer


class Observer(Protocol):
    """Accumulator of the attention weights of one checkpoint for one metric."""

    def sum_batch(self, batch: np.ndarray, weights: np.ndarray) -> Any:
        """Return sums over the sentences with indices `batch` [b], all of length L; several threads call this at once.

        `weights` are [layers, b, heads, L, L], row = from, column = to.
        """

    def add(self, batch: np.ndarray, sums: Any) -> None:
        """Add the sums of one batch; called by one thread, always in the same order of batches."""

    def findings(self) -> Findings:
        """Return the findings, once all batches have been added."""


class AttentionMetric(Metric):
    """Base of the attention metrics; metrics on the same source share one pass."""

    page = "attention"
    source = "treebank"
    form = TREEBANK_FORM
    needs = frozenset({"attentions"})
    observer: ClassVar[Callable[..., Observer]]  # called with a model and the data that `read` returned

    def compute(self, model: "Model", data: EncodedSentences) -> Findings:
        return self.shared_pass(model, [(self, data)])[0]

    @staticmethod
    def shared_pass(model: "Model", work: Sequence[tuple[Any, Any]]) -> list[Findings]:
        """Return the findings of each (metric, data) in `work` from one pass; all must have read the same sentences."""
        sentences = work[0][1].sentences
        observers = [metric.observer(model, data) for metric, data in work]

        def attend(batch: np.ndarray) -> list[Any]:
            ids = np.stack([sentences[i].ids for i in batch])
            weights = model.attentions(ids)
            return [observer.sum_batch(batch, weights) for observer in observers]

        lengths = np.array([len(sentence.ids) for sentence in sentences])
        for batch, sums in batches.compute_in_order(lengths, model.parallel_passes, attend, model.max_batch_tokens):
            for observer, sums_of_observer in zip(observers, sums, strict=True):
                observer.add(batch, sums_of_observer)
        return [observer.findings() for observer in observers]


class MapSums:
    """Sums of the weights of every head over the sentences of one checkpoint."""

    def __init__(self, model: "Model", data: EncodedSentences):
        self._sentences, length = len(data.sentences), data.summary["length"]
        self._total = np.zeros((model.num_layers, model.num_heads, length, length))
        self._reached = np.zeros((length, length), np.int64)  # [L, L] number of sentences that have both positions

    def sum_batch(self, batch: np.ndarray, weights: np.ndarray) -> np.ndarray:
        length = len(self._reached)
        return weights[..., :length, :length].sum(axis=1, dtype=np.float64)  # [layers, heads, end, end]

    def add(self, batch: np.ndarray, sums: np.ndarray) -> None:
        end = sums.shape[-1]
        self._total[:, :, :end, :end] += sums
        self._reached[:end, :end] += len(batch)

    def findings(self) -> Findings:
        mean = (self._total / self._reached).astype(np.float32)
        heads = np.ndindex(mean.shape[:2])
        maps = [AttentionMap(layer + 1, head + 1, mean[layer, head], self._sentences) for layer, head in heads]
        return Findings(attention=maps)


class Attention(AttentionMetric):
    """One averaged map for each layer and head, from the sentences that fit the model's positions."""

    name = "attention"
    observer = MapSums

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedSentences:
        treebank = encode(tokenizer, limits, source)
        sentences = treebank.sentences
        lengths = np.array([len(sentence.ids) for sentence in sentences])
        length = min(int(np.sort(lengths)[-min(MIN_SENTENCES, len(lengths))]), MAX_LENGTH)
        summary = {
            "sentences": len(sentences),
            "length": length,
            "sentences_per_position": [int((lengths > position).sum()) for position in range(length)],
            "note": f"averaged over {quantity(len(sentences), 'sentence')} of {source.path.name}{treebank.reading}",
        }
        return EncodedSentences(sentences, summary)
