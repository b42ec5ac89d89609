"""The loss is the mean cross-entropy of each probe, and its gradient is autograd's."""

import numpy as np
import torch

from embryo_core.metrics.probing.loss import cross_entropy

EPSILON = float(np.finfo(np.float32).eps)


def test_loss_and_gradient_are_those_of_torch():
    """For each probe by itself, in float64 by autograd; a float32 logarithm of K exponentials is off by K roundings."""
    torch.manual_seed(0)
    batch, probes, labels = 50, 2, 7
    logits = torch.randn(batch, probes, labels) * 3
    true = torch.randint(0, labels, (batch, probes))
    loss, gradient = cross_entropy(logits.clone(), true)
    exact = logits.double().requires_grad_()
    for probe in range(probes):
        expected = torch.nn.functional.cross_entropy(exact[:, probe], true[:, probe])
        expected.backward()
        roundings = (labels + batch) * EPSILON
        torch.testing.assert_close(loss[probe].double(), expected, rtol=roundings, atol=roundings)
    torch.testing.assert_close(gradient.double(), exact.grad, rtol=0, atol=(labels + 20) * EPSILON / batch)
