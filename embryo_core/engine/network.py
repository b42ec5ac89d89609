"""The network of ALBERT, BERT and ELECTRA in plain torch and float32: its parts, and the passes from ids to outputs.

Normalisation follows each residual, as in the papers. The last layer and the head can be computed at selected positions
only. kernels.py multiplies and compiles the passes to states and to logits.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, scaled_dot_product_attention

from embryo_core.engine.kernels import Linear, compiled, linear
from embryo_core.runs.architecture import layer_group

# === Parts ===


class Norm(NamedTuple):
    """Gain and bias [H] of a layer normalisation."""

    gain: Tensor
    bias: Tensor
    epsilon: float


class EncoderLayer(NamedTuple):
    """One transformer layer."""

    heads: int
    query_key_value: Linear  # H -> 3 H
    output: Linear
    attention_norm: Norm
    inner: Linear  # H -> I
    activation: str  # gelu | gelu_tanh | relu
    outer: Linear  # I -> H
    norm: Norm


class EmbeddingTables(NamedTuple):
    """The embeddings that enter the first layer."""

    words: Tensor  # [V, E] as stored
    positions: Tensor  # [P, E]
    added: Tensor  # [P, E] added to the words: positions plus the embedding of the first segment
    norm: Norm
    projection: Linear | None  # E -> H, if they differ


class WordHead(NamedTuple):
    """The masked-word head."""

    dense: Linear  # H -> E
    activation: str
    norm: Norm
    decoder: Linear  # E -> V


class Detector(NamedTuple):
    """The head that classifies each token as original or replaced."""

    dense: Linear  # H -> H
    activation: str
    decision: Linear  # H -> 1


class EncoderNetwork(NamedTuple):
    """Everything that a pass through one checkpoint needs."""

    embeddings: EmbeddingTables
    groups: list[EncoderLayer]  # distinct layers, lowest first; ALBERT repeats each
    depth: int  # layers
    head: WordHead | None  # for masked words
    detector: Detector | None  # for replaced tokens


# === Operations ===


def split(query_key_value: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Split [B, L, 3 H] into query, key and value of each head, [B, heads, L, D] each."""
    batch, length, _ = query_key_value.shape
    heads_first = query_key_value.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    return heads_first[0], heads_first[1], heads_first[2]


def apply_norm(states: Tensor, norm: Norm) -> Tensor:
    """Apply layer normalisation to states [..., H]."""
    return layer_norm(states, norm.gain.shape, norm.gain, norm.bias, norm.epsilon)


def activate(states: Tensor, name: str) -> Tensor:
    """Apply an activation. GELU's tanh form is x (1 + tanh z) / 2 = x sigmoid(2 z); torch's tanh is slower."""
    if name == "gelu":
        return gelu(states)
    if name == "relu":
        return states.relu()
    slope = 1.5957691216057308  # 2 sqrt(2 / pi)
    inner = torch.addcmul(torch.scalar_tensor(slope), states, states, value=0.044715 * slope).mul_(states)
    return inner.sigmoid_().mul_(states)


# === Passes ===


def layer_at(network: EncoderNetwork, i: int) -> EncoderLayer:
    """Return layer i; 0 is the lowest."""
    return network.groups[layer_group(i, network.depth, len(network.groups))]


def embed(ids: Tensor, tables: EmbeddingTables) -> Tensor:
    """Compute embeddings [B, L, H] of ids [B, L], projected to H."""
    return embed_at(ids, torch.arange(ids.shape[1]), tables)


def embed_at(ids: Tensor, positions: Tensor, tables: EmbeddingTables) -> Tensor:
    """Compute embeddings [..., H] of ids [...] at `positions`, shaped like the ids or their last axis."""
    words = embedding(ids, tables.words).float() + tables.added[positions]
    states = apply_norm(words, tables.norm)
    projection = tables.projection
    return states if projection is None else linear(states, projection)


def embed_once(network: EncoderNetwork, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Compute embeddings [B, L, H] of ids [B, L], and query, key and value [B, L, 3 H] of the first layer.

    A token that rows have in common at a position is computed once, since only attention mixes it with the rest of its
    row.
    """
    into, length = layer_at(network, 0).query_key_value, ids.shape[1]
    if len(ids) == 1:
        states = embed(ids, network.embeddings)
        return states, linear(states, into)
    once, rows = torch.unique(ids * length + torch.arange(length), return_inverse=True)
    states = embed_at(once // length, once % length, network.embeddings)
    return embedding(rows, states), embedding(rows, linear(states, into))


def apply_layer(
    states: Tensor,
    layer: EncoderLayer,
    positions: tuple[Tensor, Tensor] | None = None,
    query_key_value: Tensor | None = None,
) -> Tensor:
    """Apply a layer to states [B, L, H]; return new states [B, L, H], or [n, H] at n `positions` (rows, columns).

    Query, key and value [B, L, 3 H] may be passed if they have been computed.
    """
    if query_key_value is None:
        query_key_value = linear(states, layer.query_key_value)
    query, key, value = split(query_key_value, layer.heads)
    if positions is not None:
        rows, columns = positions
        states = states[rows, columns]
        if len(key) == 1:  # keys and values of one sequence need no copy
            query = query.index_select(2, columns)  # [1, heads, n, D]
        else:
            query = query[rows, :, columns][:, :, None]  # [n, heads, 1, D]
            key, value = key[rows], value[rows]
    context = scaled_dot_product_attention(query, key, value)
    context = context.transpose(1, 2).reshape(states.shape)
    attention_output = apply_norm(linear(context, layer.output).add_(states), layer.attention_norm)
    inner = activate(linear(attention_output, layer.inner), layer.activation)
    return apply_norm(linear(inner, layer.outer).add_(attention_output), layer.norm)


def attend(states: Tensor, layer: EncoderLayer) -> Tensor:
    """Compute the attention weights [B, heads, L, L] of a layer on states [B, L, H]."""
    query, key, _ = split(linear(states, layer.query_key_value), layer.heads)
    return (query @ key.transpose(2, 3) * query.shape[3] ** -0.5).softmax(-1)


def apply_head(states: Tensor, network: EncoderNetwork) -> Tensor:
    """Compute masked-word logits [n, V] of states [n, H]."""
    head = network.head
    assert head is not None
    return linear(apply_norm(activate(linear(states, head.dense), head.activation), head.norm), head.decoder)


@compiled
def hidden_states(network: EncoderNetwork, ids: Tensor) -> Tensor:
    """Compute states [layers + 1, B, L, H] of ids [B, L], the embeddings first."""
    states = [embed(ids, network.embeddings)]
    for i in range(network.depth):
        states.append(apply_layer(states[-1], layer_at(network, i)))
    return torch.stack(states)


@compiled
def layer_logits(network: EncoderNetwork, ids: Tensor, position: int) -> Tensor:
    """Compute masked-word logits [layers + 1, V] of the head on each layer's state at one position of ids [1, L].

    The last layer is computed at that position only.
    """
    states, final_position = embed(ids, network.embeddings), (torch.tensor([0]), torch.tensor([position]))
    states_of_layers = [states[:, position]]
    for i in range(network.depth - 1):
        states = apply_layer(states, layer_at(network, i))
        states_of_layers.append(states[:, position])
    states_of_layers.append(apply_layer(states, layer_at(network, network.depth - 1), final_position))
    return apply_head(torch.cat(states_of_layers), network)


def detect(network: EncoderNetwork, ids: Tensor) -> Tensor:
    """Compute logits [B, L] that each of ids [B, L] is a replaced token."""
    detector = network.detector
    assert detector is not None
    states = embed(ids, network.embeddings)
    for i in range(network.depth):
        states = apply_layer(states, layer_at(network, i))
    return linear(activate(linear(states, detector.dense), detector.activation), detector.decision).squeeze(-1)


def attentions(network: EncoderNetwork, ids: Tensor) -> Tensor:
    """Compute attention weights [layers, B, heads, L, L] of ids [B, L]."""
    states, weights = embed(ids, network.embeddings), []
    for i in range(network.depth):
        layer = layer_at(network, i)
        weights.append(attend(states, layer))
        states = apply_layer(states, layer)
    return torch.stack(weights)


@compiled
def logits(networks: list[EncoderNetwork], ids: Tensor, positions: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Compute masked-word logits [n, V] of each of C networks at n `positions` (rows, columns) of ids [C, B, L]."""
    logits_of: list[Tensor] = []
    for i, network in enumerate(networks):
        states, shared_states = embed_once(network, ids[i])
        first_states: Tensor | None = shared_states
        for j in range(network.depth - 1):
            states = apply_layer(states, layer_at(network, j), None, first_states)
            first_states = None
        last_layer = layer_at(network, network.depth - 1)
        if len(positions[0]) <= 2 * len(states):  # for more positions, computing the whole last layer is cheaper
            states = apply_layer(states, last_layer, positions, first_states)
        else:
            states = apply_layer(states, last_layer, None, first_states)[positions[0], positions[1]]
        logits_of.append(apply_head(states, network))
    return logits_of
