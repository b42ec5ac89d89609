"""The two objectives against a slow computation in double precision."""

import numpy as np
import pytest
from keras import ops

from pretrain.objectives import masked_language_model, sentence_order


def test_masked_language_model_is_mean_cross_entropy_over_used_positions():
    """Loss and accuracy leave out the positions with weight 0."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 4, 7)).astype(np.float32) * 5
    labels = rng.integers(0, 7, (3, 4)).astype(np.int32)
    weights = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], np.float32)
    losses, right = [], []
    for row, column in zip(*np.nonzero(weights), strict=True):
        scores = logits[row, column].astype(np.float64)
        losses.append(np.log(np.exp(scores).sum()) - scores[labels[row, column]])
        right.append(scores.argmax() == labels[row, column])
    targets = {"labels": ops.convert_to_tensor(labels), "weights": weights}
    found = masked_language_model(ops.convert_to_tensor(logits), targets)
    assert float(found.mean_loss) == pytest.approx(np.mean(losses), rel=1e-5)
    assert float(found.accuracy) == pytest.approx(np.mean(right))
    assert float(found.count) == len(losses)


def test_sentence_order_is_two_way_cross_entropy():
    """Class 0 is the text's order, class 1 swapped, as in transformers."""
    logits = np.array([[2.0, -1.0], [0.5, 1.5], [3.0, 3.5]], np.float32)
    swapped = np.array([0, 1, 0], np.int32)
    expected = np.mean([np.log(np.exp(row).sum()) - row[k] for row, k in zip(logits, swapped, strict=True)])
    found = sentence_order(ops.convert_to_tensor(logits), {"swapped": ops.convert_to_tensor(swapped)})
    assert float(found.mean_loss) == pytest.approx(expected, rel=1e-5)
    assert float(found.accuracy) == pytest.approx(2 / 3)
