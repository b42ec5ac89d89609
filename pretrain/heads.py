"""The two heads of ALBERT's pretraining: masked tokens (tied to the word embeddings) and the order of two segments."""

import keras
from keras import ops

from pretrain.config import Config
from pretrain.encoder import Embeddings, dense, gelu, layer_norm


class MaskedLanguageModelHead(keras.layers.Layer):
    """Hidden states [B, L, H] at positions [B, P] -> logits [B, P, V], in float32."""

    def __init__(self, config: Config, embeddings: Embeddings, **options):
        super().__init__(**options)
        self.embeddings = embeddings
        self.vocab_size = config.vocab_size
        self.transform = dense(config.embedding_size, config, name="transform")
        self.norm = layer_norm(config, "layer_norm")

    def build(self, *_):
        self.bias = self.add_weight(shape=(self.vocab_size,), initializer="zeros", name="bias")

    def call(self, states, positions):
        picked = ops.take_along_axis(states, positions[:, :, None], axis=1)  # (B, P, H)
        picked = self.norm(gelu(self.transform(picked)))
        table = ops.cast(self.embeddings.word.embeddings, self.compute_dtype)
        logits = ops.matmul(picked, ops.transpose(table))  # (B, P, V)
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")


class SentenceOrderHead(keras.layers.Layer):
    """Hidden states [B, L, H] -> logits [B, 2] (in order, swapped), from the pooled [CLS]; the pooler is in here."""

    def __init__(self, config: Config, **options):
        super().__init__(**options)
        self.pooler = dense(config.hidden_size, config, activation="tanh", name="pooler")
        self.classifier = dense(2, config, name="classifier")

    def call(self, states):
        return ops.cast(self.classifier(self.pooler(states[:, 0])), "float32")
