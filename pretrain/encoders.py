"""Stacks of transformer layers: token ids in, the hidden states of every layer out."""

import keras
from keras import ops

from pretrain.layers import DecoderEmbeddings, Embeddings, PreNormLayer, TransformerLayer, build, layer_norm


def padding_bias(attention_mask):
    """Return the bias that masks padding when added to attention scores: [B, 1, 1, L] in float32."""
    return (1.0 - ops.cast(attention_mask, "float32"))[:, None, None, :] * -1e9


class Encoder(keras.layers.Layer):
    """ids, token_type_ids, attention_mask [B, L] -> N + 1 hidden states [B, L, H], the embeddings first.

    A layer that occurs more than once in `transformer` is shared. `projection` maps embeddings of another size to H.
    With `rows` [B, R], the last layer computes its states only at these positions, [B, R, H]: for a head that reads
    15 % of the positions, this is less than a third of the layer's work.
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

    @property
    def states_shape(self) -> tuple[None, None, int]:
        """Return the shape of the hidden states; None for B and L."""
        return None, None, self.projection.units if self.projection else self.embeddings.word.output_dim

    def build(self, *_):
        build({self.embeddings: None})
        if self.projection:
            build({self.projection: (None, None, self.embeddings.word.output_dim)})
        build(dict.fromkeys(self.transformer, self.states_shape))

    def call(self, ids, token_type_ids, attention_mask, rows=None, training=False):
        bias = padding_bias(attention_mask)
        x = self.embeddings(ids, token_type_ids, training=training)
        states = [self.projection(x) if self.projection else x]
        *lower, last = self.transformer
        for layer in lower:
            states.append(layer(states[-1], bias, training=training))
        return [*states, last(states[-1], bias, rows, training=training)]


def causal_bias(attention_mask):
    """Return the bias that masks later tokens and padding: [B, 1, L, L] in float32, row = from, column = to."""
    positions = ops.arange(ops.shape(attention_mask)[1])
    is_later = ops.cast(positions[None, :] > positions[:, None], "float32") * -1e9  # (L, L)
    return padding_bias(attention_mask) + is_later


class Decoder(keras.layers.Layer):
    """ids, attention_mask [B, L] -> N + 1 causal hidden states [B, L, H], the embeddings first.

    The last states are normalised; token_type_ids are ignored.
    """

    def __init__(self, embeddings: DecoderEmbeddings, transformer: list[PreNormLayer], *, epsilon: float, **options):
        super().__init__(**options)
        self.embeddings, self.transformer, self.norm = embeddings, transformer, layer_norm(epsilon)

    @property
    def states_shape(self) -> tuple[None, None, int]:
        """Return the shape of the hidden states; None for B and L."""
        return None, None, self.embeddings.word.output_dim

    def build(self, *_):
        build({self.embeddings: None} | dict.fromkeys((*self.transformer, self.norm), self.states_shape))

    def call(self, ids, token_type_ids, attention_mask, training=False):
        bias = causal_bias(attention_mask)
        states = [self.embeddings(ids, training=training)]
        for layer in self.transformer:
            states.append(layer(states[-1], bias, training=training))
        return [*states[:-1], self.norm(states[-1])]
