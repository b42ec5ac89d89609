"""The torch room: load a checkpoint, token ids in, numpy arrays out; float32 whatever was stored.

Checkpoints are read as they stand in Hugging Face layout. Weights of `AlbertForPreTraining` or `BertForPreTraining`
fill the matching masked language model, whose encoder and masked-word head are the same modules; their second head
(sentence order, next sentence) and the pooler are left unread. transformers makes the modules; the passes through them
are here, so that the last layer can be computed at the asked positions alone.

A pass runs on one core, and metrics run as many as there are cores: on two cores that is faster than sharing each small
matrix product, and the numbers do not depend on how many cores there are. Matrix products are oneDNN's where torch has
it; torch's own choice for float32, MKL, takes twice as long on AMD processors.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn.functional import scaled_dot_product_attention
from transformers.activations import GELUActivation, GELUTanh

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, TokenizerMismatch
from embryo_core.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Checkpoint

CORES = torch.get_num_threads()  # OMP_NUM_THREADS, or all
torch.set_num_threads(1)

UNREAD = ("pooler.", "sop_classifier.", "cls.seq_relationship.")
Module = torch.nn.Module
Network = transformers.PreTrainedModel


# === Model ===


class Model:
    """One loaded checkpoint. Arrays of ids are [B, L]; attention_mask is 1 at tokens and 0 at padding."""

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer, network: Network):
        config = network.config
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self.vocabulary_size: int = config.vocab_size
        self.max_positions: int = config.max_position_embeddings
        self.num_layers: int = config.num_hidden_layers
        self.num_heads: int = config.num_attention_heads
        self.cores = CORES  # passes that may run at once, each in a thread of its own
        self._network = network
        self._layers = list(_layers(network))
        self._head = _Head.of(network)

    @property
    def nbytes(self) -> int:
        """Bytes that the weights take in memory, nearly: each is there once for transformers and once for oneDNN."""
        return 2 * sum(weight.nbytes for weight in self._network.parameters())

    @torch.inference_mode()
    def mlm_logits(
        self, ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Masked-word logits [n, V] at the n positions (rows[i], columns[i]); the head is applied nowhere else."""
        states, mask = self._embed(ids), _mask(attention_mask)
        at = torch.as_tensor(rows), torch.as_tensor(columns)
        for layer in self._layers[:-1]:
            states = layer(states, mask)
        if len(rows) <= 2 * len(ids):  # for more positions the last layer is cheaper as a whole
            return self._head(self._layers[-1](states, mask, at)).numpy()
        return self._head(self._layers[-1](states, mask)[at]).numpy()

    @torch.inference_mode()
    def mlm_head(self, states: np.ndarray) -> np.ndarray:
        """Masked-word logits [n, V] of hidden states [n, H], such as those of a lower layer."""
        return self._head(torch.as_tensor(states)).numpy()

    @torch.inference_mode()
    def hidden_states(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """States [num_layers + 1, B, L, H]; the first are the embeddings, for ALBERT after their projection to H."""
        states, mask = [self._embed(ids)], _mask(attention_mask)
        for layer in self._layers:
            states.append(layer(states[-1], mask))
        return torch.stack(states).numpy()

    @torch.inference_mode()
    def attentions(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Attention weights [num_layers, B, heads, L, L], row = from, column = to."""
        states, mask, weights = self._embed(ids), _mask(attention_mask), []
        for layer in self._layers:
            weights.append(layer.weights(states, mask))
            states = layer(states, mask)
        return torch.stack(weights).numpy()

    def _embed(self, ids: np.ndarray) -> torch.Tensor:
        """What enters the first layer, [B, L, H]."""
        base = self._network.base_model
        embedded = base.embeddings(input_ids=torch.as_tensor(ids))
        albert = self._network.config.model_type == "albert"
        return base.encoder.embedding_hidden_mapping_in(embedded) if albert else embedded


# === Layers ===


class _Linear:
    """A linear map [..., in] -> [..., out], and the activation after it where there is one."""

    def __init__(self, linear: torch.nn.Linear, activation: Module | None = None):
        self._after = activation
        self._fused = ("none", "")
        if not torch.backends.mkldnn.is_available():
            self._map = linear
            return
        for kind, name in ((GELUTanh, "tanh"), (GELUActivation, "none")):
            if isinstance(activation, kind):
                self._after, self._fused = None, ("gelu", name)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self._bias = linear.bias.detach()
        self._map = self._mapped_by_onednn

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        mapped = self._map(states)
        return mapped if self._after is None else self._after(mapped)

    def _mapped_by_onednn(self, states: torch.Tensor) -> torch.Tensor:
        kind, name = self._fused
        return torch.ops.mkldnn._linear_pointwise(states, self._weight, self._bias, kind, [], name)


@dataclass(frozen=True, eq=False)
class _Layer:
    """One transformer layer: ALBERT and BERT name its modules differently and compute the same."""

    heads: int
    query: _Linear
    key: _Linear
    value: _Linear
    output: _Linear
    attention_norm: Module
    inner: _Linear
    outer: _Linear
    norm: Module

    def __call__(
        self, states: torch.Tensor, mask: torch.Tensor | None, at: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> torch.Tensor:
        """New states [B, L, H] of states [B, L, H]; or [n, H] at the n positions `at` = (rows, columns) alone."""
        asked = states if at is None else states[at][:, None]  # [n, 1, H]
        query, key, value = (
            self._split(self.query(asked)),
            self._split(self.key(states)),
            self._split(self.value(states)),
        )
        if at is not None:
            key, value = key[at[0]], value[at[0]]
            mask = None if mask is None else mask[at[0]]
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        attended = self.attention_norm(self.output(mixed) + asked)
        new = self.norm(self.outer(self.inner(attended)) + attended)
        return new if at is None else new[:, 0]

    def weights(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Attention weights [B, heads, L, L]."""
        query, key = self._split(self.query(states)), self._split(self.key(states))
        scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)

    def _split(self, states: torch.Tensor) -> torch.Tensor:
        """[B, L, H] as [B, heads, L, H / heads]."""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


@dataclass(frozen=True, eq=False)
class _Head:
    """The masked-word head: states [n, H] -> logits [n, V]."""

    dense: _Linear
    norm: Module
    decoder: _Linear

    @classmethod
    def of(cls, network: Network) -> "_Head":
        if network.config.model_type == "albert":
            head = network.predictions
            return cls(_Linear(head.dense, head.activation), head.LayerNorm, _Linear(head.decoder))
        head = network.cls.predictions
        dense = _Linear(head.transform.dense, head.transform.transform_act_fn)
        return cls(dense, head.transform.LayerNorm, _Linear(head.decoder))

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.norm(self.dense(states)))


def _layers(network: Network) -> Iterator[_Layer]:
    """The layers of a network from the lowest; an ALBERT's are the same for all layers of a group."""
    config, encoder = network.config, network.base_model.encoder
    if config.model_type == "bert":
        yield from (_bert_layer(layer, config.num_attention_heads) for layer in encoder.layer)
        return
    groups = [_albert_layer(*group.albert_layers, config.num_attention_heads) for group in encoder.albert_layer_groups]
    for i in range(config.num_hidden_layers):
        yield groups[i * len(groups) // config.num_hidden_layers]


def _albert_layer(layer: Module, heads: int) -> _Layer:
    attention = layer.attention
    maps = (_Linear(part) for part in (attention.query, attention.key, attention.value, attention.dense))
    feed_forward = _Linear(layer.ffn, layer.activation), _Linear(layer.ffn_output)
    return _Layer(heads, *maps, attention.LayerNorm, *feed_forward, layer.full_layer_layer_norm)


def _bert_layer(layer: Module, heads: int) -> _Layer:
    own, output = layer.attention.self, layer.attention.output
    maps = (_Linear(part) for part in (own.query, own.key, own.value, output.dense))
    feed_forward = (
        _Linear(layer.intermediate.dense, layer.intermediate.intermediate_act_fn),
        _Linear(layer.output.dense),
    )
    return _Layer(heads, *maps, output.LayerNorm, *feed_forward, layer.output.LayerNorm)


def _mask(attention_mask: np.ndarray) -> torch.Tensor | None:
    """True at tokens, [B, 1, 1, L]; None without padding, where attention is faster for it."""
    return None if attention_mask.all() else torch.as_tensor(attention_mask, dtype=torch.bool)[:, None, None]


# === Loading ===


def load(checkpoint: Checkpoint) -> Model:
    """Read a checkpoint into float32. Raises BrokenCheckpoint, TokenizerMismatch, BrokenRun."""
    runs.verify(checkpoint)
    tokenizer = load_tokenizer(checkpoint.run)
    network = copy.deepcopy(_architecture(_read_config(checkpoint)))
    if network.config.vocab_size < tokenizer.vocabulary_size:
        raise TokenizerMismatch(
            f"The tokenizer of run '{checkpoint.run.name}' has {tokenizer.vocabulary_size} pieces, "
            f"but {checkpoint.path} has {network.config.vocab_size}; put the tokenizer of its pretraining back."
        )
    _fill(network, checkpoint)
    return Model(checkpoint, tokenizer, network)


def _read_config(checkpoint: Checkpoint) -> str:
    try:
        config = json.loads((checkpoint.path / "config.json").read_text(encoding="utf-8"))
        family = config["model_type"]
    except (OSError, ValueError, KeyError) as reason:
        raise _broken(checkpoint, f"config.json cannot be read ({reason!r})") from None
    if family not in ("albert", "bert") or config.get("inner_group_num", 1) != 1:
        raise _broken(checkpoint, "config.json is not that of an ALBERT (inner_group_num 1) or a BERT")
    return json.dumps(config, sort_keys=True)


@lru_cache(maxsize=4)
def _architecture(config: str) -> Network:
    """The network for a config.json, unfilled: building it takes ten times as long as copying it."""
    settings = json.loads(config)
    # One function under two names, GELU in its tanh form; gelu_new spells it out in Python, several times slower.
    if settings.get("hidden_act") == "gelu_new":
        settings["hidden_act"] = "gelu_pytorch_tanh"
    settings.pop("dtype", None)
    parsed = transformers.AutoConfig.for_model(**settings)
    return transformers.AutoModelForMaskedLM.from_config(parsed).float().eval()


def _fill(network: Network, checkpoint: Checkpoint) -> None:
    """Copy the stored weights into the network; every weight must be there, with its shape."""
    try:
        weights = load_file(checkpoint.path / "model.safetensors")
        report = network.load_state_dict(weights, strict=False)
    except (OSError, SafetensorError, RuntimeError) as reason:
        raise _broken(checkpoint, f"model.safetensors cannot be read ({reason})") from None
    network.tie_weights()
    tied = set(network.all_tied_weights_keys)
    missing = [name for name in report.missing_keys if name not in tied]
    foreign = [name for name in report.unexpected_keys if not any(part in name for part in UNREAD)]
    if missing or foreign:
        raise _broken(checkpoint, f"model.safetensors lacks {missing} and has {foreign} besides")


def _broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; train this step again or delete that folder.")
