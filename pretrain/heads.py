"""The heads of pretraining: the last layer's hidden states in, float32 logits out.

A head with a method `rows` reads only the states at the positions [B, R] that the method returns.
"""

from collections.abc import Callable

import keras
from keras import ops

from pretrain.layers import DecoderEmbeddings, Embeddings, build, dense, layer_norm


class MaskedWordHead(keras.layers.Layer):
    """Logits [B, P, V] in float32 from the states [B, P, H] at the masked positions; tied to the word embeddings."""

    def __init__(self, embeddings: Embeddings, *, activation: Callable, stddev: float, epsilon: float, **options):
        super().__init__(**options)
        self.embeddings, self.activation = embeddings, activation
        self.transform = dense(embeddings.word.output_dim, stddev, name="transform")
        self.norm = layer_norm(epsilon)

    def build(self, shape):
        build({self.transform: shape, self.norm: (None, None, self.transform.units)})
        self.bias = self.add_weight(shape=(self.embeddings.word.input_dim,), initializer="zeros", name="bias")

    def rows(self, inputs):
        """Return the masked positions [B, P]."""
        return inputs["positions"]

    def call(self, states):
        states = self.norm(self.activation(self.transform(states)))
        table = ops.cast(self.embeddings.word.embeddings, self.compute_dtype)
        logits = ops.matmul(states, ops.transpose(table))  # (B, P, V)
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")


class NextTokenHead(keras.layers.Layer):
    """Logits [B, L, V] in float32 of every next token, from all states [B, L, H]; tied to the word embeddings."""

    def __init__(self, embeddings: DecoderEmbeddings, **options):
        super().__init__(**options)
        self.embeddings = embeddings

    def build(self, *_):
        """Create no weights: the output matrix is the embedding table."""

    def call(self, states):
        table = ops.cast(self.embeddings.word.embeddings, self.compute_dtype)
        return ops.cast(ops.matmul(states, ops.transpose(table)), "float32")


class PairHead(keras.layers.Layer):
    """Logits [B, 2] in float32 of the relation of two segments, from the pooled state of [CLS], [B, 1, H]."""

    def __init__(self, hidden_size: int, *, stddev: float, **options):
        super().__init__(**options)
        self.pooler = dense(hidden_size, stddev, activation="tanh", name="pooler")
        self.classifier = dense(2, stddev, name="classifier")

    def build(self, shape):
        build(dict.fromkeys((self.pooler, self.classifier), (None, shape[-1])))

    def rows(self, inputs):
        """Return the position of [CLS], 0: [B, 1]."""
        return ops.zeros_like(inputs["positions"][:, :1])

    def call(self, states):
        return ops.cast(self.classifier(self.pooler(states[:, 0])), "float32")


class TokenHead(keras.layers.Layer):
    """One logit for each token, [B, L] in float32, from all states [B, L, H]: a dense layer and a single output."""

    def __init__(self, hidden_size: int, *, activation: Callable, stddev: float, **options):
        super().__init__(**options)
        self.activation = activation
        self.transform = dense(hidden_size, stddev, name="transform")
        self.classifier = keras.layers.Dense(1, name="classifier")  # Glorot's initial weights, as in the original

    def build(self, shape):
        build(dict.fromkeys((self.transform, self.classifier), shape))

    def call(self, states):
        return ops.cast(self.classifier(self.activation(self.transform(states)))[..., 0], "float32")
