"""The fast engine of encoders: ALBERT, BERT and ELECTRA on a CPU without transformers.

It reads a checkpoint in Hugging Face layout into the parts of a network, and rejects missing or unexpected tensors.
families/ has the names of each family's tensors, including those that are not read.
"""

from collections.abc import Container, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine import network
from embryo_core.engine.engine import Engine
from embryo_core.engine.kernels import Linear, copy_float32, make_linear
from embryo_core.engine.network import Detector, EmbeddingTables, EncoderLayer, EncoderNetwork, Norm, WordHead
from embryo_core.engine.tensor_files import broken_error, check_finite, read_tensors
from embryo_core.types import Checkpoint

# Parts of the names of tensors that may stay unread in any family: the pooler, position ids, the decoder if the
# masked-word head is not read, and the head's bias if the decoder has one itself.
UNREAD_NAMES = ("pooler.", "position_ids", "predictions.decoder.", "predictions.bias")
MAX_LISTED_NAMES = 5  # tensors that an error names
OBJECT_BYTES = 1024  # memory of a tensor object besides its numbers
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


class FastEncoder(Engine):
    """A loaded encoder; its passes are the functions of network.py."""

    def __init__(self, checkpoint: Checkpoint, pieces: int):
        """Read a checkpoint for a tokenizer of `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        super().__init__(checkpoint, pieces)
        unread = (*UNREAD_NAMES, *self.architecture.layout.unread)
        tensors = CheckpointTensors(checkpoint, unread, self.architecture.layer_norm_eps)
        embeddings = _embeddings(self.architecture, tensors, pieces)
        self._network = EncoderNetwork(
            embeddings,
            [_layer(self.architecture, tensors, i) for i in range(self.architecture.group_count)],
            self.num_layers,
            _head(self.architecture, tensors, embeddings.words) if "masked_words" in self.heads else None,
            _detector(self.architecture, tensors) if "replaced_tokens" in self.heads else None,
        )
        tensors.finish()
        self.nbytes = nbytes(self._network)
        self.hidden_states = partial(network.hidden_states, self._network)
        self.attentions = partial(network.attentions, self._network)
        self.detect = partial(network.detect, self._network)
        self.layer_logits = partial(network.layer_logits, self._network)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self._network.embeddings.words.float(), self._network.embeddings.positions

    @staticmethod
    def logits(engines: "Sequence[FastEncoder]", ids: Tensor, positions: tuple[Tensor, Tensor]) -> list[Tensor]:
        return network.logits([engine._network for engine in engines], ids, positions)


def nbytes(part: Any) -> int:
    """Return the memory of a part of a network in bytes; embeddings that a tied decoder widened count twice.

    The result is within 10 % of the memory of the process (measured in tests/embryo_core/engine/test_cache.py).
    """
    if isinstance(part, Linear):
        return part.nbytes + 2 * OBJECT_BYTES
    if isinstance(part, Tensor):
        return part.nbytes + OBJECT_BYTES
    return sum(map(nbytes, part)) if isinstance(part, tuple | list) else 0


def activation_of(architecture: runs.Architecture) -> str:
    """Return the engine's name of an encoder's activation."""
    return ACTIVATIONS[str(architecture.hidden_act)]


# === Tensors ===


class CheckpointTensors:
    """The tensors of a checkpoint; each is taken once, with its expected shape."""

    def __init__(self, checkpoint: Checkpoint, unread: Sequence[str], epsilon: float, mapped: bool = False):
        """Read the tensors; if `mapped`, weights stay in their file.

        Tensors whose names contain one of `unread` need not be taken.
        """
        self.checkpoint = checkpoint
        self._unread, self._epsilon = unread, epsilon
        self._mapped = mapped
        self._missing: list[str] = []
        self._file = runs.weights_file(checkpoint).name
        self._left = read_tensors(checkpoint)

    def __contains__(self, name: object) -> bool:
        return name in self._left

    def has_prefix(self, prefix: str) -> bool:
        """Return whether the name of a tensor begins with this prefix."""
        return any(name.startswith(prefix) for name in self._left)

    def take(self, name: str, *shape: int) -> Tensor:
        """Return the tensor of that name, or zeros if it is missing, in which case `finish` raises.

        Raises BrokenCheckpoint if it has another shape, or a number that is not finite.
        """
        tensor = self._left.pop(name, None)
        if tensor is None:
            self._missing.append(name)
            return torch.zeros(shape)
        if tensor.shape != shape:
            problem = f"{name} has the shape {list(tensor.shape)}, by config.json {list(shape)}"
            raise broken_error(self.checkpoint, f"{self._file} cannot be read with its config.json ({problem})")
        check_finite(self.checkpoint, name, tensor)
        return tensor

    def linear(self, out: int, into: int, *names: str, transposed: bool = False) -> Linear:
        """Return the linear map of that name, or of several concatenated; `transposed` weights are stored [in, out]."""
        shape = (into, out) if transposed else (out, into)
        weights = [self.take(f"{name}.weight", *shape) for name in names]
        biases = [self.take(f"{name}.bias", out) for name in names]
        weight, bias = (weights[0], biases[0]) if len(names) == 1 else (torch.cat(weights), torch.cat(biases))
        return self.to_linear(weight, bias, transposed)

    def to_linear(self, weight: Tensor, bias: Tensor, transposed: bool = False, shared: bool = False) -> Linear:
        """Return the linear map of tensors that were already taken; `shared` as for `make_linear`."""
        if self._mapped:
            form = "transposed" if transposed else "stored"
            return Linear(weight, copy_float32(bias), form, weight.nbytes + 4 * len(bias))
        return make_linear(weight.t() if transposed else weight, bias, shared)

    def norm(self, name: str, size: int) -> Norm:
        """Return the layer normalisation of that name."""
        gain, bias = self.take(f"{name}.weight", size), self.take(f"{name}.bias", size)
        return Norm(copy_float32(gain), copy_float32(bias), self._epsilon)

    def finish(self) -> None:
        """Raise BrokenCheckpoint if a tensor was missing or was not taken."""
        unexpected = [name for name in self._left if not any(fragment in name for fragment in self._unread)]
        if self._missing or unexpected:
            raise broken_error(
                self.checkpoint,
                f"{self._file} lacks {_list_names(self._missing)}; unexpected: {_list_names(unexpected)}",
            )


def _list_names(names: Sequence[str]) -> str:
    """Return the first names and the number of further ones, as text."""
    remainder = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"{', '.join(names[:MAX_LISTED_NAMES])}{remainder}" if names else "nothing"


# === Parts ===


def _embeddings(architecture: runs.Architecture, tensors: CheckpointTensors, pieces: int) -> EmbeddingTables:
    """Return the embeddings; a tied decoder shares the word embeddings."""
    names, size = architecture.layout.names, architecture.width
    prefix = names["embeddings"]
    segments = tensors.take(f"{prefix}.token_type_embeddings.weight", architecture.type_vocab_size, size)
    positions = tensors.take(f"{prefix}.position_embeddings.weight", architecture.max_position_embeddings, size)
    words = tensors.take(f"{prefix}.word_embeddings.weight", architecture.vocab_size, size)
    return EmbeddingTables(
        words[:pieces].clone(),
        copy_float32(positions),
        segments[0].float() + positions.float(),
        tensors.norm(f"{prefix}.LayerNorm", size),
        tensors.linear(architecture.hidden_size, size, names["projection"]) if architecture.is_projected else None,
    )


def _layer(architecture: runs.Architecture, tensors: CheckpointTensors, group: int) -> EncoderLayer:
    """Return the layer of this group; unless the family shares layers, each layer is a group."""
    prefix = architecture.layout.names["layer"].format(group)
    names = {part: f"{prefix}.{name}" for part, name in architecture.layout.names.items()}
    hidden, intermediate = architecture.hidden_size, architecture.intermediate_size or 0
    return EncoderLayer(
        architecture.num_attention_heads,
        tensors.linear(hidden, hidden, names["query"], names["key"], names["value"]),
        tensors.linear(hidden, hidden, names["output"]),
        tensors.norm(names["attention_norm"], hidden),
        tensors.linear(intermediate, hidden, names["inner"]),
        activation_of(architecture),
        tensors.linear(hidden, intermediate, names["outer"]),
        tensors.norm(names["norm"], hidden),
    )


def _head(architecture: runs.Architecture, tensors: CheckpointTensors, words: Tensor) -> WordHead:
    """Return the masked-word head; its decoder is the embeddings `words` [pieces, E] unless another is stored."""
    names, size, pieces = architecture.layout.names, architecture.width, len(words)
    decoder_name, bias = output_names(architecture, tensors)
    is_tied = decoder_name is None
    decoder = words if decoder_name is None else tensors.take(decoder_name, architecture.vocab_size, size)[:pieces]
    return WordHead(
        tensors.linear(size, architecture.hidden_size, names["dense"]),
        architecture.layout.head_activation or activation_of(architecture),
        tensors.norm(names["head_norm"], size),
        tensors.to_linear(decoder, tensors.take(bias, architecture.vocab_size)[:pieces], shared=is_tied),
    )


def output_names(architecture: runs.Architecture, tensors: Container[str]) -> tuple[str | None, str]:
    """Return the names of the decoder of masked words, None if it is the word embeddings, and of its bias.

    Like transformers, this chooses a stored decoder or bias even if config.json ties them to the embeddings.
    """
    decoder = architecture.layout.names.get("decoder", "")  # empty for a family whose decoder is always tied
    its_bias = decoder.removesuffix("weight") + "bias"
    bias = its_bias if decoder and its_bias in tensors else architecture.layout.names["bias"]
    return None if architecture.tie_word_embeddings and decoder not in tensors else decoder, bias


def _detector(architecture: runs.Architecture, tensors: CheckpointTensors) -> Detector:
    """Return the replaced-token head."""
    names, size = architecture.layout.names, architecture.hidden_size
    dense, decision = tensors.linear(size, size, names["detector_dense"]), tensors.linear(1, size, names["detector"])
    return Detector(dense, activation_of(architecture), decision)
