"""Linear probes: their features, their loss with its gradient, and their F1.

A target's features are the mean state of the pieces of its span; with two spans, both means are concatenated (Tenney et
al., 2019, https://arxiv.org/abs/1905.06316). Each layer has two probes, for the task and for its control task, which
share only their features. Gradients are written out, because the engine's fast product has no autograd.
"""

import math
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from embryo_core.engine.kernels import product
from embryo_core.errors import BrokenCheckpoint
from embryo_core.metrics import batches
from embryo_core.metrics.probing.data import ProbingData, ProbingTask, Targets

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

CHUNK_SIZE = 4096  # targets per chunk of float32 features, outside of training
SAMPLE_SIZE = 16_384  # training targets from which mean and covariance are computed
RIDGE = 1e-5  # added to the covariance, in units of the mean variance: the resolution of float16


# === Features ===


def span_features(model: "Model", data: ProbingData, memory: int) -> Tensor:
    """Return the mean states [num_layers + 1, spans, H] of spans in float16, from one pass per distinct sentence.

    Above `memory` bytes they are mapped from an unnamed file, which is deleted when the process ends. Raises
    BrokenCheckpoint if a mean state exceeds the largest number of float16.
    """
    shape = model.num_layers + 1, len(data.sentence), model.hidden_size
    if 2 * math.prod(shape) <= memory:
        features = torch.empty(shape, dtype=torch.float16)
    else:
        with tempfile.TemporaryFile() as file:  # the mapping keeps the file open
            features = torch.from_numpy(np.memmap(file, np.float16, "w+", shape=shape))
    by_sentence = np.argsort(data.sentence, kind="stable")
    first = np.searchsorted(data.sentence[by_sentence], np.arange(len(data.sentences) + 1))

    def pool(batch: np.ndarray, ids: np.ndarray) -> None:
        states = torch.from_numpy(model.hidden_states(ids)).flatten(1, 2)  # [layers + 1, b L, H]
        spans = np.concatenate([by_sentence[first[i] : first[i + 1]] for i in batch])
        begin = np.repeat(np.arange(len(batch)) * ids.shape[1], first[batch + 1] - first[batch])
        means = _means(states, data.start[spans] + begin, data.end[spans] + begin)
        if not all(mean.isfinite().all() for mean in means):
            raise BrokenCheckpoint(
                f"{model.checkpoint.path}: a state exceeds {torch.finfo(torch.float16).max:,.0f}, the largest float16 "
                "number, in which edge probing stores states; leave out this step."
            )
        for feature, mean in zip(features, means, strict=True):
            feature.index_copy_(0, torch.from_numpy(spans), mean)

    batches.map_batches(model, data.sentences, pool)
    return features


def _means(states: Tensor, start: np.ndarray, end: np.ndarray) -> list[Tensor]:
    """Return the means [n, H] float16 of pieces `start` to `end` [n] at each layer of `states` [layers, pieces, H]."""
    before = np.cumsum(end - start) - (end - start)  # pieces of the spans before each
    pieces = np.arange((end - start).sum()) + np.repeat(start - before, end - start)
    indices, offsets = torch.from_numpy(pieces), torch.from_numpy(before)
    return [embedding_bag(indices, layer, offsets, mode="mean").half() for layer in states]


def _features(states: Tensor, spans: np.ndarray) -> Tensor:
    """Return the features [b, D] in float32 of targets with spans [b, 1 or 2]."""
    rows = states.index_select(0, torch.from_numpy(spans).flatten())
    return rows.view(len(spans), -1).float()


# === Whitening ===


@dataclass(frozen=True, eq=False)
class Whitening:
    """The matrix P [D, D] that turns a probe's whitened coordinates V into its weights W = V P, both [2, K, D].

    A transformer's states vary much in few directions and little in the rest, in which gradient descent in plain
    coordinates learns slowly. In whitened coordinates it converges in few steps.
    """

    matrix: Tensor

    def weights(self, whitened: Tensor) -> Tensor:
        """Return W = V P."""
        return product(whitened.flatten(0, 1), self.matrix.t()).view_as(whitened)

    def gradient(self, of_weights: Tensor) -> Tensor:
        """Return the gradient with respect to V, given the gradient with respect to W."""
        return product(of_weights.flatten(0, 1), self.matrix).view_as(of_weights)


def whitening(sample: Tensor, n: int) -> Whitening:
    """Return P such that P x has about unit covariance, for x [D] distributed like the centred `sample` [s, D].

    With few training targets n, directions of little variance are estimated badly, so the variance added to all
    directions grows with (D / n) squared.
    """
    covariance = (sample.t() @ sample / len(sample)).double()
    ridge = max(RIDGE, (len(covariance) / n) ** 2)
    covariance.diagonal().add_(ridge * covariance.diagonal().mean() + 1e-30)
    lower = torch.linalg.cholesky(covariance)
    inverse = torch.linalg.solve_triangular(lower, torch.eye(len(lower), dtype=torch.double), upper=False)
    return Whitening(inverse.float())


# === Probes ===


class Probes:
    """The two probes of one layer, for the task (0) and for its control task (1), with K labels and D features.

    The trained parameters are `values`, V [2, K, D] and c [2, K]; logits are W (x - mean) + c. If `whitened`, W is V P
    and the loss has the penalty of scikit-learn's LogisticRegression (C = 1) on standardised features. Otherwise W is
    V, and mean and penalty are 0.
    """

    def __init__(self, states: Tensor, task: ProbingTask, whitened: bool):
        self._states = states  # [spans, H] float16
        sample = _features(states, task.train.spans[:SAMPLE_SIZE])
        shape = 2, len(task.labels), sample.shape[1]
        self.values = torch.zeros(shape), torch.zeros(shape[:2])
        self._mean, self._penalty = torch.zeros(2, shape[-1])
        self._whitening = None
        if whitened:
            self._mean = sample.mean(0)
            sample -= self._mean
            self._penalty = sample.square().mean(0) / len(task.train.labels)
            self._whitening = whitening(sample, len(task.train.labels))

    @property
    def weights(self) -> tuple[Tensor, Tensor]:
        """Return W [2, K, D] and c [2, K]."""
        learned, bias = self.values
        return (learned if self._whitening is None else self._whitening.weights(learned)), bias

    def loss(self, batch: Targets) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the mean cross-entropy on a batch, [2], and the penalised loss's gradient with respect to `values`."""
        x = self._centred(batch.spans)
        weights, bias = self.weights
        loss, errors = cross_entropy(_logits(x, weights, bias), _labels(batch))
        gradient = product(errors.flatten(1).t(), x.t()).view_as(weights) + self._penalty * weights
        if self._whitening is not None:
            gradient = self._whitening.gradient(gradient)
        return loss, (gradient, errors.sum(0))

    def f1(self, targets: Targets, weights: Tensor, bias: Tensor) -> list[float]:
        """Return micro-averaged F1 with these W and c: the share of targets whose label has the highest logit.

        A target has one label and one prediction, so each mistake is one false positive and one false negative.
        """
        hits = torch.zeros(2, dtype=torch.int64)
        labels = _labels(targets)
        for start in range(0, len(labels), CHUNK_SIZE):
            rows = slice(start, start + CHUNK_SIZE)
            logits = _logits(self._centred(targets.spans[rows]), weights, bias)
            hits += (logits.argmax(-1) == labels[rows]).sum(0)
        return (hits.double() / len(labels)).tolist()

    def _centred(self, spans: np.ndarray) -> Tensor:
        return _features(self._states, spans).sub_(self._mean)


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cross-entropy of each probe in nats, [p], and its gradient for the logits, [b, p, K].

    Logits [b, p, K] are of p probes for the same b targets; labels are int64 [b, p]. The gradient is the probabilities
    minus 1 at the true label, divided by b.
    """
    labels = labels[..., None]
    log_probabilities = logits.log_softmax(-1)
    loss = -log_probabilities.gather(2, labels).mean((0, 2))
    errors = log_probabilities.exp_().scatter_add_(2, labels, log_probabilities.new_full(labels.shape, -1))
    return loss, errors.div_(len(logits))


def _labels(targets: Targets) -> Tensor:
    """Return the labels [b, 2] of targets in the task and in its control task."""
    return torch.from_numpy(np.stack([targets.labels, targets.control], axis=1))


def _logits(x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Return the logits [b, 2, K] of centred features [b, D]."""
    return product(x, weights.flatten(0, 1)).unflatten(1, bias.shape) + bias
