"""Tests of ELECTRA's generator: samples follow its probabilities, replace the masks, and pass no gradient."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from pretrain.batches import Data, prepare_data
from pretrain.families import FAMILIES, preset
from pretrain.masking import DRAWS
from pretrain.measure import HeldoutEvaluator, heldout_row
from pretrain.model import GeneratorModel, fill_masks, sample, targets
from pretrain.train import build

pytestmark = pytest.mark.usefixtures("eager")  # tests/pretrain/test_measure.py runs compiled


@pytest.fixture(scope="module")
def electra_data(texts, cache) -> Data:
    """Return the sample text as batches of the tiny ELECTRA."""
    return prepare_data(preset("electra-tiny"), [str(texts[0])], [str(texts[1])], cache)


@pytest.fixture(scope="module")
def electra() -> GeneratorModel:
    """Return the untrained tiny ELECTRA without dropout."""
    from dataclasses import replace

    config = replace(preset("electra-tiny"), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return build(config)


def test_samples_follow_probabilities():
    """Over evenly spaced draws, the share of each token is its probability."""
    probabilities = np.array([0.5, 0.0, 0.3, 0.2])
    draws = np.arange(0, DRAWS, DRAWS // 1000, dtype=np.int32)[None]
    logits = np.log(np.maximum(probabilities, 1e-30)).astype(np.float32)
    actual = ops.convert_to_numpy(sample(np.tile(logits, (1, draws.size, 1)), draws))
    shares = np.bincount(actual.ravel(), minlength=4) / draws.size
    np.testing.assert_allclose(shares, probabilities, atol=2 / draws.size)


def test_largest_draw_is_valid_token():
    """Rounding must not lead past the vocabulary."""
    logits = np.random.default_rng(0).normal(size=(1, 50, 3000)).astype(np.float32)
    actual = ops.convert_to_numpy(sample(logits, np.full((1, 50), DRAWS - 1, np.int32)))
    assert actual.max() < 3000 and actual.min() > 2000


def test_samples_replace_masked_tokens():
    """A used position is filled whatever token it had; position 0 marks an unused prediction."""
    ids = np.array([[2, 7, 4, 9, 3]], np.int32)
    filled = fill_masks(ids, np.array([[30_000, 11, 12]], np.int32), np.array([[2, 4, 0]], np.int32))
    np.testing.assert_array_equal(ops.convert_to_numpy(filled), [[2, 7, 30_000, 9, 11]])


def test_discriminator_reads_samples(electra: GeneratorModel, electra_data: Data):
    """Its logits are those of its encoder on the text in which samples replace the masked tokens."""
    batch = electra_data.training(0)
    inputs = batch.inputs()
    detection = electra(inputs)["replaced_token"]
    sampled = ops.convert_to_numpy(detection.sampled)
    ids = batch.ids.copy()
    for row, column in zip(*np.nonzero(batch.weights), strict=True):
        ids[row, batch.positions[row, column]] = sampled[row, column]
    states = electra.encoder(ids, batch.token_type_ids, batch.attention_mask)
    expected = electra.heads["replaced_token"](states[-1])
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (detection.logits, expected)))


def test_samples_are_determined_by_step(electra: GeneratorModel, electra_data: Data):
    """The same step gives the same samples, and another step different ones."""
    actual = [ops.convert_to_numpy(electra(electra_data.training(step).inputs())["replaced_token"].sampled)
             for step in (3, 3, 4)]  # fmt: skip
    assert np.array_equal(actual[0], actual[1]) and not np.array_equal(actual[0], actual[2])


def test_replaced_token_baseline_is_share_of_originals(electra: GeneratorModel, electra_data: Data):
    """It is counted token by token for each measure, without padding and unused predictions."""
    heldout = list(electra_data.heldout())
    measures = HeldoutEvaluator(electra, heldout).measure()
    for part, measure in zip(heldout, measures, strict=True):
        original, tokens = 0, 0
        for batch in part.batches:
            sampled = ops.convert_to_numpy(electra(batch.inputs())["replaced_token"].sampled)
            tokens += int(batch.attention_mask.sum())
            original += int(batch.attention_mask.sum() - ((sampled != batch.labels) & (batch.weights > 0)).sum())
        assert measure["replaced_token_n"] == tokens
        assert measure["replaced_token_baseline"] == pytest.approx(original / tokens) and 0.7 < original / tokens < 1
    row = heldout_row(measures, FAMILIES["electra"].objectives(preset("electra-tiny")))
    assert row["replaced_token_baseline"] == measures[0]["replaced_token_baseline"]
    assert "masked_lm_baseline" not in row


def test_no_gradient_passes_through_samples(electra: GeneratorModel, electra_data: Data):
    """The discriminator's loss alone gives no gradient to the generator's layers, but one to the shared embeddings."""
    batch = electra_data.training(0)
    with tf.GradientTape() as tape:
        loss = electra.compute_loss(
            y=targets(batch, {"masked_lm": 0.0, "replaced_token": 1.0}), y_pred=electra(batch.inputs())
        )
    own = [variable for variable in electra.trainable_variables if "generator" in variable.path]
    shared = electra.generator.embeddings.word.embeddings
    assert shared is electra.encoder.embeddings.word.embeddings
    of_own, of_shared = tape.gradient(loss, [[variable.value for variable in own], shared.value])
    apart = [g for v, g in zip(own, of_own, strict=True) if "embeddings" not in v.path]
    assert len(apart) > 10 and all(g is None or not np.any(g) for g in apart)
    assert np.any(of_shared)


def test_loss_weights_equal_original_ones():
    assert FAMILIES["electra"].loss_weights(preset("electra-small"), 0) == {"masked_lm": 1.0, "replaced_token": 50.0}
