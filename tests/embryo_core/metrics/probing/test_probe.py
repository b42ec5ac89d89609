"""A layer's two probes: their loss and its gradient, and F1, by the plain formulas in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from embryo_core.metrics.probing import probe
from embryo_core.metrics.probing.data import UNSEEN, ProbingTask
from embryo_core.metrics.probing.probe import Probes
from embryo_core.metrics.probing.whitening import whitening
from tests.embryo_core.metrics.probing.test_training import plain, random_task

EPSILON = float(np.finfo(np.float32).eps)


@pytest.fixture(params=[False, True], ids=["plain", "whitened"])
def probes(request) -> tuple[Probes, torch.Tensor, ProbingTask]:
    """Probes with random values, the states, and the task."""
    features, task = random_task(300, 4, 8, least=1)
    own = Probes(features[0], task, whitened=request.param)
    torch.manual_seed(0)
    for value in own.values:
        value.normal_()
    return own, features[0], task


def test_the_gradient_is_autograds(probes):
    """Of the cross-entropy of W (x - mean) + c, whitened with the penalty w² / 2 of standardised weights over n."""
    own, features, task = probes
    loss, gradients = own.loss(task.train)
    whitened = own._whitening is not None
    x = torch.from_numpy(plain(features, task.train)).double()
    variance = x.var(0, correction=0)
    x = x - x.mean(0) if whitened else x
    for i, labels in enumerate((task.train.labels, task.train.control)):
        values = [value[i].double().requires_grad_() for value in own.values]
        weights = values[0] @ own._whitening.matrix.double() if whitened else values[0]
        expected = torch.nn.functional.cross_entropy(x @ weights.T + values[1], torch.from_numpy(labels))
        penalty = (weights**2 * variance).sum() / 2 / len(x) if whitened else 0
        (expected + penalty).backward()
        logit = EPSILON * x.shape[1] * (x.abs() @ weights.abs().T).max().item()  # the error of one, from D additions
        assert loss[i].item() == pytest.approx(expected.item(), abs=2 * logit + EPSILON * len(x))
        mean = (2 * logit + EPSILON * len(x)) * x.abs().max().item()  # of errors times features, over n targets
        spread = own._whitening.matrix.abs().sum(1).max().item() if whitened else 1.0
        for gradient, value in zip(gradients, values, strict=True):
            error = (gradient[i].double() - value.grad).abs().max().item()
            assert error <= mean * spread < value.grad.abs().max().item() / 4


def test_features_are_whitened_by_those_of_all_training_targets():
    """Their number decides how far small variances are trusted."""
    features, task = random_task(300, 4, 8)
    x = torch.from_numpy(plain(features[0], task.train))
    own = Probes(features[0], task, whitened=True)
    assert torch.equal(own._whitening.matrix, whitening(x - x.mean(0), 300).matrix)


def test_f1_is_the_share_of_targets_labelled_right(probes, monkeypatch: pytest.MonkeyPatch):
    """Of both probes, in however many chunks; a label that training lacks is never right."""
    own, features, task = probes
    test = replace(task.test, labels=np.where(np.arange(len(task.test.labels)) % 3, task.test.labels, UNSEEN))
    weights, bias = own.weights
    x = torch.from_numpy(plain(features, test)) - own._mean
    given = [(x @ weights[i].T + bias[i]).argmax(1).numpy() for i in (0, 1)]
    expected = [float((given[0] == test.labels).mean()), float((given[1] == test.control).mean())]
    assert own.f1(test, weights, bias) == expected
    monkeypatch.setattr(probe, "CHUNK", 77)
    assert own.f1(test, weights, bias) == expected
