"""Tolerances for two float32 computations of one network, from the precision and the sizes alone."""

import numpy as np

from embryo_core.engine.model import Model

EPSILON = float(np.finfo(np.float32).eps)
LAMBDA = 10.0  # of the probabilistic bound; it fails with probability 2 exp(-LAMBDA ** 2 / 2), about 1e-22 per number


def bound(additions: int, values: np.ndarray) -> float:
    """Return the absolute tolerance for two float32 results of many additions in series, for values of this size.

    Each addition rounds by at most u, half of float32's eps, relative to the sum. Errors of n additions in series
    partly cancel and stay below LAMBDA sqrt(n) u of the value's size (Higham and Mary 2019, "A new approach to
    probabilistic rounding error analysis"). Two computations have two such errors.
    """
    size = max(1.0, float(np.abs(values).max()))
    return float(2 * LAMBDA * np.sqrt(additions) * EPSILON / 2 * size)


def rounding(model: Model, length: int, values: np.ndarray) -> float:
    """Return the absolute tolerance for states, logits or attention scores `values` of sequences of `length` pieces.

    A layer has products over H inputs (query, output, inner), over the size of a head and the length (attention) and
    over 4 H (outer); a normalisation after each of its halves preserves the size. One more layer is counted for the
    embeddings and the head.
    """
    hidden = model.hidden_size
    additions = (model.num_layers + 1) * (3 * hidden + hidden // model.num_heads + length + 4 * hidden + 2 * hidden)
    return bound(additions, values)


def probability_rounding(model: Model, length: int, probabilities: np.ndarray) -> float:
    """Return the relative tolerance for (products of) probabilities from logits of sequences of `length` pieces.

    A probability is the exponential of a logit minus the logarithm of the sum of all exponentials. Both errors are at
    most the rounding of a logit, and logits are about as large as the logarithms of probabilities.
    """
    return 2 * rounding(model, length, np.log(probabilities))
