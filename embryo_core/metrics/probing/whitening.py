"""Whitened coordinates of a probe's features, in which descent reaches its optimum in few steps.

A transformer's states vary much in few directions and little in the others, and descent in plain coordinates takes very
long to make use of the others. So a probe learns V where its weights are W = V P, and P whitens the features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from embryo_core.engine.cpu import product

RIDGE = 1e-5  # added to the covariance, in units of the mean variance: float16 tells nothing below


@dataclass(frozen=True, eq=False)
class Whitening:
    """The matrix P [D, D], between a probe's whitened coordinates V and its weights W, both [2, K, D]."""

    matrix: Tensor

    def weights(self, whitened: Tensor) -> Tensor:
        """W = V P."""
        return product(whitened.flatten(0, 1), self.matrix.t()).view_as(whitened)

    def gradient(self, of_weights: Tensor) -> Tensor:
        """The gradient with respect to V, of that with respect to W."""
        return product(of_weights.flatten(0, 1), self.matrix).view_as(of_weights)


def whitening(sample: Tensor, n: int) -> Whitening:
    """P such that P x has about the unit matrix for its covariance, if x [D] is as the centred `sample` [s, D].

    The fewer the n training targets, the less is known of directions in which they vary little: the variance that is
    added to all directions grows with (D / n) squared.
    """
    covariance = (sample.t() @ sample / len(sample)).double()
    ridge = max(RIDGE, (len(covariance) / n) ** 2)
    covariance.diagonal().add_(ridge * covariance.diagonal().mean() + 1e-30)
    lower = torch.linalg.cholesky(covariance)
    inverse = torch.linalg.solve_triangular(lower, torch.eye(len(lower), dtype=torch.double), upper=False)
    return Whitening(inverse.float())
