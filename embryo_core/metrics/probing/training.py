"""Linear probes of all layers of a task, trained together; F1 in development decides which weights each ends with.

All layers share the batches, and a batch is chunked by layer, so that a probe is the same, bit for bit, whichever
layers are trained with it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from embryo_core.metrics.probing.data import ProbingTask, Targets
from embryo_core.metrics.probing.probe import Probes
from embryo_core.metrics.probing.regimen import PROTOCOLS, Protocol, Regimen

SEED = 11


@dataclass(frozen=True)
class Evaluation:
    """One evaluation in development; pairs are of the task and of its control task."""

    iteration: int
    train_loss: tuple[float, float]  # mean cross-entropy in nats over the batches since the last evaluation
    dev_f1: tuple[float, float]


@dataclass(frozen=True)
class Trained:
    """What the probes of one layer came to; pairs are of the task and of its control task."""

    f1: tuple[float, float]  # in the test
    curve: list[Evaluation]


def train_all(features: Tensor, tasks: Sequence[ProbingTask], protocol: str, cores: int) -> list[list[Trained]]:
    """Probes of every task and layer of `features` [layers, spans, H], on as many cores; [tasks][layers]."""
    jobs = [(task, layers) for task in tasks for layers in np.array_split(np.arange(len(features)), cores)]
    jobs = [(task, layers) for task, layers in jobs if len(layers)]

    def cost(i: int) -> int:
        task, layers = jobs[i]
        return len(layers) * task.train.spans.size * len(task.labels)

    def work(i: int) -> list[Trained]:
        task, layers = jobs[i]
        return train_probes(features[layers[0] : layers[-1] + 1], task, PROTOCOLS[protocol])

    order = sorted(range(len(jobs)), key=cost, reverse=True)  # the longest first, so that all end together
    with ThreadPoolExecutor(cores) as pool:
        done = dict(zip(order, pool.map(work, order), strict=True))
    return [[probe for i, job in enumerate(jobs) if job[0] is task for probe in done[i]] for task in tasks]


@torch.inference_mode()
def train_probes(features: Tensor, task: ProbingTask, protocol: Protocol) -> list[Trained]:
    """Train and test the probes of each layer of `features` [layers, spans, H], float16."""
    layers = [_Layer(states, task, protocol) for states in features]
    n = len(task.train.labels)
    length = protocol.length(n)
    for iteration, rows in zip(range(length), _batches(n, protocol.batch), strict=False):
        training = [layer for layer in layers if not layer.stopped]
        if not training:
            break
        batch = Targets(task.train.spans[rows], task.train.labels[rows], task.train.control[rows])
        for layer in training:
            layer.step(batch, 1 - iteration / length)
        if (iteration + 1) % (length // protocol.evaluations) == 0:
            for layer in training:
                layer.evaluate(iteration + 1)
    return [layer.trained() for layer in layers]


def _batches(n: int, size: int) -> Iterator[slice]:
    """Endless batches of about `size` neighbours among n targets, which are in random order; each epoch in another."""
    random = np.random.default_rng(SEED)
    ends = np.linspace(0, n, -(-n // size) + 1).astype(int)
    while True:
        for i in random.permutation(len(ends) - 1):
            yield slice(ends[i], ends[i + 1])


class _Layer:
    """The training of the two probes of one layer, and its curve."""

    def __init__(self, states: Tensor, task: ProbingTask, protocol: Protocol):
        self._task = task
        self._probes = Probes(states, task, protocol.whitened)
        self._regimens = [Regimen(values, protocol) for values in zip(*self._probes.values, strict=True)]
        self._losses: list[Tensor] = []
        self._curve: list[Evaluation] = []

    @property
    def stopped(self) -> bool:
        return all(regimen.stopped for regimen in self._regimens)

    def step(self, batch: Targets, left: float) -> None:
        loss, gradients = self._probes.loss(batch)
        self._losses.append(loss)
        for regimen, *own in zip(self._regimens, *gradients, strict=True):
            regimen.step(tuple(own), left)

    def evaluate(self, iteration: int) -> None:
        weights = self._probes.weights
        f1 = self._probes.f1(self._task.dev, *weights)
        for regimen, own_f1, *own in zip(self._regimens, f1, *weights, strict=True):
            regimen.evaluated(own_f1, tuple(own))
        loss = torch.stack(self._losses).mean(0)
        self._losses.clear()
        self._curve.append(Evaluation(iteration, tuple(loss.tolist()), tuple(f1)))

    def trained(self) -> Trained:
        """F1 in the test with the best weights, and the curve."""
        best = [torch.stack(parts) for parts in zip(*(regimen.best for regimen in self._regimens), strict=True)]
        return Trained(tuple(self._probes.f1(self._task.test, *best)), self._curve)
