"""Tests of a network with its objectives: heads at masked positions, weighted losses, one trace for each shape."""

import numpy as np
import pytest
import torch
from keras import ops

from pretrain.batches import Data
from pretrain.config import Config
from pretrain.masking import Batch
from pretrain.model import PretrainingModel, targets
from pretrain.train import build
from tests.rounding import EPSILON, bound

WEIGHTS = {"masked_lm": 1.0, "sentence_order": 1.0}


@pytest.fixture(scope="module")
def batch(config: Config, data: Data) -> Batch:
    """Return a batch with both segments, whose rows are padded by 1, 2, 3, ... more tokens."""
    batch = data.training(config.short_steps)
    for row, padding in enumerate(range(1, 1 + len(batch.ids))):
        batch.ids[row, -padding:] = batch.token_type_ids[row, -padding:] = batch.attention_mask[row, -padding:] = 0
    return batch


@pytest.fixture(scope="module")
def logits_of(model: PretrainingModel, batch: Batch) -> dict[str, np.ndarray]:
    """Return the logits of both heads, those of the masked words for every position."""
    everywhere = np.broadcast_to(np.arange(batch.ids.shape[1], dtype=np.int32), batch.ids.shape)
    logits = model(batch.inputs() | {"positions": everywhere})
    return {name: np.array(ops.convert_to_numpy(tensor)) for name, tensor in logits.items()}


def of_logits(config: Config, logits: np.ndarray) -> float:
    """Return the tolerance of logits from equal states: sums over the states, twice in the norm, and over the table."""
    return bound(config.hidden_size + 3 * config.embedding_size, logits)


def test_logits_at_masked_positions_equal_those_computed_everywhere(
    config: Config, model: PretrainingModel, batch: Batch, logits_of: dict[str, np.ndarray]
):
    """Training computes logits only at the masked positions."""
    actual = ops.convert_to_numpy(model(batch.inputs())["masked_lm"])
    expected = np.take_along_axis(logits_of["masked_lm"], batch.positions[:, :, None], axis=1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=of_logits(config, expected))


def test_each_shape_of_batch_is_traced_once(config: Config, data: Data, monkeypatch: pytest.MonkeyPatch):
    """If short and long sequences alternate, the model is traced once for each of the two lengths."""
    traced, call = [], PretrainingModel.call
    model = build(config)
    model.jit_compile = False  # XLA would take long to compile the traces
    monkeypatch.setattr(PretrainingModel, "call", lambda *args, **named: traced.append(1) or call(*args, **named))
    for step in range(4):  # short, short, long, short
        model.train(data.training(step), WEIGHTS)
    assert len(traced) == 2


def test_loss_is_the_weighted_sum_of_objectives(model: PretrainingModel, batch: Batch):
    """The loss is linear in the weights, so an objective with weight 0 adds nothing."""
    logits = model(batch.inputs())
    actual = [
        float(model.compute_loss(y=targets(batch, {"masked_lm": words, "sentence_order": order}), y_pred=logits))
        for words, order in ((1.0, 0.0), (0.0, 1.0), (1.0, 0.25))
    ]
    assert actual[0] + 0.25 * actual[1] == pytest.approx(actual[2], rel=EPSILON) and min(actual) > 0


def test_loss_is_that_of_transformers(
    config: Config, model: PretrainingModel, batch: Batch, logits_of: dict[str, np.ndarray]
):
    """The reference is the sum of two mean cross entropies: at masked positions, and of pairs (label 0 if in order)."""
    used = batch.weights > 0
    logits = torch.tensor(np.take_along_axis(logits_of["masked_lm"], batch.positions[:, :, None], axis=1)[used])
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(batch.labels[used]).long())
    expected += torch.nn.functional.cross_entropy(
        torch.tensor(logits_of["sentence_order"]), torch.tensor(batch.pair).long()
    )
    actual = model.compute_loss(y=targets(batch, WEIGHTS), y_pred=model(batch.inputs()))
    sums = bound(config.vocab_size + batch.labels.size, logits_of["masked_lm"])  # in the softmax, and in the mean
    assert float(actual) == pytest.approx(float(expected), abs=2 * of_logits(config, logits_of["masked_lm"]) + sums)
