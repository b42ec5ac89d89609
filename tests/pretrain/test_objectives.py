"""Tests of the objectives against a slow computation in double precision."""

import numpy as np
import pytest
from keras import ops

from pretrain.objectives import Detection, at_positions, predicted_tokens, replaced_tokens, sentence_pair


def test_masked_lm_loss_is_mean_cross_entropy_over_used_positions():
    """Loss and accuracy exclude positions with weight 0; of equal largest logits, the first is the answer."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 4, 7)).astype(np.float32).round() * 2  # rounded, so that some maxima are tied
    labels = (6 - logits[..., ::-1].argmax(-1)).astype(np.int32)  # the last of the tied maxima
    weights = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], np.float32)
    losses, right = [], []
    for row, column in zip(*np.nonzero(weights), strict=True):
        scores = logits[row, column].astype(np.float64)
        losses.append(np.log(np.exp(scores).sum()) - scores[labels[row, column]])
        right.append(scores.argmax() == labels[row, column])
    targets = {"labels": ops.convert_to_tensor(labels), "weights": weights}
    outcome = predicted_tokens(ops.convert_to_tensor(logits), targets)
    assert float(outcome.mean_loss) == pytest.approx(np.mean(losses), rel=1e-5)
    assert float(outcome.accuracy) == pytest.approx(np.mean(right))
    assert float(outcome.count) == len(losses)


def test_sentence_pair_loss_is_two_way_cross_entropy():
    """As in transformers, class 0 is the order of the text, and class 1 the swapped order."""
    logits = np.array([[2.0, -1.0], [0.5, 1.5], [3.0, 3.5]], np.float32)
    pair = np.array([0, 1, 0], np.int32)
    expected = np.mean([np.log(np.exp(row).sum()) - row[k] for row, k in zip(logits, pair, strict=True)])
    outcome = sentence_pair(ops.convert_to_tensor(logits), {"pair": ops.convert_to_tensor(pair)})
    assert float(outcome.mean_loss) == pytest.approx(expected, rel=1e-5)
    assert float(outcome.accuracy) == pytest.approx(2 / 3)


def test_replaced_token_loss_is_binary_cross_entropy_over_all_tokens():
    """A token is replaced if the sample differs from it; padding does not count, unused positions replace nothing."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(2, 6)).astype(np.float32) * 3
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], np.int32)
    positions = np.array([[2, 4, 0], [1, 0, 0]], np.int32)
    labels = np.array([[7, 8, 0], [9, 0, 0]], np.int32)
    sampled = np.array([[7, 5, 3], [6, 4, 4]], np.int32)
    replaced = np.array([[0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0]])
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    losses = -np.log(np.where(replaced == 1, probabilities, 1 - probabilities))[mask == 1]
    right = ((logits > 0) == (replaced == 1))[mask == 1]
    outcome = replaced_tokens(
        Detection(ops.convert_to_tensor(logits), ops.convert_to_tensor(sampled)),
        {"positions": positions, "labels": labels, "attention_mask": mask},
    )
    assert float(outcome.mean_loss) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(outcome.accuracy) == pytest.approx(right.mean()) and float(outcome.count) == 10
    np.testing.assert_array_equal(ops.convert_to_numpy(outcome.baseline_correct), 1 - replaced)


def test_values_are_placed_at_their_positions():
    """Integers as large as a vocabulary are exact, and values at the unused position 0 are dropped."""
    filled = at_positions(np.array([[30_521, 7, 9]]), np.array([[3, 1, 0]], np.int32), 5)
    np.testing.assert_array_equal(ops.convert_to_numpy(filled), [[0, 7, 0, 30_521, 0]])
