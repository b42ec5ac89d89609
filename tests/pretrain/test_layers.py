"""Tests of single layers: each dropout, shared layers, and padding that no token attends to."""

from dataclasses import replace

import numpy as np
import pytest
from keras import ops

from pretrain.encoders import Encoder
from pretrain.families.bert import PRESETS
from pretrain.layers import Embeddings, stack
from tests.rounding import bound

SMALL = replace(
    PRESETS["bert-tiny"],
    hidden_size=8,
    intermediate_size=16,
    num_hidden_layers=1,
    vocab_size=20,
    initializer_range=0.5,
    hidden_dropout_prob=0.5,
    attention_probs_dropout_prob=0.5,
)
DROPOUTS = ("embeddings", "attention weights", "attention output", "feed-forward output")


def encoder(place: str | None = None, layers: int = 1) -> Encoder:
    """Return an encoder of different layers, 8 wide, with dropout in one place or in none."""
    rate = {name: 0.5 if name == place else 0.0 for name in DROPOUTS}
    embeddings, made = Embeddings(SMALL, 8), stack(replace(SMALL, num_hidden_layers=layers))
    embeddings.dropout.rate = rate["embeddings"]  # built with dropout everywhere: a Dropout of rate 0 has no seeds
    for layer in made:
        layer.attention.weights_dropout.rate = rate["attention weights"]
        layer.attention.dropout.rate = rate["attention output"]
        layer.dropout.rate = rate["feed-forward output"]
    return Encoder(embeddings, made)


def states(model: Encoder, ids: np.ndarray, mask: np.ndarray | None = None, training: bool = False) -> list[np.ndarray]:
    """Return every hidden state of these ids."""
    outputs = model(ids, np.zeros_like(ids), np.ones_like(ids) if mask is None else mask, training=training)
    return [np.array(ops.convert_to_numpy(state)) for state in outputs]


@pytest.fixture(scope="module")
def ids() -> np.ndarray:
    """Return three sequences of six tokens."""
    return np.random.default_rng(0).integers(0, 20, (3, 6)).astype(np.int32)


@pytest.mark.parametrize("place", DROPOUTS)
def test_dropout_acts_in_each_place_while_training(place: str, ids: np.ndarray):
    """With dropout in this place, outputs change from call to call in training only."""
    model = encoder(place)
    still = states(model, ids)
    np.testing.assert_array_equal(still[-1], states(model, ids)[-1])
    assert not np.array_equal(still[-1], states(model, ids, training=True)[-1])
    assert np.array_equal(still[0], states(model, ids, training=True)[0]) == (place != "embeddings")


def test_dropout_settings_reach_each_dropout(ids: np.ndarray):
    """hidden_dropout_prob applies to both outputs, attention_probs_dropout_prob to the attention weights."""
    (layer,) = stack(replace(SMALL, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.4))
    assert (layer.dropout.rate, layer.attention.dropout.rate, layer.attention.weights_dropout.rate) == (0.3, 0.3, 0.4)


def test_repeated_layer_is_shared(ids: np.ndarray):
    """A layer in two places has one set of weights, and two layers have two."""
    shared, apart = encoder(), encoder(layers=2)
    shared = Encoder(shared.embeddings, shared.transformer * 2)
    counts = [len(model.trainable_variables) for model in (shared, apart) if states(model, ids)]
    assert counts[1] - counts[0] == len(apart.transformer[0].trainable_variables)


@pytest.mark.parametrize("layers", [1, 2])
def test_last_layer_computes_only_requested_rows(layers: int, ids: np.ndarray):
    """Their states are those of the whole computation; lower layers return all positions."""
    model, segments, mask = encoder(layers=layers), np.zeros_like(ids), np.ones_like(ids)
    mask[1, 3:] = 0
    rows = np.array([[0, 2, 5], [2, 1, 0], [4, 4, 3]], np.int32)
    *lower, last = (ops.convert_to_numpy(each) for each in model(ids, segments, mask, rows=rows))
    *expected, whole = states(model, ids, mask)
    np.testing.assert_array_equal(lower, expected)
    assert last.shape == (3, 3, 8)
    whole = np.take_along_axis(whole, rows[:, :, None], axis=1)
    np.testing.assert_allclose(last, whole, rtol=0, atol=bound(32, whole))


def test_padding_does_not_change_other_states(ids: np.ndarray):
    """The states of tokens do not depend on the ids where the mask is 0."""
    model, mask = encoder(layers=2), np.ones_like(ids)
    mask[:, 4:] = 0
    other = np.where(mask == 1, ids, 7)
    np.testing.assert_array_equal(states(model, ids, mask)[-1][:, :4], states(model, other, mask)[-1][:, :4])


@pytest.mark.parametrize(
    ("attentions", "feed_forwards", "layers"),
    [([0, 0, 0], [0, 0, 0], 1), ([0, 0, 0], [0, 1, 2], 3), ([0, 1, 1], [0, 0, 0], 2), ([0, 0, 1], [0, 0, 1], 2)],
)
def test_equal_numbers_mean_shared_parts(attentions: list[int], feed_forwards: list[int], layers: int):
    """Layers with equal numbers share an attention or a feed-forward network; those that share both are one layer."""
    made = stack(replace(SMALL, num_hidden_layers=len(attentions)), attentions, feed_forwards)
    for numbers, part in ((attentions, "attention"), (feed_forwards, "intermediate"), (feed_forwards, "norm")):
        same = [[getattr(a, part) is getattr(b, part) for b in made] for a in made]
        assert same == [[a == b for b in numbers] for a in numbers]
    assert len(set(map(id, made))) == layers
