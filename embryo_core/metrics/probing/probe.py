"""The linear probe of a layer and that of its control task: logits W x + b over the labels, for a target's features x.

The features are the mean state of the pieces of a target's span, or of both its spans, one after the other (Tenney et
al., 2019, https://arxiv.org/abs/1905.06316). The two probes share the features and nothing else.
"""

import numpy as np
import torch
from torch import Tensor

from embryo_core.engine.cpu import product
from embryo_core.metrics.probing.data import ProbingTask, Targets
from embryo_core.metrics.probing.loss import cross_entropy
from embryo_core.metrics.probing.whitening import whitening

CHUNK = 4096  # targets whose features are float32 at once, outside of training
SAMPLE = 16_384  # training targets that mean and covariance are taken of


class Probes:
    """Two probes of one layer, of the task (0) and of its control task (1): K labels, D features.

    What is learned are `values`, V [2, K, D] and c [2, K]: logits are W (x - mean) + c. Whitened, W is V P and the loss
    has the penalty of scikit-learn's LogisticRegression (C = 1) on standardised features; plain, W is V, and the mean
    and the penalty are 0.
    """

    def __init__(self, states: Tensor, task: ProbingTask, whitened: bool):
        self._states = states  # [spans, H] float16
        sample = _features(states, task.train.spans[:SAMPLE])
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
        """W [2, K, D] and c [2, K]."""
        learned, bias = self.values
        return (learned if self._whitening is None else self._whitening.weights(learned)), bias

    def loss(self, batch: Targets) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Mean cross-entropy on a batch, [2], and the gradient of the penalised loss with respect to `values`."""
        x = self._centred(batch.spans)
        weights, bias = self.weights
        loss, errors = cross_entropy(_logits(x, weights, bias), _labels(batch))
        gradient = product(errors.flatten(1).t(), x.t()).view_as(weights) + self._penalty * weights
        if self._whitening is not None:
            gradient = self._whitening.gradient(gradient)
        return loss, (gradient, errors.sum(0))

    def f1(self, targets: Targets, weights: Tensor, bias: Tensor) -> list[float]:
        """Micro-averaged F1 of these W and c: the share of targets whose label has the highest logit.

        Every target has one label and gets one, so each mistake is one false positive and one false negative.
        """
        hits = torch.zeros(2, dtype=torch.int64)
        labels = _labels(targets)
        for start in range(0, len(labels), CHUNK):
            rows = slice(start, start + CHUNK)
            logits = _logits(self._centred(targets.spans[rows]), weights, bias)
            hits += (logits.argmax(-1) == labels[rows]).sum(0)
        return (hits.double() / len(labels)).tolist()

    def _centred(self, spans: np.ndarray) -> Tensor:
        return _features(self._states, spans).sub_(self._mean)


def _features(states: Tensor, spans: np.ndarray) -> Tensor:
    """Features [b, D] float32 of targets with spans [b, 1 or 2]."""
    rows = states.index_select(0, torch.from_numpy(spans).flatten())
    return rows.view(len(spans), -1).float()


def _labels(targets: Targets) -> Tensor:
    """Labels [b, 2] of targets in the task and in its control task."""
    return torch.from_numpy(np.stack([targets.labels, targets.control], axis=1))


def _logits(x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Logits [b, 2, K] of centred features [b, D]."""
    return product(x, weights.flatten(0, 1)).unflatten(1, bias.shape) + bias
