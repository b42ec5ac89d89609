"""The torch room: load a checkpoint, token ids in, numpy arrays out; float32 whatever was stored.

Checkpoints are read as they stand in Hugging Face layout. Weights of `AlbertForPreTraining` or `BertForPreTraining` fill
the matching masked language model, whose encoder and masked-word head are the same modules; their second head (sentence
order, next sentence) and the pooler are left unread. transformers makes the modules; the passes through them are here,
so that the last layer can be computed at the asked positions alone.

A pass runs on one core, and metrics run as many as there are cores: on two cores that is faster than sharing each small
matrix product, and the numbers do not depend on how many cores there are.
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
        self._head: Module = network.predictions if config.model_type == "albert" else network.cls

    @property
    def nbytes(self) -> int:
        """Bytes that the weights take in memory."""
        return sum(weight.nbytes for weight in self._network.parameters())

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


@dataclass(frozen=True, eq=False)
class _Layer:
    """One transformer layer: ALBERT and BERT name its modules differently and compute the same."""

    heads: int
    query: Module
    key: Module
    value: Module
    output: Module
    attention_norm: Module
    inner: Module
    activation: Module
    outer: Module
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
        new = self.norm(self.outer(self.activation(self.inner(attended))) + attended)
        return new if at is None else new[:, 0]

    def weights(self, states: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Attention weights [B, heads, L, L]."""
        query, key = self._split(self.query(states)), self._split(self.key(states))
        scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)

    def _split(self, states: torch.Tensor) -> torch.Tensor:
        """[B, L, H] as [B, heads, L, H / heads]."""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def _layers(network: Network) -> Iterator[_Layer]:
    """The layers of a network from the lowest; those of an ALBERT share their modules within a group."""
    config, encoder = network.config, network.base_model.encoder
    for i in range(config.num_hidden_layers):
        if config.model_type == "albert":
            (layer,) = encoder.albert_layer_groups[
                i * config.num_hidden_groups // config.num_hidden_layers
            ].albert_layers
            attention, inner, outer = layer.attention, layer.ffn, layer.ffn_output
            output, attention_norm = attention.dense, attention.LayerNorm
            activation, norm = layer.activation, layer.full_layer_layer_norm
        else:
            layer = encoder.layer[i]
            attention, inner, outer = layer.attention.self, layer.intermediate.dense, layer.output.dense
            output, attention_norm = layer.attention.output.dense, layer.attention.output.LayerNorm
            activation, norm = layer.intermediate.intermediate_act_fn, layer.output.LayerNorm
        yield _Layer(
            config.num_attention_heads,
            *(attention.query, attention.key, attention.value, output, attention_norm),
            *(inner, activation, outer, norm),
        )


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
    # One function under two names (GELU in its tanh form); gelu_new spells it out in Python and is several times slower.
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
