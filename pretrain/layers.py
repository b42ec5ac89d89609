"""What the families are made of, in backend-neutral Keras: embeddings, attention, feed-forward, encoder and heads."""

import keras
from keras import ops


def initializer(stddev: float) -> keras.initializers.Initializer:
    """Truncated normal, seeded by keras.utils.set_random_seed; a new one for each table, or they get equal values."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def dense(units: int, stddev: float, **options) -> keras.layers.Dense:
    """A dense layer whose weights are drawn from a truncated normal and whose bias is zero."""
    return keras.layers.Dense(units, kernel_initializer=initializer(stddev), **options)


def layer_norm(epsilon: float) -> keras.layers.LayerNormalization:
    """Layer normalisation over the last axis; its name tells the optimizer what not to decay."""
    return keras.layers.LayerNormalization(epsilon=epsilon, name="layer_norm")


def gelu(x):
    """GELU in its tanh form, as in the original BERT and ALBERT (`gelu_new` in transformers)."""
    return keras.activations.gelu(x, approximate=True)


# === Encoder ===


class Embeddings(keras.layers.Layer):
    """Sum of word, position and segment embeddings, normalised: ids [B, L] -> [B, L, E].

    No table but that of the words is looked up row by row. In TensorFlow the gradient of a lookup is a list of rows,
    one for each time a row was used, and Keras clips by the norm of that list, which is not the norm of their sum. The
    gradient of the word table is their sum, because the head of the masked words multiplies by the whole table.
    """

    def __init__(
        self,
        vocab_size: int,
        positions: int,
        size: int,
        *,
        stddev: float,
        position_stddev: float,
        epsilon: float,
        dropout: float,
        **options,
    ):
        super().__init__(**options)
        self.word = keras.layers.Embedding(vocab_size, size, initializer(stddev), name="word")
        self.position = keras.layers.Embedding(positions, size, initializer(position_stddev), name="position")
        self.segment = keras.layers.Embedding(2, size, initializer(stddev), name="segment")
        self.norm = layer_norm(epsilon)
        self.dropout = keras.layers.Dropout(dropout)

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

    def __init__(
        self,
        hidden_size: int,
        heads: int,
        *,
        stddev: float,
        epsilon: float,
        dropout: float,
        attention_dropout: float,
        **options,
    ):
        super().__init__(**options)
        self.heads, self.head_size = heads, hidden_size // heads
        self.query, self.key, self.value, self.output_dense = (
            dense(hidden_size, stddev, name=name) for name in ("query", "key", "value", "output_dense")
        )
        self.norm = layer_norm(epsilon)
        self.weights_dropout = keras.layers.Dropout(attention_dropout)
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x, bias, training=False):
        query = self._split(self.query(x) * (self.head_size**-0.5))  # (B, heads, L, head_size)
        scores = ops.matmul(query, ops.transpose(self._split(self.key(x)), (0, 1, 3, 2)))  # (B, heads, L, L)
        # Keras casts what a layer is given to its compute type, so the bias comes in bfloat16 on an accelerator.
        weights = ops.softmax(ops.cast(scores, "float32") + ops.cast(bias, "float32"))
        weights = self.weights_dropout(ops.cast(weights, self.compute_dtype), training=training)
        context = ops.transpose(ops.matmul(weights, self._split(self.value(x))), (0, 2, 1, 3))
        context = ops.reshape(context, ops.shape(x))
        return self.norm(x + self.dropout(self.output_dense(context), training=training))

    def _split(self, x):
        batch, length, _ = ops.shape(x)
        return ops.transpose(ops.reshape(x, (batch, length, self.heads, self.head_size)), (0, 2, 1, 3))


class TransformerLayer(keras.layers.Layer):
    """Self-attention and feed-forward network, each with residual and normalisation after it."""

    def __init__(
        self,
        hidden_size: int,
        heads: int,
        intermediate_size: int,
        *,
        stddev: float,
        epsilon: float,
        dropout: float,
        attention_dropout: float,
        **options,
    ):
        super().__init__(**options)
        self.attention = SelfAttention(
            hidden_size,
            heads,
            stddev=stddev,
            epsilon=epsilon,
            dropout=dropout,
            attention_dropout=attention_dropout,
            name="attention",
        )
        self.intermediate = dense(intermediate_size, stddev, name="intermediate")
        self.output_dense = dense(hidden_size, stddev, name="output_dense")
        self.norm = layer_norm(epsilon)
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x, bias, training=False):
        x = self.attention(x, bias, training=training)
        change = self.output_dense(gelu(self.intermediate(x)))
        return self.norm(x + self.dropout(change, training=training))


class Encoder(keras.layers.Layer):
    """ids, token_type_ids, attention_mask [B, L] -> N + 1 hidden states [B, L, H], the embeddings first.

    A layer that stands in `transformer` several times is shared. `projection` maps embeddings of another size to H.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        transformer: list[TransformerLayer],
        projection: keras.layers.Dense | None = None,
        **options,
    ):
        super().__init__(**options)
        self.embeddings, self.transformer, self.projection = embeddings, transformer, projection

    def call(self, ids, token_type_ids, attention_mask, training=False):
        # (B, 1, 1, L): a large negative number where there is padding
        bias = (1.0 - ops.cast(attention_mask, "float32"))[:, None, None, :] * -1e9
        x = self.embeddings(ids, token_type_ids, training=training)
        states = [self.projection(x) if self.projection else x]
        for layer in self.transformer:
            states.append(layer(states[-1], bias, training=training))
        return states


# === Heads: hidden states [B, L, H] and the model's inputs -> logits ===


class MaskedWordHead(keras.layers.Layer):
    """Logits [B, P, V] in float32 at the masked positions [B, P]; tied to the word embeddings."""

    def __init__(self, embeddings: Embeddings, *, stddev: float, epsilon: float, **options):
        super().__init__(**options)
        self.embeddings = embeddings
        self.transform = dense(embeddings.word.output_dim, stddev, name="transform")
        self.norm = layer_norm(epsilon)

    def build(self, *_):
        self.bias = self.add_weight(shape=(self.embeddings.word.input_dim,), initializer="zeros", name="bias")

    def call(self, states, inputs):
        picked = ops.take_along_axis(states, inputs["positions"][:, :, None], axis=1)  # (B, P, H)
        picked = self.norm(gelu(self.transform(picked)))
        table = ops.cast(self.embeddings.word.embeddings, self.compute_dtype)
        logits = ops.matmul(picked, ops.transpose(table))  # (B, P, V)
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")


class PairHead(keras.layers.Layer):
    """Logits [B, 2] in float32 of what the two segments are to each other, from [CLS]; the pooler is in here."""

    def __init__(self, hidden_size: int, *, stddev: float, **options):
        super().__init__(**options)
        self.pooler = dense(hidden_size, stddev, activation="tanh", name="pooler")
        self.classifier = dense(2, stddev, name="classifier")

    def call(self, states, inputs):
        return ops.cast(self.classifier(self.pooler(states[:, 0])), "float32")
