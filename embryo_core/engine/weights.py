"""A checkpoint's weights: Hugging Face layout on disk to the parts of a network, every tensor accounted for.

What a family's tensors are called, and which of them are left unread, is in families/. transformers is not needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from embryo_core import runs
from embryo_core.engine.capabilities import has_masked_word_head, has_replaced_token_head
from embryo_core.engine.cpu import Linear, make_linear, own
from embryo_core.engine.network import Detector, Embeddings, Head, Layer, Network, Norm
from embryo_core.engine.stored import broken, check_finite, read_tensors
from embryo_core.families import FAMILIES
from embryo_core.family import Layout
from embryo_core.tokenizers.tokenizer import check_vocabulary
from embryo_core.types import Checkpoint

NAMED = 5  # tensors that a message lists
OBJECT = 1024  # bytes that a tensor takes beside its numbers
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Sizes:
    """What config.json says of the architecture."""

    layout: Layout
    vocabulary: int
    positions: int
    segments: int
    embedding: int  # E
    hidden: int  # H
    intermediate: int
    layers: int
    groups: int  # layers with weights of their own: ALBERT shares them
    heads: int
    activation: str
    epsilon: float
    tied: bool  # the head's decoder is the word embeddings


def read_network(checkpoint: Checkpoint, pieces: int) -> tuple[Sizes, Network]:
    """Read a checkpoint for a tokenizer of so many pieces.

    Rows of the vocabulary beyond these, with which many models are padded, are left out: they stand for no piece.
    Raises BrokenCheckpoint where a file or tensor is missing, foreign or misshapen, and TokenizerMismatch where the
    vocabulary is smaller than the tokenizer.
    """
    sizes = _read_sizes(checkpoint)
    check_vocabulary(checkpoint, pieces)
    stored = _Stored(checkpoint, sizes)
    embeddings, words = _embeddings(sizes, stored, pieces)
    groups = [_layer(sizes, stored, i) for i in range(sizes.groups)]
    head = _head(sizes, stored, words[:pieces]) if has_masked_word_head(checkpoint) else None
    detector = _detector(sizes, stored) if has_replaced_token_head(checkpoint) else None
    stored.finish()
    return sizes, Network(embeddings, groups, sizes.layers, head, detector)


def nbytes(part: Any) -> int:
    """Bytes of memory of all maps and tensors in a part; tied embeddings are there twice, once in the decoder.

    Within a tenth of what the process holds: tests/embryo_core/engine/test_cache.py measures it.
    """
    if isinstance(part, Linear):
        return part.nbytes + 2 * OBJECT
    if isinstance(part, torch.Tensor):
        return part.nbytes + OBJECT
    return sum(map(nbytes, part)) if isinstance(part, tuple | list) else 0


# === config.json ===


def _read_sizes(checkpoint: Checkpoint) -> Sizes:
    config = runs.read_config(checkpoint, runs.Architecture)
    layout = FAMILIES.get(config.model_type)
    if layout is None:
        raise broken(checkpoint, f"config.json is that of no family which is read: {', '.join(FAMILIES)}")
    return Sizes(
        layout,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        segments=config.type_vocab_size,
        embedding=config.width,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        layers=config.num_hidden_layers,
        groups=config.groups,
        heads=config.num_attention_heads,
        activation=ACTIVATIONS[config.hidden_act],
        epsilon=config.layer_norm_eps,
        tied=config.tie_word_embeddings,
    )


# === Stored tensors ===


class _Stored:
    """The tensors of one file, each taken once with the shape that it must have."""

    def __init__(self, checkpoint: Checkpoint, sizes: Sizes):
        self.checkpoint = checkpoint
        self._sizes = sizes
        self._missing: list[str] = []
        self._file = runs.shown(runs.weights_file(checkpoint)[0].name)
        self._left = read_tensors(checkpoint)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """The tensor of that name; where it is missing, zeros until `finish` raises."""
        tensor = self._left.pop(name, None)
        if tensor is None:
            self._missing.append(name)
            return torch.zeros(shape)
        if tensor.shape != shape:
            found = f"{name} is {list(tensor.shape)}, config.json makes it {list(shape)}"
            raise broken(self.checkpoint, f"{self._file} cannot be read with its config.json ({found})")
        check_finite(self.checkpoint, name, tensor)
        return tensor

    def linear(self, out: int, into: int, *names: str) -> Linear:
        """The linear map of that name, or those of several names as one, side by side."""
        weights = [self.take(f"{name}.weight", out, into) for name in names]
        return make_linear(torch.cat(weights), torch.cat([self.take(f"{name}.bias", out) for name in names]))

    def norm(self, name: str, size: int) -> Norm:
        """The layer normalisation of that name."""
        gain, bias = self.take(f"{name}.weight", size), self.take(f"{name}.bias", size)
        return Norm(own(gain), own(bias), self._sizes.epsilon)

    def finish(self) -> None:
        """Raise BrokenCheckpoint for what was missing, and for tensors that no part of the model is."""
        foreign = [name for name in self._left if not any(part in name for part in self._sizes.layout.unread)]
        if self._missing or foreign:
            raise broken(self.checkpoint, f"{self._file} lacks {_few(self._missing)} and has {_few(foreign)} besides")


def _few(names: Sequence[str]) -> str:
    """Some of the names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{runs.shown(', '.join(names[:NAMED]))}{more}" if names else "nothing"


def _embeddings(sizes: Sizes, stored: _Stored, pieces: int) -> tuple[Embeddings, torch.Tensor]:
    """The embeddings, and the word embeddings [V, E] as stored, which a tied decoder shares."""
    names, size = sizes.layout.names, sizes.embedding
    part = names["embeddings"]
    segments = stored.take(f"{part}.token_type_embeddings.weight", sizes.segments, size)
    positions = stored.take(f"{part}.position_embeddings.weight", sizes.positions, size)
    words = stored.take(f"{part}.word_embeddings.weight", sizes.vocabulary, size)
    projected = sizes.layout.always_projected or size != sizes.hidden
    embeddings = Embeddings(
        words[:pieces].clone(),
        own(positions),
        segments[0].float() + positions.float(),
        stored.norm(f"{part}.LayerNorm", size),
        stored.linear(sizes.hidden, size, names["projection"]) if projected else None,
    )
    return embeddings, words


def _layer(sizes: Sizes, stored: _Stored, group: int) -> Layer:
    prefix = sizes.layout.names["layer"].format(group)
    names = {part: f"{prefix}.{name}" for part, name in sizes.layout.names.items()}
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
    """The masked-word head over the pieces of `words` [pieces, E], which are its decoder where none is stored.

    A decoder, or its bias, that is stored is read, whatever config.json says of ties: so does transformers.
    """
    names, size, pieces = sizes.layout.names, sizes.embedding, len(words)
    own = names.get("decoder", "")  # a family whose decoder is always tied has none
    its_bias = own.removesuffix("weight") + "bias"
    decoder = words if sizes.tied and own not in stored else stored.take(own, sizes.vocabulary, size)[:pieces]
    bias = its_bias if own and its_bias in stored else names["bias"]
    return Head(
        stored.linear(size, sizes.hidden, names["dense"]),
        sizes.layout.head_activation or sizes.activation,
        stored.norm(names["head_norm"], size),
        make_linear(decoder, stored.take(bias, sizes.vocabulary)[:pieces]),
    )


def _detector(sizes: Sizes, stored: _Stored) -> Detector:
    names, size = sizes.layout.names, sizes.hidden
    dense, decision = stored.linear(size, size, names["detector_dense"]), stored.linear(1, size, names["detector"])
    return Detector(dense, sizes.activation, decision)
