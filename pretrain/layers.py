"""The layers of the families, in backend-neutral Keras: dropout, embeddings, attention and feed-forward networks."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import keras
from keras import ops

from pretrain.config import Config

MAX_SEED = 1_000_000_000  # largest seed of a dropout layer
SEED_STRIDE = 1_000_003  # difference between the seeds of two replicas


def initializer(stddev: float) -> keras.initializers.Initializer:
    """Return a normal truncated at 2 `stddev`, which leaves a standard deviation of 0.88 `stddev`.

    It is seeded by keras.utils.set_random_seed; reusing it would repeat the same values.
    """
    return keras.initializers.TruncatedNormal(stddev=stddev)


def dense(units: int, stddev: float, **options) -> keras.layers.Dense:
    """Return a dense layer whose weights are drawn from a truncated normal and whose bias is zero."""
    return keras.layers.Dense(units, kernel_initializer=initializer(stddev), **options)


def layer_norm(epsilon: float) -> keras.layers.LayerNormalization:
    """Return layer normalisation over the last axis; the optimizer excludes it from weight decay by its name."""
    return keras.layers.LayerNormalization(epsilon=epsilon, name="layer_norm")


def gelu(x):
    """Compute GELU with the error function, as in the original ELECTRA (`gelu` in transformers)."""
    return keras.activations.gelu(x, approximate=False)


def gelu_tanh(x):
    """Compute GELU in its tanh form, as in the original BERT, ALBERT and GPT-2 (`gelu_new` in transformers)."""
    return keras.activations.gelu(x, approximate=True)


def activation(name: str) -> Callable:
    """Return the activation of this name in transformers, one of `config.CHOICES`."""
    return {"gelu": gelu, "gelu_new": gelu_tanh}[name]


def rows_of(states, rows):
    """Return the states [B, R, H] of `states` [B, L, H] at the positions `rows` [B, R]."""
    return ops.take_along_axis(states, rows[:, :, None], axis=1)


def build(shapes: dict[keras.layers.Layer, tuple | None]) -> None:
    """Create the weights of layers for inputs of these shapes, once for a shared layer.

    Keras would also create them, but by tracing `call` again at every level of nesting, which takes many seconds.
    """
    for layer, shape in shapes.items():
        if not layer.built:
            layer.build(shape)


# === Dropout ===


class Seeds(keras.random.SeedGenerator):
    """Seeds of dropout that differ between replicas of TensorFlow; Keras's own generator gives all replicas the same.

    The saved state counts the draws, so it is the same for any number of replicas. The seed is explicit, because
    without one Keras on torch does not count the draws, and a run could not resume.
    """

    def __init__(self):
        super().__init__(seed=random.randint(1, MAX_SEED))  # drawn as Keras draws a default seed

    def next(self, ordered: bool = True):
        """Return the seed of the next draw, two integers."""
        seed = super().next(ordered)
        if keras.backend.backend() != "tensorflow":
            return seed
        import tensorflow as tf

        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return seed + tf.stack([tf.cast(replica, seed.dtype) * SEED_STRIDE, tf.zeros((), seed.dtype)])


class Dropout(keras.layers.Layer):
    """Dropout: in training, sets a share `rate` of the numbers to 0 and divides the rest by 1 - rate."""

    def __init__(self, rate: float, **options):
        super().__init__(**options)
        self.rate = rate
        if rate:
            self.seeds = Seeds()

    def call(self, x, training=False):
        """Apply dropout to x; return x unchanged, without a draw, outside training or if the rate is 0.

        XLA on a CPU computes ThreeFry five times as fast as Philox, TensorFlow's default, which took a fifth of an
        ELECTRA's update. Outside XLA there is no ThreeFry.
        """
        if not training or not self.rate:
            return x
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            if tf.inside_function() and not tf.distribute.has_strategy():  # compiled by XLA
                seed = self.seeds.next()
                return tf.nn.experimental.stateless_dropout(x, self.rate, seed, rng_alg="threefry")
        return keras.random.dropout(x, self.rate, seed=self.seeds)


# === Transformer ===


def tables(config: Config, size: int) -> tuple[keras.layers.Embedding, keras.layers.Embedding]:
    """Return the embedding tables of words and of positions, with rows of `size` numbers."""
    stddev = config.initializer_range
    word = keras.layers.Embedding(config.vocab_size, size, initializer(stddev), name="word")
    position_initializer = initializer(config.position_initializer_range or stddev)
    return word, keras.layers.Embedding(config.max_position_embeddings, size, position_initializer, name="position")


class Embeddings(keras.layers.Layer):
    """Sum of word, position and segment embeddings, normalised: ids [B, L] -> [B, L, E].

    Only words are looked up row by row. In TensorFlow, the gradient of a lookup is a list with a row for each use, and
    Keras clips by the norm of this list, which is not the norm of the summed gradient. The word table has a dense
    gradient nevertheless, because the masked-word head multiplies by the whole table.
    """

    def __init__(self, config: Config, size: int):
        super().__init__(name="embeddings")
        self.word, self.position = tables(config, size)
        self.segment = keras.layers.Embedding(2, size, initializer(config.initializer_range), name="segment")
        self.norm = layer_norm(config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def build(self, *_):
        tables = (self.word, self.position, self.segment)
        build(dict.fromkeys(tables) | {self.norm: (None, None, self.word.output_dim)})

    def call(self, ids, token_type_ids, training=False):
        positions = ops.cast(self.position.embeddings[: ops.shape(ids)[1]], self.compute_dtype)  # (L, E)
        segments = ops.one_hot(token_type_ids, 2, dtype=self.compute_dtype)  # (B, L, 2)
        segments = ops.matmul(segments, ops.cast(self.segment.embeddings, self.compute_dtype))  # (B, L, E)
        return self.dropout(self.norm(self.word(ids) + positions + segments), training=training)


class DecoderEmbeddings(keras.layers.Layer):
    """Sum of word and position embeddings: ids [B, L] -> [B, L, H]."""

    def __init__(self, config: Config):
        super().__init__(name="embeddings")
        self.word, self.position = tables(config, config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def build(self, *_):
        build(dict.fromkeys((self.word, self.position)))

    def call(self, ids, training=False):
        positions = ops.cast(self.position.embeddings[: ops.shape(ids)[1]], self.compute_dtype)  # (L, H)
        return self.dropout(self.word(ids) + positions, training=training)


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with its output projection, residual and normalisation: [B, L, H] -> [B, L, H].

    With `rows` [B, R], states are computed only at these positions: [B, R, H].
    """

    def __init__(self, config: Config, hidden_size: int, heads: int, output_stddev: float):
        super().__init__(name="attention")
        self.heads, self.head_size = heads, hidden_size // heads
        names = ("query", "key", "value")
        self.query, self.key, self.value = (dense(hidden_size, config.initializer_range, name=name) for name in names)
        self.output_dense = dense(hidden_size, output_stddev, name="output_dense")
        self.norm = layer_norm(config.layer_norm_eps)
        self.weights_dropout = Dropout(config.attention_probs_dropout_prob)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def build(self, shape):
        build(dict.fromkeys((self.query, self.key, self.value, self.output_dense, self.norm), shape))

    def attend(self, x, bias, source=None):
        """Return attention weights [B, heads, L, L] in float32, row = from, column = to; `bias` is added to the scores.

        With `source` [B, L, H], the states x [B, R, H] attend to `source`: [B, heads, R, L].
        """
        query = self._split(self.query(x) * (self.head_size**-0.5))  # (B, heads, R, head_size)
        key = self._split(self.key(x if source is None else source))  # (B, heads, L, head_size)
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # (B, heads, R, L)
        # Keras casts a layer's inputs to its compute dtype, so the bias is bfloat16 on an accelerator.
        return ops.softmax(ops.cast(scores, "float32") + ops.cast(bias, "float32"))

    def call(self, states, bias, rows=None, training=False):
        x = states if rows is None else rows_of(states, rows)  # (B, R, H)
        return self.norm(x + self.attention_output(x, states, bias, training))

    def attention_output(self, x, source, bias, training):
        """Return the attention output of states x [B, R, H] over `source` [B, L, H], before the residual connection."""
        weights = self.attend(x, bias, source=source)
        weights = self.weights_dropout(ops.cast(weights, self.compute_dtype), training=training)
        context = ops.transpose(ops.matmul(weights, self._split(self.value(source))), (0, 2, 1, 3))
        return self.dropout(self.output_dense(ops.reshape(context, ops.shape(x))), training=training)

    def _split(self, x):
        batch, length, _ = ops.shape(x)
        return ops.transpose(ops.reshape(x, (batch, length, self.heads, self.head_size)), (0, 2, 1, 3))


class FeedForward(NamedTuple):
    """The parts of a feed-forward network, with the normalisation after it, for a TransformerLayer."""

    intermediate: keras.layers.Dense
    activation: Callable
    output_dense: keras.layers.Dense
    norm: keras.layers.LayerNormalization


class TransformerLayer(keras.layers.Layer):
    """Self-attention and feed-forward network, each with residual and normalisation after it; both may be shared.

    It maps states [B, L, H] to states of the same shape or, with `rows` [B, R], to states at these positions [B, R, H].
    """

    def __init__(self, attention: SelfAttention, feed_forward: FeedForward, *, dropout: float, **options):
        super().__init__(**options)
        self.attention = attention
        self.intermediate, self.activation, self.output_dense, self.norm = feed_forward
        self.dropout = Dropout(dropout)

    def build(self, shape):
        inner = (*shape[:-1], self.intermediate.units)
        build({self.attention: shape, self.intermediate: shape, self.output_dense: inner, self.norm: shape})

    def call(self, states, bias, rows=None, training=False):
        x = self.attention(states, bias, rows, training=training)
        change = self.output_dense(self.activation(self.intermediate(x)))
        return self.norm(x + self.dropout(change, training=training))


class PreNormLayer(TransformerLayer):
    """A transformer layer that normalises the inputs of attention and feed-forward network, not the outputs (GPT-2)."""

    def call(self, states, bias, rows=None, training=False):
        normalised_states = self.attention.norm(states)
        x, normalised_rows = (
            (states, normalised_states) if rows is None else (rows_of(states, rows), rows_of(normalised_states, rows))
        )
        x = x + self.attention.attention_output(normalised_rows, normalised_states, bias, training)
        change = self.output_dense(self.activation(self.intermediate(self.norm(x))))
        return x + self.dropout(change, training=training)


def stack(
    config: Config,
    attentions: Sequence[int] | None = None,
    feed_forwards: Sequence[int] | None = None,
    *,
    kind: type[TransformerLayer] = TransformerLayer,
    output_stddev: float | None = None,
    **sizes: int,
) -> list[TransformerLayer]:
    """Return the layers, the lowest first; layer i has attention `attentions[i]` and feed-forward `feed_forwards[i]`.

    Equal numbers share weights: [0, 0, 0] is one attention for three layers; [0, 1, 2], the default, one for each.
    `output_stddev` initialises the two projections onto the residual, by default like all weights. `sizes` override
    hidden_size, num_attention_heads and intermediate_size of the configuration.
    """
    names = ("hidden_size", "num_attention_heads", "intermediate_size")
    hidden_size, heads, intermediate_size = (sizes.get(name, getattr(config, name)) for name in names)
    stddev, dropout = output_stddev or config.initializer_range, config.hidden_dropout_prob

    @cache
    def attention(_: int) -> SelfAttention:
        return SelfAttention(config, hidden_size, heads, stddev)

    @cache
    def feed_forward(_: int) -> FeedForward:
        inner = dense(intermediate_size, config.initializer_range, name="intermediate")
        output = dense(hidden_size, stddev, name="output_dense")
        return FeedForward(inner, activation(config.hidden_act), output, layer_norm(config.layer_norm_eps))

    layer_numbers = range(config.num_hidden_layers)
    pairs = list(zip(attentions or layer_numbers, feed_forwards or layer_numbers, strict=True))
    layers = {
        pair: kind(attention(pair[0]), feed_forward(pair[1]), dropout=dropout, name=f"layer_{i}" if i else "layer")
        for i, pair in enumerate(dict.fromkeys(pairs))
    }
    return [layers[pair] for pair in pairs]
