"""Training of linear probes under a protocol; the weights with the best development F1 are kept.

The layers of a task share batches but no matrix products, so that a probe is bit for bit the same whichever layers are
trained with it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from embryo_core.metrics.probing.data import ProbingTask, Targets
from embryo_core.metrics.probing.probes import Probes

SEED = 11  # seed of the order of batches

Pair = tuple[float, float]  # values for the task and for its control task


# === Protocols ===


@dataclass(frozen=True)
class Patience:
    """The numbers of consecutive evaluations without a better F1 after which training is slowed and stopped."""

    halve: int  # from this number on, each evaluation halves the learning rate and resets Adam's moments
    stop: int  # at this number, training stops (patience)


@dataclass(frozen=True)
class Protocol:
    """The settings of training a probe; development F1 is evaluated `evaluations` times, evenly spaced."""

    batch: int  # targets per batch
    iterations: int  # batches, limited to the range from `min_epochs` to `max_epochs`
    min_epochs: int
    max_epochs: int | None  # more repetitions of a small training set have no effect; None: no limit
    evaluations: int
    learning_rate: float  # initial learning rate
    patience: Patience | None  # None: the learning rate falls linearly to 0 at the end
    max_norm: float  # a probe's gradient is clipped to this norm
    whitened: bool

    def length(self, targets: int) -> int:
        """Return the number of iterations for `targets` training targets, rounded up to a multiple of `evaluations`."""
        epoch = -(-targets // self.batch)
        most = self.iterations if self.max_epochs is None else min(self.iterations, self.max_epochs * epoch)
        return self.evaluations * -(-max(most, self.min_epochs * epoch) // self.evaluations)


PROTOCOLS = {
    "fast": Protocol(
        batch=1024,
        iterations=1000,
        min_epochs=5,
        max_epochs=200,
        evaluations=10,
        learning_rate=0.03,
        patience=None,
        max_norm=torch.inf,
        whitened=True,
    ),
    "paper": Protocol(  # as in https://github.com/d223302/albert-embryology, Sec-3:Edge-Probing
        batch=1024,
        iterations=30_000,
        min_epochs=0,
        max_epochs=None,
        evaluations=30,
        learning_rate=1e-4,
        patience=Patience(halve=5, stop=20),
        max_norm=5.0,
        whitened=False,
    ),
}


class Regimen:
    """The training of one probe, whose values (weights and bias) it changes in place."""

    def __init__(self, values: tuple[Tensor, ...], protocol: Protocol):
        self._values, self._protocol = values, protocol
        self._learning_rate = protocol.learning_rate
        self._adam = torch.optim.Adam(values, self._learning_rate, fused=True)
        self._best_f1, self.best = -1.0, values  # the best weights so far (`record`)
        self._waited = 0  # evaluations since the best F1

    @property
    def stopped(self) -> bool:
        """Return whether the protocol's patience is exhausted."""
        return self._protocol.patience is not None and self._waited >= self._protocol.patience.stop

    def step(self, gradients: tuple[Tensor, ...], remaining: float) -> None:
        """Make one step of Adam; `remaining` is the share of iterations that remain, from 1 down."""
        for value, gradient in zip(self._values, gradients, strict=True):
            value.grad = gradient
        if self._protocol.max_norm < torch.inf:
            torch.nn.utils.clip_grad_norm_(self._values, self._protocol.max_norm)
        if self._protocol.patience is None:
            self._adam.param_groups[0]["lr"] = self._learning_rate * remaining
        self._adam.step()

    def record(self, f1: float, weights: tuple[Tensor, ...]) -> None:
        """Record the development F1 of these weights, and keep them if they are the best.

        Of equal F1, the fast protocol keeps the last weights, which are trained longest, and the paper's the first.
        """
        if self.stopped:
            return
        patience, better = self._protocol.patience, f1 > self._best_f1
        if better or (patience is None and f1 == self._best_f1):
            self._best_f1, self.best = f1, tuple(weight.clone() for weight in weights)
        self._waited = 0 if better else self._waited + 1
        if patience is not None and self._waited >= patience.halve:
            self._learning_rate /= 2
            self._adam = torch.optim.Adam(self._values, self._learning_rate, fused=True)


# === Training ===


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of a layer's two probes on the development set."""

    iteration: int
    train_loss: Pair  # mean cross-entropy in nats over the batches since the last evaluation
    dev_f1: Pair


@dataclass(frozen=True)
class ProbeResult:
    """Test F1 of the two probes of one layer, and their training curve."""

    f1: Pair
    curve: list[Evaluation]  # until both have ended
    ends: tuple[int, ...]  # the iteration at which the training of each ended


def train_all(features: Tensor, tasks: Sequence[ProbingTask], protocol: str, cores: int) -> list[list[ProbeResult]]:
    """Train the probes of every task and layer of `features` [layers, spans, H]; return [tasks][layers]."""
    split = [(task, layers) for task in tasks for layers in np.array_split(np.arange(len(features)), cores)]
    jobs = [(task, layers) for task, layers in split if len(layers)]

    def cost(i: int) -> int:
        task, layers = jobs[i]
        return len(layers) * task.train.spans.size * len(task.labels)

    def work(i: int) -> list[ProbeResult]:
        task, layers = jobs[i]
        return train_probes(features[layers[0] : layers[-1] + 1], task, PROTOCOLS[protocol])

    # the longest jobs first, so that all cores finish together
    order = sorted(range(len(jobs)), key=cost, reverse=True)
    with ThreadPoolExecutor(cores) as pool:
        done = dict(zip(order, pool.map(work, order), strict=True))
    return [[probe for i, job in enumerate(jobs) if job[0] is task for probe in done[i]] for task in tasks]


@torch.inference_mode()
def train_probes(features: Tensor, task: ProbingTask, protocol: Protocol) -> list[ProbeResult]:
    """Train and test the probes of each layer of `features` [layers, spans, H] float16."""
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
    """Yield batches of about `size` adjacent targets, which are from random sentences; reorder them in each epoch."""
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
        self._ends: tuple[int, ...] = (0, 0)

    @property
    def stopped(self) -> bool:
        return all(regimen.stopped for regimen in self._regimens)

    def step(self, batch: Targets, remaining: float) -> None:
        loss, gradients = self._probes.loss(batch)
        self._losses.append(loss)
        for regimen, *own in zip(self._regimens, *gradients, strict=True):
            regimen.step(tuple(own), remaining)

    def evaluate(self, iteration: int) -> None:
        weights = self._probes.weights
        f1 = self._probes.f1(self._task.dev, *weights)
        ends = zip(self._ends, self._regimens, strict=True)
        self._ends = tuple(end if regimen.stopped else iteration for end, regimen in ends)
        for regimen, own_f1, *weights_of in zip(self._regimens, f1, *weights, strict=True):
            regimen.record(own_f1, tuple(weights_of))
        loss = torch.stack(self._losses).mean(0)
        self._losses.clear()
        self._curve.append(Evaluation(iteration, _pair(loss.tolist()), _pair(f1)))

    def trained(self) -> ProbeResult:
        """Return the test F1 of the best weights, and the curve."""
        weights, bias = (
            torch.stack(parts) for parts in zip(*(regimen.best for regimen in self._regimens), strict=True)
        )
        return ProbeResult(_pair(self._probes.f1(self._task.test, weights, bias)), self._curve, self._ends)


def _pair(values: list[float]) -> Pair:
    task, control = values
    return task, control
