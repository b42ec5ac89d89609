"""A checkpoint's weights: Hugging Face layout on disk to the maps of a forward pass, every tensor accounted for.

Weights of `AlbertForPreTraining` or `BertForPreTraining` give the masked language model; their second head (sentence
order, next sentence) and the pooler are left unread. transformers is not needed for it.
"""

import json
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from embryo_core.engine.cpu import Embeddings, Head, Layer, Linear, Network, Norm, make_linear
from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Checkpoint

# What is left unread; a decoder's bias repeats the head's, and a tied decoder's weight the word embeddings.
UNREAD = ("pooler.", "sop_classifier.", "cls.seq_relationship.", "predictions.decoder.")
NAMES = {  # each part of the model, by family
    "albert": {
        "embeddings": "albert.embeddings",
        "projection": "albert.encoder.embedding_hidden_mapping_in",
        "layer": "albert.encoder.albert_layer_groups.{}.albert_layers.0",
        "query": "attention.query",
        "key": "attention.key",
        "value": "attention.value",
        "output": "attention.dense",
        "attention_norm": "attention.LayerNorm",
        "inner": "ffn",
        "outer": "ffn_output",
        "norm": "full_layer_layer_norm",
        "dense": "predictions.dense",
        "head_norm": "predictions.LayerNorm",
        "decoder": "predictions.decoder",
        "bias": "predictions.bias",
    },
    "bert": {
        "embeddings": "bert.embeddings",
        "layer": "bert.encoder.layer.{}",
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "norm": "output.LayerNorm",
        "dense": "cls.predictions.transform.dense",
        "head_norm": "cls.predictions.transform.LayerNorm",
        "decoder": "cls.predictions.decoder",
        "bias": "cls.predictions.bias",
    },
}
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Sizes:
    """What config.json says of the architecture."""

    family: str
    vocabulary: int
    positions: int
    segments: int
    embedding: int  # E; H for BERT
    hidden: int  # H
    intermediate: int
    layers: int
    groups: int  # layers with weights of their own: ALBERT shares them
    heads: int
    activation: str
    epsilon: float
    tied: bool  # the head's decoder is the word embeddings


@dataclass(frozen=True, eq=False)
class Weights:
    """What a checkpoint holds."""

    sizes: Sizes
    network: Network
    nbytes: int  # of memory

    @property
    def layers(self) -> list[Layer]:
        """The layers from the lowest."""
        groups, depth = self.network.groups, self.network.depth
        return [groups[i * len(groups) // depth] for i in range(depth)]


def read_weights(checkpoint: Checkpoint) -> Weights:
    """Read a checkpoint. Raises BrokenCheckpoint where a file or tensor is missing, foreign or misshapen."""
    sizes = _read_sizes(checkpoint)
    stored = _Stored(checkpoint, sizes.epsilon)
    embeddings = _embeddings(sizes, stored)
    groups = [_layer(sizes, stored, i) for i in range(sizes.groups)]
    head = _head(sizes, stored, embeddings.words)
    stored.finish()
    return Weights(sizes, Network(embeddings, groups, sizes.layers, head), _nbytes((embeddings, *groups, head)))


def broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    """The error for a checkpoint with something wrong."""
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; train this step again or delete that folder.")


# === config.json ===


def _read_sizes(checkpoint: Checkpoint) -> Sizes:
    try:
        config: dict[str, Any] = json.loads((checkpoint.path / "config.json").read_text(encoding="utf-8"))
        family = config["model_type"]
        albert = family == "albert"
        if family not in NAMES or config.get("inner_group_num", 1) != 1:
            raise broken(checkpoint, "config.json is not that of an ALBERT (inner_group_num 1) or a BERT")
        sizes = Sizes(
            family,
            vocabulary=config["vocab_size"],
            positions=config["max_position_embeddings"],
            segments=config.get("type_vocab_size", 2),
            embedding=config["embedding_size"] if albert else config["hidden_size"],
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            groups=config.get("num_hidden_groups", 1) if albert else config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            activation=ACTIVATIONS.get(config["hidden_act"], config["hidden_act"]),
            epsilon=config.get("layer_norm_eps", 1e-12),
            tied=config.get("tie_word_embeddings", True),
        )
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise broken(checkpoint, f"config.json cannot be read ({reason!r})") from None
    if sizes.activation not in ACTIVATIONS.values():
        raise broken(checkpoint, f"config.json has hidden_act '{sizes.activation}'; known: {', '.join(ACTIVATIONS)}")
    return sizes


# === model.safetensors ===


class _Stored:
    """The tensors of one file, each taken once with the shape that it must have."""

    def __init__(self, checkpoint: Checkpoint, epsilon: float):
        self.checkpoint = checkpoint
        self._epsilon = epsilon
        self._missing: list[str] = []
        try:
            self._left = load_file(checkpoint.path / "model.safetensors")
        except (OSError, SafetensorError) as reason:
            raise broken(checkpoint, f"model.safetensors cannot be read ({reason})") from None

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """The tensor of that name; where it is missing, zeros until `finish` tells."""
        tensor = self._left.pop(name, None)
        if tensor is None:
            self._missing.append(name)
            return torch.zeros(shape)
        if tensor.shape != shape:
            found = f"{name} is {list(tensor.shape)}, config.json makes it {list(shape)}"
            raise broken(self.checkpoint, f"model.safetensors cannot be read with its config.json ({found})")
        return tensor

    def linear(self, out: int, into: int, *names: str) -> Linear:
        """The linear map of that name, or those of several names as one, side by side."""
        weights = [self.take(f"{name}.weight", out, into) for name in names]
        return make_linear(torch.cat(weights), torch.cat([self.take(f"{name}.bias", out) for name in names]))

    def norm(self, name: str, size: int) -> Norm:
        """The layer normalisation of that name."""
        gain, bias = self.take(f"{name}.weight", size), self.take(f"{name}.bias", size)
        return Norm(gain.float(), bias.float(), self._epsilon)

    def finish(self) -> None:
        """Raise BrokenCheckpoint for what was missing, and for tensors that no part of the model is."""
        foreign = [name for name in self._left if not any(part in name for part in UNREAD)]
        if self._missing or foreign:
            raise broken(self.checkpoint, f"model.safetensors lacks {self._missing} and has {foreign} besides")


def _embeddings(sizes: Sizes, stored: _Stored) -> Embeddings:
    names, size = NAMES[sizes.family], sizes.embedding
    part = names["embeddings"]
    segments = stored.take(f"{part}.token_type_embeddings.weight", sizes.segments, size)
    places = stored.take(f"{part}.position_embeddings.weight", sizes.positions, size)
    return Embeddings(
        stored.take(f"{part}.word_embeddings.weight", sizes.vocabulary, size),
        segments[0].float() + places.float(),
        stored.norm(f"{part}.LayerNorm", size),
        stored.linear(sizes.hidden, size, names["projection"]) if sizes.family == "albert" else None,
    )


def _layer(sizes: Sizes, stored: _Stored, group: int) -> Layer:
    prefix = NAMES[sizes.family]["layer"].format(group)
    names = {part: f"{prefix}.{name}" for part, name in NAMES[sizes.family].items()}
    hidden, intermediate = sizes.hidden, sizes.intermediate
    return Layer(
        sizes.heads,
        stored.linear(hidden, hidden, names["query"], names["key"], names["value"]),
        stored.linear(hidden, hidden, names["output"]),
        stored.norm(names["attention_norm"], hidden),
        stored.linear(intermediate, hidden, names["inner"]),
        sizes.activation,
        stored.linear(hidden, intermediate, names["outer"]),
        stored.norm(names["norm"], hidden),
    )


def _head(sizes: Sizes, stored: _Stored, words: torch.Tensor) -> Head:
    names, size = NAMES[sizes.family], sizes.embedding
    own = None if sizes.tied else stored.take(f"{names['decoder']}.weight", sizes.vocabulary, size)
    return Head(
        stored.linear(size, sizes.hidden, names["dense"]),
        sizes.activation,
        stored.norm(names["head_norm"], size),
        make_linear(words if own is None else own, stored.take(names["bias"], sizes.vocabulary)),
    )


def _nbytes(part: Any) -> int:
    """Bytes of memory of all maps and tensors in a part; tied embeddings are there twice, once in the decoder."""
    if isinstance(part, Linear | torch.Tensor):
        return part.nbytes
    return sum(map(_nbytes, part)) if isinstance(part, tuple) else 0
