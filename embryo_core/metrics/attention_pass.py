"""One pass over the attention of a treebank for all metrics that need it; each batch is computed once."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from embryo_core.corpora import TREEBANK
from embryo_core.metric import Metric, MetricData
from embryo_core.metrics import batches
from embryo_core.types import Findings

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


class AttentionData(MetricData, Protocol):
    """The data of an attention metric, with all sentences of `treebank_words.encode` in their order."""

    @property
    def sentences(self) -> tuple[Any, ...]:
        """Return the sentences; each has its `ids`."""


class Observer(Protocol):
    """Gathers what one metric needs at one checkpoint."""

    def sum_batch(self, batch: np.ndarray, weights: np.ndarray) -> Any:
        """Return sums over the sentences numbered `batch` [b]; several threads call this at once.

        `weights` [layers, b, heads, L, L], row = from, column = to, are of sentences of one length.
        """

    def add(self, batch: np.ndarray, sums: Any) -> None:
        """Add the sums of a batch; batches come one by one, always in the same order."""

    def findings(self) -> Findings:
        """Return the findings after all batches were added."""


class AttentionMetric(Metric):
    """Base of the attention metrics; those on the same source share one pass."""

    page = "attention"
    source = "treebank"
    form = TREEBANK
    needs = frozenset({"attentions"})

    @abstractmethod
    def observe(self, model: "Model", data: Any) -> Observer:
        """Return a new observer of one checkpoint for the data that `read` returned."""

    def compute(self, model: "Model", data: AttentionData) -> Findings:
        return self.shared_pass(model, [(self, data)])[0]

    @staticmethod
    def shared_pass(model: "Model", work: Sequence[tuple[Any, Any]]) -> list[Findings]:
        """Return the findings of each (metric, data); all have read the same sentences."""
        sentences = work[0][1].sentences
        observers = [metric.observe(model, data) for metric, data in work]

        def attend(batch: np.ndarray) -> list[Any]:
            ids = np.stack([sentences[i].ids for i in batch])
            weights = model.attentions(ids, np.ones_like(ids))
            return [observer.sum_batch(batch, weights) for observer in observers]

        lengths = np.array([len(sentence.ids) for sentence in sentences])
        for batch, sums in batches.compute_in_order(lengths, model.passes_at_once, attend, model.tokens_at_once):
            for observer, own in zip(observers, sums, strict=True):
                observer.add(batch, own)
        return [observer.findings() for observer in observers]
