"""The ALBERT encoder (Lan et al., 2020) in backend-neutral Keras: factorised embeddings, one layer applied N times."""

import keras
from keras import ops

from pretrain.config import Config


def dense(units: int, config: Config, **options) -> keras.layers.Dense:
    """A dense layer with ALBERT's truncated-normal initialisation."""
    return keras.layers.Dense(units, kernel_initializer=initializer(config), **options)


def initializer(config: Config, stddev: float | None = None) -> keras.initializers.Initializer:
    """Truncated normal with that standard deviation, or the configuration's; seeded by keras.utils.set_random_seed."""
    return keras.initializers.TruncatedNormal(stddev=stddev or config.initializer_range)


def layer_norm(config: Config, name: str) -> keras.layers.LayerNormalization:
    """Layer normalisation over the last axis."""
    return keras.layers.LayerNormalization(epsilon=config.layer_norm_eps, name=name)


def gelu(x):
    """GELU in its tanh form, as in the original BERT and ALBERT (`gelu_new` in transformers)."""
    return keras.activations.gelu(x, approximate=True)


# === Layers ===


class Embeddings(keras.layers.Layer):
    """Sum of word, position and segment embeddings, normalised: ids [B, L] -> [B, L, E].

    No table but that of the words is looked up row by row. In TensorFlow the gradient of a lookup is a list of rows, one
    for each time a row was used, and Keras clips by the norm of that list, which is not the norm of their sum. The
    gradient of the word table is their sum: the head of the masked tokens multiplies by the whole table.
    """

    def __init__(self, config: Config, **options):
        super().__init__(**options)
        size, of_positions = config.embedding_size, config.position_initializer_range
        self.word = keras.layers.Embedding(config.vocab_size, size, initializer(config), name="word")
        self.position = keras.layers.Embedding(
            config.max_position_embeddings, size, initializer(config, of_positions), name="position"
        )
        self.segment = keras.layers.Embedding(2, size, initializer(config), name="segment")
        self.norm = layer_norm(config, "layer_norm")
        self.dropout = keras.layers.Dropout(config.hidden_dropout_prob)

    def build(self, *_):
        self.position.build()
        self.segment.build()

    def call(self, ids, token_type_ids, training=False):
        positions = ops.cast(self.position.embeddings[: ops.shape(ids)[1]], self.compute_dtype)  # (L, E)
        segments = ops.one_hot(token_type_ids, 2, dtype=self.compute_dtype)  # (B, L, 2)
        segments = ops.matmul(segments, ops.cast(self.segment.embeddings, self.compute_dtype))  # (B, L, E)
        return self.dropout(self.norm(self.word(ids) + positions + segments), training=training)


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with its output projection, residual and normalisation: [B, L, H] -> [B, L, H]."""

    def __init__(self, config: Config, **options):
        super().__init__(**options)
        self.heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query, self.key, self.value, self.output_dense = (
            dense(config.hidden_size, config, name=name) for name in ("query", "key", "value", "output_dense")
        )
        self.norm = layer_norm(config, "layer_norm")
        self.weights_dropout = keras.layers.Dropout(config.attention_probs_dropout_prob)
        self.dropout = keras.layers.Dropout(config.hidden_dropout_prob)

    def call(self, x, bias, training=False):
        query = self._split(self.query(x) * (self.head_size**-0.5))  # (B, heads, L, head_size)
        scores = ops.matmul(query, ops.transpose(self._split(self.key(x)), (0, 1, 3, 2)))  # (B, heads, L, L)
        weights = ops.softmax(ops.cast(scores, "float32") + bias)
        weights = self.weights_dropout(ops.cast(weights, self.compute_dtype), training=training)
        context = ops.transpose(ops.matmul(weights, self._split(self.value(x))), (0, 2, 1, 3))
        context = ops.reshape(context, ops.shape(x))
        return self.norm(x + self.dropout(self.output_dense(context), training=training))

    def _split(self, x):
        batch, length, _ = ops.shape(x)
        return ops.transpose(ops.reshape(x, (batch, length, self.heads, self.head_size)), (0, 2, 1, 3))


class TransformerLayer(keras.layers.Layer):
    """Self-attention and feed-forward network, each with residual and normalisation after it."""

    def __init__(self, config: Config, **options):
        super().__init__(**options)
        self.attention = SelfAttention(config, name="attention")
        self.intermediate = dense(config.intermediate_size, config, name="intermediate")
        self.output_dense = dense(config.hidden_size, config, name="output_dense")
        self.norm = layer_norm(config, "layer_norm")
        self.dropout = keras.layers.Dropout(config.hidden_dropout_prob)

    def call(self, x, bias, training=False):
        x = self.attention(x, bias, training=training)
        change = self.output_dense(gelu(self.intermediate(x)))
        return self.norm(x + self.dropout(change, training=training))


# === Encoder ===


class Encoder(keras.layers.Layer):
    """ids, token_type_ids, attention_mask [B, L] -> N + 1 hidden states [B, L, H], projected embeddings first."""

    def __init__(self, config: Config, **options):
        super().__init__(**options)
        self.depth = config.num_hidden_layers
        self.embeddings = Embeddings(config, name="embeddings")
        self.projection = dense(config.hidden_size, config, name="projection")
        self.layer = TransformerLayer(config, name="layer")

    def call(self, ids, token_type_ids, attention_mask, training=False):
        # (B, 1, 1, L): a large negative number where there is padding
        bias = (1.0 - ops.cast(attention_mask, "float32"))[:, None, None, :] * -1e9
        states = [self.projection(self.embeddings(ids, token_type_ids, training=training))]
        for _ in range(self.depth):  # the same layer each time: ALBERT's cross-layer sharing
            states.append(self.layer(states[-1], bias, training=training))
        return states
