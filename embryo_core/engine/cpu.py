"""The forward pass of ALBERT and BERT in float32: from ids to states, attention weights and masked-word logits.

Normalisation comes after each residual, as in both papers. The last layer and the head can be computed at asked
positions alone. The pass to logits is compiled by TorchScript and takes several checkpoints in one call: it runs without
Python's lock, so that threads which have a core each do not wait for one another.

A weight stored as float16 stays float16 in memory, packed for FBGEMM, which widens it in registers and multiplies and
adds in float32: nothing is rounded that was not rounded on disk, and a sentence of a dozen pieces takes half the time
of other float32 products, which are made for taller matrices. Other weights are oneDNN's where torch has it; torch's
own choice for float32, MKL, takes twice as long on AMD processors.
"""

import warnings
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, scaled_dot_product_attention

# torch marks FBGEMM's functions and TorchScript as deprecated; requirements.txt names the one version that is tested.
warnings.filterwarnings("ignore", message="fbgemm_", category=UserWarning)
warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)

HALF = "fbgemm" in torch.backends.quantized.supported_engines  # x86 only
BLOCK = 512  # FBGEMM pads a weight's inputs to a multiple of this, which wastes memory, the more the fewer they are
ONEDNN = torch.backends.mkldnn.is_available()


# === Weights ===


class Linear(NamedTuple):
    """A linear map [..., in] -> [..., out]; `form` says how the weight is laid out."""

    weight: Tensor
    bias: Tensor
    form: str  # half | onednn | plain
    nbytes: int  # of memory


class Norm(NamedTuple):
    """Gain and bias [H] of a layer normalisation."""

    gain: Tensor
    bias: Tensor
    epsilon: float


class Layer(NamedTuple):
    """One transformer layer."""

    heads: int
    query_key_value: Linear  # H -> 3 H
    output: Linear
    attention_norm: Norm
    inner: Linear  # H -> I
    activation: str  # gelu | gelu_tanh | relu
    outer: Linear  # I -> H
    norm: Norm


class Embeddings(NamedTuple):
    """What enters the first layer."""

    words: Tensor  # [V, E] as stored
    places: Tensor  # [P, E]: position embeddings and that of the first segment
    norm: Norm
    projection: Linear | None  # E -> H for ALBERT


class Head(NamedTuple):
    """The masked-word head."""

    dense: Linear  # H -> E
    activation: str
    norm: Norm
    decoder: Linear  # E -> V


class Network(NamedTuple):
    """All that a pass through one checkpoint needs."""

    embeddings: Embeddings
    groups: list[Layer]  # those with weights of their own, from the lowest; an ALBERT repeats each
    depth: int  # layers
    head: Head


def make_linear(weight: Tensor, bias: Tensor) -> Linear:
    """The map of a stored weight [out, in] and bias [out], in the form that this machine multiplies fastest."""
    out, into = weight.shape
    bias, nbytes = bias.float(), 4 * (out * into + out)
    if HALF and weight.dtype == torch.float16 and into >= BLOCK // 8:
        packed = 2 * BLOCK * -(-into // BLOCK) * 16 * -(-out // 16)
        return Linear(torch.fbgemm_pack_gemm_matrix_fp16(weight.float()), bias, "half", packed + 4 * out)
    if ONEDNN:
        return Linear(torch.ops.mkldnn._reorder_linear_weight(weight.float()), bias, "onednn", nbytes)
    return Linear(weight.float().clone(), bias, "plain", nbytes)


# === Operations ===


def split(states: Tensor, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value of each head, [B, heads, L, D] each."""
    batch, length, _ = states.shape
    parts = linear(states, layer.query_key_value).view(batch, length, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def linear(states: Tensor, part: Linear) -> Tensor:
    """[..., in] -> [..., out]"""
    if part.form == "half":
        return torch.fbgemm_linear_fp16_weight_fp32_activation(states, part.weight, part.bias)
    if part.form == "onednn":
        return torch.ops.mkldnn._linear_pointwise(states, part.weight, part.bias, "none", [], "")
    return torch.nn.functional.linear(states, part.weight, part.bias)


def normalise(states: Tensor, norm: Norm) -> Tensor:
    """Layer normalisation over H."""
    return layer_norm(states, norm.gain.shape, norm.gain, norm.bias, norm.epsilon)


def activate(states: Tensor, name: str) -> Tensor:
    """The activation of that name. GELU's tanh form is x (1 + tanh z) / 2 = x sigmoid(2 z): torch's tanh is slower."""
    if name == "gelu":
        return gelu(states)
    if name == "relu":
        return states.relu()
    slope = 1.5957691216057308  # 2 sqrt(2 / pi)
    inner = torch.addcmul(torch.scalar_tensor(slope), states, states, value=0.044715 * slope).mul_(states)
    return inner.sigmoid_().mul_(states)


# === Passes ===


def embed(ids: Tensor, part: Embeddings) -> Tensor:
    """Embeddings [B, L, H] of ids [B, L], for ALBERT after their projection to H."""
    words = embedding(ids, part.words).float() + part.places[: ids.shape[1]]
    states = normalise(words, part.norm)
    projection = part.projection
    return states if projection is None else linear(states, projection)


def apply_layer(states: Tensor, layer: Layer, mask: Tensor | None, at: tuple[Tensor, Tensor] | None) -> Tensor:
    """New states [B, L, H] of states [B, L, H]; or [n, H] at the n positions `at` = (rows, columns) alone.

    `mask` [B, 1, 1, L] is True at tokens, or None without padding, where attention is faster for it.
    """
    query, key, value = split(states, layer)
    if at is not None:
        rows, columns = at
        states = states[rows, columns]
        if len(key) == 1:  # all in one sequence, whose keys and values serve as they are
            query = query.index_select(2, columns)  # [1, heads, n, D]
        else:
            query = query[rows, :, columns][:, :, None]  # [n, heads, 1, D]
            key, value = key[rows], value[rows]
            mask = None if mask is None else mask[rows]
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask)
    mixed = mixed.transpose(1, 2).reshape(states.shape)
    attended = normalise(linear(mixed, layer.output).add_(states), layer.attention_norm)
    inner = activate(linear(attended, layer.inner), layer.activation)
    return normalise(linear(inner, layer.outer).add_(attended), layer.norm)


def attend(states: Tensor, layer: Layer, mask: Tensor | None) -> Tensor:
    """Attention weights [B, heads, L, L]."""
    query, key, _ = split(states, layer)
    scores = query @ key.transpose(2, 3) * query.shape[3] ** -0.5
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


def apply_head(states: Tensor, head: Head) -> Tensor:
    """Masked-word logits [n, V] of states [n, H]."""
    return linear(normalise(activate(linear(states, head.dense), head.activation), head.norm), head.decoder)


@torch.jit.script
def logits(networks: list[Network], ids: Tensor, mask: Tensor | None, at: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Masked-word logits [n, V] by each of C networks, for its own part of ids [C, B, L].

    They are those of n positions `at` = (rows, columns), which all networks share as they do the mask.
    """
    found: list[Tensor] = []
    for i, network in enumerate(networks):
        groups, depth = network.groups, network.depth
        states = embed(ids[i], network.embeddings)
        for j in range(depth - 1):
            states = apply_layer(states, groups[j * len(groups) // depth], mask, None)
        if len(at[0]) <= 2 * len(states):  # for more positions the last layer is cheaper as a whole
            states = apply_layer(states, groups[-1], mask, at)
        else:
            states = apply_layer(states, groups[-1], mask, None)[at[0], at[1]]
        found.append(apply_head(states, network.head))
    return found


torch._C._jit_pass_inline(logits.graph)  # a call from one compiled function to another takes a lock that threads share


def product(a: Tensor, b: Tensor) -> Tensor:
    """a [m, d] times the transpose of b [n, d], [m, n] in float32, by the fastest kernel that this processor has."""
    return torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "") if ONEDNN else a @ b.t()
