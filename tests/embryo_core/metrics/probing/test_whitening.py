"""Whitened features have about the unit matrix for their covariance, whatever the features' own."""

import numpy as np
import pytest
import torch

from embryo_core.metrics.probing.whitening import RIDGE, Whitening, whitening


def correlated(n: int, features: int) -> torch.Tensor:
    """Centred features [n, D], correlated, with variances that lie far apart."""
    torch.manual_seed(0)
    mixing = torch.randn(features, features) * torch.logspace(0, -2, features)
    sample = torch.randn(n, features) @ mixing
    return sample - sample.mean(0)


@pytest.mark.parametrize(("n", "share"), [(10**6, RIDGE), (120, 1 / 100)])
def test_whitened_features_have_the_unit_matrix_for_covariance(n: int, share: float):
    """But for the ridge: a direction of variance v comes out with v / (v + ridge)."""
    sample = correlated(5000, 12)
    matrix = whitening(sample, n).matrix.double()
    covariance = (sample.T @ sample / len(sample)).double()
    ridge = share * covariance.diagonal().mean() * torch.eye(12)
    roundings = np.finfo(np.float32).eps * len(covariance) * torch.linalg.cond(covariance + ridge).item()
    found = matrix @ (covariance + ridge) @ matrix.T
    torch.testing.assert_close(found, torch.eye(12, dtype=torch.double), rtol=0, atol=roundings)


def test_few_targets_are_trusted_less():
    """With 10 targets for each feature the added variance is a hundredth of the mean; nothing is blown up beyond it."""
    sample = correlated(120, 12)
    covariance = sample.T @ sample / len(sample)
    largest = torch.linalg.matrix_norm(whitening(sample, 120).matrix, ord=2)
    assert largest <= 1 / torch.sqrt(covariance.diagonal().mean() / 100)


def test_the_gradient_goes_back_the_way_the_weights_came():
    """The gradient of sum(G * W) with respect to V is autograd's."""
    torch.manual_seed(1)
    matrix, learned, outer = torch.randn(6, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 6)
    learned.requires_grad_()
    (learned @ matrix * outer).sum().backward()
    found = Whitening(matrix)
    with torch.no_grad():
        torch.testing.assert_close(found.weights(learned), learned @ matrix)
        torch.testing.assert_close(found.gradient(outer), learned.grad)
