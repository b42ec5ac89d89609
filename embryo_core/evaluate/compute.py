"""What metrics find at a checkpoint: the model is loaded once, data are read once a process, and nothing is written.

It is the same wherever an evaluation computes: in its own process, or in the workers of a cluster (cluster.py).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embryo_core.engine.device import Device
from embryo_core.engine.model import Model, load
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.metric import Data, Limits, Metric, Source
from embryo_core.types import Checkpoint, Findings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Asked:
    """One metric, and the data that it is computed on."""

    metric: Metric
    source: Source


@dataclass(frozen=True)
class Found:
    """What one metric found at one checkpoint, and its summary of the data for sources.json."""

    metric: str
    findings: Findings
    summary: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """Why metrics found nothing at one checkpoint, in a sentence, and how many metrics."""

    reason: str
    metrics: int


class Computer:
    """Computes metrics at the checkpoints of one run on one device, and keeps the data that it has read."""

    def __init__(self, device: Device):
        self._device = device
        self._data: dict[str, Data] = {}

    def compute(self, checkpoint: Checkpoint, asked: Sequence[Asked]) -> Iterator[Found | Failed]:
        """What each of the metrics finds, as soon as it is found; those that share a pass come together.

        A checkpoint that cannot be read, and a metric that fails, are Failed. Raises CorpusError for data that cannot
        be read, before anything is computed, and OSError.
        """
        try:
            model = load(checkpoint, self._device)
        except (BrokenCheckpoint, MissingWeights) as reason:  # the latter: removed since the plan was made
            yield Failed(str(reason), len(asked))
            return
        for one in asked:  # all at once, so that bad data are known before anything takes time
            if one.metric.name not in self._data:
                self._data[one.metric.name] = one.metric.read(model.tokenizer, limits(model), one.source)
        for together in _passes(asked):
            yield from self._pass(model, together)

    def _pass(self, model: Model, metrics: Sequence[Metric]) -> list[Found | Failed]:
        """What metrics find at one loaded checkpoint; several are those of one shared pass."""
        first, data = metrics[0], [self._data[metric.name] for metric in metrics]
        try:
            if len(metrics) == 1:
                found = [first.compute(model, data[0])]
            else:
                found = first.shared_pass(model, list(zip(metrics, data, strict=True)))
        except OSError:  # a full disk: nothing more can be written
            raise
        except Exception as reason:  # the batch boundary: one failure does not stop the others
            if len(metrics) > 1:  # one of them failed: computed alone, the others do not
                return [outcome for metric in metrics for outcome in self._pass(model, [metric])]
            checkpoint = model.checkpoint
            log.exception("%s failed at step %d of %s", first.name, checkpoint.step, checkpoint.run.name)
            return [failed(first.name, checkpoint, reason)]
        return [
            Found(metric.name, findings, own.summary)
            for metric, findings, own in zip(metrics, found, data, strict=True)
        ]


def failed(metric: str, checkpoint: Checkpoint, reason: object) -> Failed:
    """That one metric failed at a checkpoint, in a sentence."""
    return Failed(f"Metric '{metric}' failed at step {checkpoint.step}: {reason}", 1)


def limits(model: Model) -> Limits:
    """What the models of a run read; the same at every step."""
    frequencies = model.checkpoint.run.frequencies
    return Limits(model.max_positions, frequencies if frequencies.is_file() else None)


def _passes(asked: Sequence[Asked]) -> list[list[Metric]]:
    """Metrics that share a pass over the same source, together; every other metric by itself."""
    together: dict[Any, list[Metric]] = {}
    for one in asked:
        key = (one.metric.shared_pass, one.source) if one.metric.shared_pass else one.metric.name
        together.setdefault(key, []).append(one.metric)
    return list(together.values())
