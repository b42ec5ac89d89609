"""Keras and transformers compute the same: hidden states and the logits of both heads, from the exported weights."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from keras import ops
from transformers import AlbertForPreTraining

from pretrain.batches import Data
from pretrain.config import Config
from pretrain.export import write_checkpoint
from pretrain.masking import MaskedBatch
from pretrain.model import PretrainingModel, targets
from pretrain.state import Progress
from pretrain.train import build

TOLERANCE = 1e-4
WEIGHTS = {"masked_lm": 1.0, "sentence_order": 1.0}


class Computed(NamedTuple):
    """What one model makes of one batch."""

    states: list[np.ndarray]  # layers + 1 of [B, L, H]
    masked_lm: np.ndarray  # [B, L, V]
    sentence_order: np.ndarray  # [B, 2]


@pytest.fixture(scope="module")
def batch(config: Config, data: Data) -> MaskedBatch:
    """A batch with both segments, padded by 1 to 9 tokens more than it came with."""
    batch = data.training(config.short_steps)
    for row, padding in enumerate(range(1, 1 + len(batch.ids))):
        batch.ids[row, -padding:] = batch.token_type_ids[row, -padding:] = batch.attention_mask[row, -padding:] = 0
    return batch


@pytest.fixture(scope="module")
def ours(model: PretrainingModel, batch: MaskedBatch) -> Computed:
    """The batch through Keras, the masked-token head at every position."""
    inputs = batch.inputs()
    states = model.encoder(inputs["ids"], inputs["token_type_ids"], inputs["attention_mask"])
    everywhere = np.broadcast_to(np.arange(batch.ids.shape[1], dtype=np.int32), batch.ids.shape)
    logits = model(inputs | {"positions": everywhere})
    arrays = map(ops.convert_to_numpy, (*states, logits["masked_lm"], logits["sentence_order"]))
    *found, masked_lm, sentence_order = arrays
    return Computed(found, masked_lm, sentence_order)


@pytest.fixture(scope="module")
def theirs(
    model: PretrainingModel, config: Config, batch: MaskedBatch, tmp_path_factory: pytest.TempPathFactory
) -> Computed:
    """The batch through transformers, from the checkpoint of the same weights."""
    folder = write_checkpoint(model, config, tmp_path_factory.mktemp("run"), Progress(3, 24, 300))
    loaded, report = AlbertForPreTraining.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    ids, kinds, mask = (torch.tensor(a) for a in (batch.ids, batch.token_type_ids, batch.attention_mask))
    with torch.no_grad():
        output = loaded.eval()(ids, mask, kinds, output_hidden_states=True)
    states = [state.numpy() for state in output.hidden_states]
    return Computed(states, output.prediction_logits.numpy(), output.sop_logits.numpy())


def test_the_batch_has_padding_and_both_segments(batch: MaskedBatch):
    """What is compared below includes the masked-out columns and the second segment."""
    assert (batch.attention_mask.sum(1) < batch.ids.shape[1]).all() and batch.token_type_ids.any(1).sum() > 4


def test_every_hidden_state_agrees(ours: Computed, theirs: Computed, config: Config):
    """The projected embeddings and the output of each of the layers, at every position, padding included."""
    assert len(ours.states) == len(theirs.states) == config.num_hidden_layers + 1
    for mine, other in zip(ours.states, theirs.states, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=TOLERANCE)


def test_logits_of_both_heads_agree(ours: Computed, theirs: Computed):
    """Masked tokens at every position, and the order of the segments."""
    np.testing.assert_allclose(ours.masked_lm, theirs.masked_lm, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(ours.sentence_order, theirs.sentence_order, rtol=0, atol=TOLERANCE)
    assert np.ptp(ours.masked_lm) > 1 and np.ptp(ours.sentence_order) > 0.1  # nothing agrees for being zero


def test_the_head_at_given_positions_is_the_head_everywhere(
    model: PretrainingModel, batch: MaskedBatch, ours: Computed
):
    """Training computes logits at masked positions only; they are rows of those at every position."""
    found = ops.convert_to_numpy(model(batch.inputs())["masked_lm"])
    expected = np.take_along_axis(ours.masked_lm, batch.positions[:, :, None], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_each_shape_of_batch_is_traced_once(config: Config, data: Data, monkeypatch: pytest.MonkeyPatch):
    """However often short and long sequences take turns, the model is traced once for each of the two."""
    traced, call = [], PretrainingModel.call
    model = build(config, data.training(0))
    monkeypatch.setattr(PretrainingModel, "call", lambda *given, **named: traced.append(1) or call(*given, **named))
    for step in range(7):
        model.train(data.training(step), WEIGHTS)
    assert len(traced) == 2


def test_losses_are_summed_with_their_weights(model: PretrainingModel, batch: MaskedBatch):
    """The loss is linear in the weights, and an objective of weight 0 counts for nothing."""
    logits = model(batch.inputs())
    found = [
        float(model.compute_loss(y=targets(batch, {"masked_lm": words, "sentence_order": order}), y_pred=logits))
        for words, order in ((1.0, 0.0), (0.0, 1.0), (1.0, 0.25))
    ]
    assert found[0] + 0.25 * found[1] == pytest.approx(found[2], rel=1e-6) and min(found) > 0


def test_our_loss_is_that_of_transformers(model: PretrainingModel, config: Config, batch: MaskedBatch, ours: Computed):
    """Labels at the masked positions, 0 for segments in order: the sum of both mean cross entropies."""
    used = batch.weights > 0
    logits = torch.tensor(np.take_along_axis(ours.masked_lm, batch.positions[:, :, None], axis=1)[used])
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(batch.labels[used]).long())
    expected += torch.nn.functional.cross_entropy(torch.tensor(ours.sentence_order), torch.tensor(batch.swapped).long())
    found = model.compute_loss(y=targets(batch, WEIGHTS), y_pred=model(batch.inputs()))
    assert float(found) == pytest.approx(float(expected), abs=TOLERANCE)
