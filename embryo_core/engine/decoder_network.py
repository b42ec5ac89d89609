"""The network of GPT-2 and GPT-NeoX in plain torch and float32: its parts, and the passes from ids to outputs.

Each half of a layer normalises its input and adds its output to the residual. A piece attends only to itself and to
earlier pieces. The output matrix is applied at selected positions only.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, scaled_dot_product_attention

from embryo_core.engine.kernels import Linear, compiled, linear
from embryo_core.engine.network import Norm, activate, apply_norm

# === Parts ===


class DecoderLayer(NamedTuple):
    """One layer of a decoder."""

    heads: int
    by_head: bool  # query, key and value of each head are adjacent
    scale: float  # factor of attention scores
    attention_norm: Norm
    query_key_value: Linear  # H -> 3 H
    output: Linear
    parallel: bool  # the feed-forward half reads the same states as attention
    norm: Norm
    inner: Linear  # H -> I
    activation: str  # gelu | gelu_tanh | relu
    outer: Linear  # I -> H


class DecoderNetwork(NamedTuple):
    """Everything that a pass through one checkpoint needs."""

    words: Tensor  # [V, H] as stored
    positions: Tensor | None  # [P, H]; None if they are not learned
    frequencies: Tensor  # [R / 2] of the rotation of the first R dimensions of a head; R may be 0
    layers: list[DecoderLayer]
    final_norm: Norm
    decoder: Linear | None  # H -> V


# === Operations ===


def embed(ids: Tensor, network: DecoderNetwork, start: int = 0) -> Tensor:
    """Compute embeddings [B, L, H] of ids [B, L] at the positions from `start`."""
    words, positions = embedding(ids, network.words).float(), network.positions
    return words if positions is None else words + positions[start : start + ids.shape[1]]


def rotation(length: int, frequencies: Tensor, start: int = 0) -> Tensor:
    """Compute cosine and sine [2, L, R] of the rotation angles of L positions (Su et al., 2021, arXiv:2104.09864)."""
    angles = torch.arange(start, start + length)[:, None].float() * frequencies
    angles = torch.cat([angles, angles], -1)
    return torch.stack([angles.cos(), angles.sin()])


def rotate(states: Tensor, angles: Tensor) -> Tensor:
    """Rotate the first R dimensions of queries or keys [B, heads, L, D] by `angles` [2, L, R]."""
    size = angles.shape[2]
    if size == 0:
        return states
    rotated = states[..., :size]
    half = torch.cat([-rotated[..., size // 2 :], rotated[..., : size // 2]], -1)
    return torch.cat([rotated * angles[0] + half * angles[1], states[..., size:]], -1)


def project(states: Tensor, layer: DecoderLayer, angles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute query and key, both rotated, and value [B, heads, L, D] from states [B, L, H]."""
    batch, length, _ = states.shape
    query_key_value = linear(apply_norm(states, layer.attention_norm), layer.query_key_value)
    if layer.by_head:
        halves = query_key_value.view(batch, length, layer.heads, 3, -1).permute(3, 0, 2, 1, 4)
    else:
        halves = query_key_value.view(batch, length, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
    return rotate(halves[0], angles), rotate(halves[1], angles), halves[2]


def apply_layer(states: Tensor, layer: DecoderLayer, angles: Tensor) -> Tensor:
    """Apply a layer to states [B, L, H]; return states of the same shape."""
    query, key, value = project(states, layer, angles)
    context = scaled_dot_product_attention(query, key, value, is_causal=True, scale=layer.scale)
    return add_halves(states, context, layer)


def add_halves(states: Tensor, context: Tensor, layer: DecoderLayer) -> Tensor:
    """Add the outputs of a layer's halves to states [B, L, H]; `context` [B, heads, L, D] are the attended values."""
    residual = linear(context.transpose(1, 2).reshape(states.shape), layer.output).add_(states)
    inner_input = apply_norm(states if layer.parallel else residual, layer.norm)
    return linear(activate(linear(inner_input, layer.inner), layer.activation), layer.outer).add_(residual)


def attend(states: Tensor, layer: DecoderLayer, angles: Tensor) -> Tensor:
    """Compute the attention weights [B, heads, L, L] of a layer on states [B, L, H]."""
    query, key, _ = project(states, layer, angles)
    scores = query @ key.transpose(2, 3) * layer.scale
    length = scores.shape[3]
    return scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)


def apply_head(states: Tensor, network: DecoderNetwork) -> Tensor:
    """Compute next-piece logits [..., V] from states [..., H] below the last layer; the final norm is applied first."""
    decoder = network.decoder
    assert decoder is not None
    return linear(apply_norm(states, network.final_norm), decoder)


# === Passes ===


@compiled
def hidden_states(network: DecoderNetwork, ids: Tensor) -> Tensor:
    """Compute states [layers + 1, B, L, H] of ids [B, L], from the embeddings to the states after the final norm."""
    states, angles = [embed(ids, network)], rotation(ids.shape[1], network.frequencies)
    for layer in network.layers:
        states.append(apply_layer(states[-1], layer, angles))
    states[-1] = apply_norm(states[-1], network.final_norm)
    return torch.stack(states)


@compiled
def attentions(network: DecoderNetwork, ids: Tensor) -> Tensor:
    """Compute attention weights [layers, B, heads, L, L] of ids [B, L]."""
    states, angles = embed(ids, network), rotation(ids.shape[1], network.frequencies)
    weights: list[Tensor] = []
    for layer in network.layers:
        weights.append(attend(states, layer, angles))
        states = apply_layer(states, layer, angles)
    return torch.stack(weights)


@compiled
def logits(networks: list[DecoderNetwork], ids: Tensor, positions: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Compute the next-piece logits [n, V] of each of C networks at n `positions` (rows, columns) of ids [C, B, L]."""
    batches: list[Tensor] = []
    for i, network in enumerate(networks):
        states, angles = embed(ids[i], network), rotation(ids.shape[2], network.frequencies)
        for layer in network.layers:
            states = apply_layer(states, layer, angles)
        batches.append(apply_head(states[positions[0], positions[1]], network))
    return batches


@compiled
def forward_with_past(network: DecoderNetwork, ids: Tensor, past: Tensor | None, last: int) -> tuple[Tensor, Tensor]:
    """Compute next-piece logits [B, last, V] at the `last` pieces of ids [B, L], and the past including these ids.

    `past` [layers, 2, B or 1, heads, P, D] has the keys and values of the P pieces before the ids, if there are any.
    """
    if past is None:
        heads = network.layers[0].heads
        past = torch.empty(len(network.layers), 2, 1, heads, 0, network.words.shape[1] // heads)
    batch, length, past_length = ids.shape[0], ids.shape[1], past.shape[4]
    states, angles = embed(ids, network, past_length), rotation(length, network.frequencies, past_length)
    causal_mask = torch.ones(length, past_length + length, dtype=torch.bool).tril(past_length)
    layer_pasts: list[Tensor] = []
    for i, layer in enumerate(network.layers):
        query, key, value = project(states, layer, angles)
        past_of_layer = past[i].expand(2, batch, layer.heads, past_length, key.shape[3])
        layer_pasts.append(torch.cat([past_of_layer, torch.stack([key, value])], 3))
        context = scaled_dot_product_attention(
            query, layer_pasts[i][0], layer_pasts[i][1], attn_mask=causal_mask, scale=layer.scale
        )
        states = add_halves(states, context, layer)
    return apply_head(states[:, length - last :], network), torch.stack(layer_pasts)
