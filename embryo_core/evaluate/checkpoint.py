"""Evaluate one checkpoint: load its model once, compute metrics, and write nothing.

It works the same in the process of an evaluation and in the workers of a cluster (cluster.py).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embryo_core.engine.device import Device
from embryo_core.engine.model import Model, read_model
from embryo_core.errors import BrokenCheckpoint, EmbryoError, MissingWeights
from embryo_core.evaluate.plan import MetricRequest
from embryo_core.metric import Limits, Metric, MetricData
from embryo_core.types import Checkpoint, Findings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetricResult:
    """What one metric found at one checkpoint, and its summary of the data for sources.json."""

    metric: str
    findings: Findings
    summary: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """Why metrics could not be computed at one checkpoint."""

    reason: str  # a sentence
    metrics: int  # how many

    @classmethod
    def of_metric(cls, metric: str, checkpoint: Checkpoint, reason: object) -> "Failure":
        """Return the failure of one metric."""
        return cls(f"Metric '{metric}' failed at step {checkpoint.step}: {reason}", 1)


class CheckpointEvaluator:
    """Computes metrics at the checkpoints of one run on one device; reads the data once."""

    def __init__(self, device: Device):
        self._device = device
        self._data: dict[str, MetricData] = {}  # by metric

    def evaluate(
        self, checkpoint: Checkpoint, requests: Sequence[MetricRequest], missing: EmbryoError | None = None
    ) -> Iterator[MetricResult | Failure]:
        """Yield the result of each metric as soon as it is computed; metrics that share a pass come together.

        A checkpoint that cannot be read, or whose weights are `missing`, and a metric that fails are Failures. Raises
        CorpusError for unreadable data before anything is computed, and OSError.
        """
        try:
            if missing:
                raise missing
            model = read_model(checkpoint, self._device)
        except (BrokenCheckpoint, MissingWeights) as reason:
            yield Failure(str(reason), len(requests))
            return
        for request in requests:  # all data first: reading is quick, computing is not
            if request.metric.name not in self._data:
                self._data[request.metric.name] = request.metric.read(model.tokenizer, Limits.of(model), request.source)
        for metrics in _group_by_pass(requests):
            yield from self._compute(model, metrics)

    def _compute(self, model: Model, metrics: Sequence[Metric]) -> list[MetricResult | Failure]:
        """Compute one metric, or several in one shared pass."""
        first, data = metrics[0], [self._data[metric.name] for metric in metrics]
        try:
            if len(metrics) == 1 or first.shared_pass is None:
                found = [first.compute(model, data[0])]
            else:
                found = first.shared_pass(model, list(zip(metrics, data, strict=True)))
        except OSError:  # a full disk: nothing more can be written
            raise
        except Exception as reason:  # one failure does not stop the other metrics
            if len(metrics) > 1:
                return [outcome for metric in metrics for outcome in self._compute(model, [metric])]
            checkpoint = model.checkpoint
            log.exception("%s failed at step %d of %s", first.name, checkpoint.step, checkpoint.run.name)
            return [Failure.of_metric(first.name, checkpoint, reason)]
        return [
            MetricResult(metric.name, findings, own.summary)
            for metric, findings, own in zip(metrics, found, data, strict=True)
        ]


def _group_by_pass(requests: Sequence[MetricRequest]) -> list[list[Metric]]:
    """Group metrics that share a pass over the same source; every other metric is by itself."""
    groups: dict[Any, list[Metric]] = {}
    for request in requests:
        shared = request.metric.shared_pass
        groups.setdefault((shared, request.source) if shared else request.metric.name, []).append(request.metric)
    return list(groups.values())
