"""Linear probes of all layers of a task, trained together: multinomial logistic regression by stochastic gradients.

A probe gives logits W x + b over the labels for the features x of a target: the mean state of its span's pieces, or of
both its spans, one after the other (Tenney et al., 2019, https://arxiv.org/abs/1905.06316). Beside it goes the same
probe on the labels of the control task. All layers share the batches, and a batch is chunked by layer, so that a probe
is the same, bit for bit, whichever layers are trained with it. F1 in development decides which weights it ends with.

The fast protocol learns V where W = V P and P whitens the features of a sample of the training set: a transformer's
states lie along few directions, and descent in plain coordinates takes very long to make use of the others. Its loss has
the penalty of scikit-learn's LogisticRegression on standardised features. The paper's protocol is plain Adam.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from embryo_core.engine.cpu import product
from embryo_core.metrics.probing_data import ProbingTask, Targets

CHUNK = 4096  # targets whose features are float32 at once, outside of training
SAMPLE = 16_384  # training targets that mean and covariance are taken of
RIDGE = 1e-5  # added to the covariance, in units of the mean variance: float16 tells nothing below
MOMENTS = (0.9, 0.999)  # of Adam
SEED = 11


@dataclass(frozen=True)
class Protocol:
    """How probes are trained by Adam. F1 in development is looked at `looks` times, evenly spaced."""

    batch: int  # targets
    epochs: int
    iterations: int  # or as many epochs, if these are more
    rate: float  # at the beginning
    looks: int
    patience: int | None  # looks in a row without a better F1, each halving the rate, until training stops;
    #                       None: the rate falls along a line to 0 at the end
    whitened: bool

    def length(self, targets: int) -> int:
        """Iterations for so many training targets; a multiple of `looks`."""
        wanted = max(self.iterations, self.epochs * -(-targets // self.batch))
        return self.looks * -(-wanted // self.looks)


PROTOCOLS = {
    "fast": Protocol(batch=1024, epochs=5, iterations=1000, rate=0.03, looks=10, patience=None, whitened=True),
    "paper": Protocol(batch=1024, epochs=0, iterations=30_000, rate=1e-4, looks=30, patience=5, whitened=False),
}


@dataclass(frozen=True)
class Look:
    """One look at the development set; pairs are of the task and of its control task."""

    iteration: int
    train_loss: tuple[float, float]  # mean cross-entropy in nats over the batches since the last look
    dev_f1: tuple[float, float]


@dataclass(frozen=True)
class Trained:
    """What the probes of one layer came to; pairs are of the task and of its control task."""

    f1: tuple[float, float]  # in the test
    curve: list[Look]


def train_all(features: Tensor, tasks: Sequence[ProbingTask], protocol: str, cores: int) -> list[list[Trained]]:
    """Probes of every task and layer of `features` [layers, spans, H], on as many cores; [tasks][layers]."""
    jobs = [(task, layers) for task in tasks for layers in np.array_split(np.arange(len(features)), cores)]
    jobs = [(task, layers) for task, layers in jobs if len(layers)]

    def cost(i: int) -> int:
        task, layers = jobs[i]
        return len(layers) * task.train.spans.size * len(task.labels)

    @torch.inference_mode()
    def work(i: int) -> list[Trained]:
        task, layers = jobs[i]
        return train_probes(features[layers[0] : layers[-1] + 1], task, PROTOCOLS[protocol])

    order = sorted(range(len(jobs)), key=cost, reverse=True)  # the longest first, so that all end together
    with ThreadPoolExecutor(cores) as pool:
        done = dict(zip(order, pool.map(work, order), strict=True))
    return [[probe for i, job in enumerate(jobs) if job[0] is task for probe in done[i]] for task in tasks]


def train_probes(features: Tensor, task: ProbingTask, protocol: Protocol) -> list[Trained]:
    """Train and test the probes of each layer of `features` [layers, spans, H], float16."""
    probes = [_LayerProbes(states, task, protocol) for states in features]
    n = len(task.train.labels)
    length = protocol.length(n)
    for iteration, rows in zip(range(length), _batches(n, protocol.batch), strict=False):
        training = [probe for probe in probes if not probe.stopped]
        if not training:
            break
        batch = Targets(task.train.spans[rows], task.train.labels[rows], task.train.control[rows])
        for probe in training:
            probe.step(batch, 1 - iteration / length)
        if (iteration + 1) % (length // protocol.looks) == 0:
            for probe in training:
                probe.look(iteration + 1)
    return [probe.trained() for probe in probes]


def _batches(n: int, size: int) -> Iterator[slice]:
    """Endless batches of about `size` neighbours among n targets, which are in random order; each epoch in another."""
    random = np.random.default_rng(SEED)
    ends = np.linspace(0, n, -(-n // size) + 1).astype(int)
    while True:
        for i in random.permutation(len(ends) - 1):
            yield slice(ends[i], ends[i + 1])


class _LayerProbes:
    """The probe of one layer and that of its control task: K labels each, D features."""

    def __init__(self, states: Tensor, task: ProbingTask, protocol: Protocol):
        self._states, self._task, self._protocol = states, task, protocol  # [spans, H]
        sample = _features(states, task.train.spans[:SAMPLE])
        shape = 2, len(task.labels), sample.shape[1]
        self._mean, self._penalty = torch.zeros(2, shape[-1])
        self._whitening = None
        if protocol.whitened:
            self._mean = sample.mean(0)
            sample -= self._mean
            self._penalty = sample.square().mean(0) / len(task.train.labels)
            self._whitening = _whitening(sample, len(task.train.labels))  # P [D, D]
        # V and c such that logits are V P (x - mean) + c, their gradients' moments, and the best W and c so far
        self._values = torch.zeros(shape), torch.zeros(shape[:2])
        self._first, self._second = ([torch.zeros_like(value) for value in self._values] for _ in MOMENTS)
        self._best = [value.clone() for value in self._values]
        self._best_f1 = torch.full((2,), -1.0)
        self._waited = torch.zeros(2)  # looks since then
        self._rate = torch.full((2,), protocol.rate)
        self._steps = 0
        self._losses: list[Tensor] = []
        self._curve: list[Look] = []

    @property
    def stopped(self) -> bool:
        """Whether more training would change nothing."""
        patience = self._protocol.patience
        return patience is not None and bool((self._waited >= patience).all())

    def step(self, batch: Targets, left: float) -> None:
        """One step of Adam; `left` is the share of the iterations that are left."""
        x = _features(self._states, batch.spans).sub_(self._mean)
        labels = torch.from_numpy(np.stack([batch.labels, batch.control], axis=1))[..., None]  # [b, 2, 1]
        weights = self._weights()
        logs = self._logits(x, weights, self._values[1]).log_softmax(-1)  # [b, 2, K]
        self._losses.append(-logs.gather(2, labels).mean((0, 2)))
        errors = logs.exp_().scatter_add_(2, labels, logs.new_full(labels.shape, -1)).div_(len(x))
        gradient = product(errors.flatten(1).t(), x.t()).view_as(weights) + self._penalty * weights
        if self._whitening is not None:
            gradient = product(gradient.flatten(0, 1), self._whitening).view_as(weights)
        self._descend((gradient, errors.sum(0)), self._rate if self._protocol.patience else self._rate * left)

    def _descend(self, gradients: tuple[Tensor, Tensor], rate: Tensor) -> None:
        self._steps += 1
        correction = [1 - moment**self._steps for moment in MOMENTS]
        for value, gradient, first, second in zip(self._values, gradients, self._first, self._second, strict=True):
            first.lerp_(gradient, 1 - MOMENTS[0])
            second.lerp_(gradient.square(), 1 - MOMENTS[1])
            direction = (first / correction[0]) / ((second / correction[1]).sqrt_() + 1e-8)
            value -= rate.view(2, *[1] * (value.ndim - 1)) * direction

    def look(self, iteration: int) -> None:
        """Note loss and F1 in development; keep the weights if none were better so far."""
        values = self._weights(), self._values[1]
        f1 = self._f1(self._task.dev, *values)
        training = self._waited < (self._protocol.patience or torch.inf)
        better = training & (f1 > self._best_f1)
        for best, value in zip(self._best, values, strict=True):
            kept = training & (f1 >= self._best_f1)  # of equal ones the last, which has come farther
            best[kept] = value[kept]
        self._best_f1 = torch.where(better, f1, self._best_f1)
        self._waited = torch.where(better, 0, self._waited + 1)
        if self._protocol.patience:
            self._rate = torch.where(better, self._rate, self._rate / 2)
        loss = torch.stack(self._losses).mean(0)
        self._losses.clear()
        self._curve.append(Look(iteration, tuple(loss.tolist()), tuple(f1.tolist())))

    def trained(self) -> Trained:
        """F1 in the test with the best weights, and the curve."""
        return Trained(tuple(self._f1(self._task.test, *self._best).tolist()), self._curve)

    def _f1(self, targets: Targets, weights: Tensor, bias: Tensor) -> Tensor:
        """Share of targets whose label has the highest logit, [2]: with one label each, micro-averaged F1."""
        hits = torch.zeros(2, dtype=torch.int64)
        labels = torch.from_numpy(np.stack([targets.labels, targets.control], axis=1))
        for start in range(0, len(labels), CHUNK):
            rows = slice(start, start + CHUNK)
            x = _features(self._states, targets.spans[rows]).sub_(self._mean)
            hits += (self._logits(x, weights, bias).argmax(-1) == labels[rows]).sum(0)
        return hits.double() / len(labels)

    def _weights(self) -> Tensor:
        """W [2, K, D]"""
        values = self._values[0]
        if self._whitening is None:
            return values
        return product(values.flatten(0, 1), self._whitening.t()).view_as(values)

    @staticmethod
    def _logits(x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        """[b, 2, K] of centred features [b, D]."""
        return product(x, weights.flatten(0, 1)).unflatten(1, bias.shape) + bias


def _features(states: Tensor, spans: np.ndarray) -> Tensor:
    """Features [b, D] float32 of targets with spans [b, 1 or 2]."""
    rows = states.index_select(0, torch.from_numpy(spans).flatten())
    return rows.view(len(spans), -1).float()


def _whitening(sample: Tensor, n: int) -> Tensor:
    """P [D, D] such that P x has about the unit matrix for its covariance, if x [D] is as the centred `sample`.

    The fewer the n training targets, the less is known of directions in which they vary little: the variance that is
    added to all directions grows with (D / n) squared.
    """
    covariance = (sample.t() @ sample / len(sample)).double()
    ridge = max(RIDGE, (len(covariance) / n) ** 2)
    covariance.diagonal().add_(ridge * covariance.diagonal().mean() + 1e-30)
    lower = torch.linalg.cholesky(covariance)
    return torch.linalg.solve_triangular(lower, torch.eye(len(lower), dtype=torch.double), upper=False).float()
