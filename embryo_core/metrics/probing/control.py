"""Control tasks of Hewitt and Liang (2019, https://arxiv.org/abs/1909.03368): each type has a random label of its own.

A type is what the words of a target's span are, or those of both its spans. Its label is drawn from the labels of the
training targets, once: it is the same wherever the type occurs, in every split, and at every step. Only memory of
the type can give it, so a probe reaches here what it would reach without any structure in the states.
"""

from collections.abc import Sequence

import numpy as np

SEED = 20


def control_labels(types: Sequence[Sequence[str]], labels: np.ndarray) -> list[np.ndarray]:
    """A label for every target of each split, given their types; drawn from the training `labels` [n]."""
    distinct = sorted({own for split in types for own in split})
    drawn = np.random.default_rng(SEED).choice(labels, len(distinct))
    label = dict(zip(distinct, drawn, strict=True))
    return [np.array([label[own] for own in split], labels.dtype) for split in types]
