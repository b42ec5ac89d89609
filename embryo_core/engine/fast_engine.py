"""The fast engine: ALBERT, BERT and ELECTRA on a CPU without transformers.

It reads a checkpoint in Hugging Face layout into the parts of a network, and rejects missing or unexpected tensors.
families/ has the names of each family's tensors, including those that are not read.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from embryo_core import runs
from embryo_core.engine import device, network
from embryo_core.engine.capabilities import heads
from embryo_core.engine.kernels import Linear, own
from embryo_core.engine.network import Detector, EmbeddingTables, Head, Layer, Network
from embryo_core.engine.stored import Stored
from embryo_core.tokenizers.checks import check_vocabulary
from embryo_core.types import Checkpoint

# Parts of the names of tensors that may stay unread in any family: the pooler, position ids, the decoder if the
# masked-word head is not read, and the head's bias if the decoder has one itself.
UNREAD = ("pooler.", "position_ids", "predictions.decoder.", "predictions.bias")
OBJECT_BYTES = 1024  # memory of a tensor object besides its numbers
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


class FastBase:
    """The base of the fast engines of encoders and decoders (see `Engine` in model.py)."""

    def __init__(self, sizes: runs.Architecture, network: Any, mapped: bool = False):
        """Wrap a network of these sizes; if `mapped`, its weights stay in their file."""
        device.use_one_core_per_pass()
        self._network, self.mapped = network, mapped
        self.max_positions = sizes.max_position_embeddings
        self.num_layers = sizes.num_hidden_layers
        self.num_heads = sizes.num_attention_heads
        self.hidden_size = sizes.hidden_size
        self.nbytes = nbytes(network)
        self.max_batch_tokens = device.CPU_TOKENS
        self.parallel_passes = device.parallel_passes()


class FastEngine(FastBase):
    """A loaded encoder, as an `Engine` (see model.py)."""

    def __init__(self, checkpoint: Checkpoint, pieces: int):
        """Read a checkpoint for a tokenizer of `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        super().__init__(runs.read_config(checkpoint, runs.Architecture), read_network(checkpoint, pieces))

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        return self._network.embeddings.words.float(), self._network.embeddings.positions

    def head(self, states: Tensor) -> Tensor:
        raise NotImplementedError  # encoders give no next words

    def layer_logits(self, ids: Tensor, position: int) -> Tensor:
        return network.layer_logits(self._network, ids, position)

    def detect(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.detect(self._network, ids, mask)

    def hidden_states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.hidden_states(self._network, ids, mask)

    def attentions(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.attentions(self._network, ids, mask)

    @staticmethod
    def logits(
        engines: "Sequence[FastEngine]", ids: Tensor, mask: Tensor | None, positions: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        return network.logits([engine._network for engine in engines], ids, mask, positions)

    def forward_with_past(self, ids: Tensor, past: Tensor | None, last: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError  # encoders give no next words


def read_network(checkpoint: Checkpoint, pieces: int) -> Network:
    """Read a checkpoint, for the first `pieces` rows of its vocabulary. Raises BrokenCheckpoint, TokenizerMismatch."""
    sizes = runs.read_config(checkpoint, runs.Architecture)
    check_vocabulary(checkpoint, pieces)
    stored = Stored(checkpoint, (*UNREAD, *sizes.layout.unread), sizes.layer_norm_eps)
    embeddings = _embeddings(sizes, stored, pieces)
    groups = [_layer(sizes, stored, i) for i in range(sizes.groups)]
    head = _head(sizes, stored, embeddings.words) if "masked_words" in heads(checkpoint) else None
    detector = _detector(sizes, stored) if "replaced_tokens" in heads(checkpoint) else None
    stored.finish()
    return Network(embeddings, groups, sizes.num_hidden_layers, head, detector)


def nbytes(part: Any) -> int:
    """Return the memory of a part of a network in bytes; embeddings that a tied decoder widened count twice.

    The result is within 10 % of the memory of the process (measured in tests/embryo_core/engine/test_cache.py).
    """
    if isinstance(part, Linear):
        return part.nbytes + 2 * OBJECT_BYTES
    if isinstance(part, Tensor):
        return part.nbytes + OBJECT_BYTES
    return sum(map(nbytes, part)) if isinstance(part, tuple | list) else 0


def activation_of(sizes: runs.Architecture) -> str:
    """Return the engine's name of an encoder's activation."""
    return ACTIVATIONS[str(sizes.hidden_act)]


# === Parts ===


def _embeddings(sizes: runs.Architecture, stored: Stored, pieces: int) -> EmbeddingTables:
    """Return the embeddings; a tied decoder shares the word embeddings."""
    names, size = sizes.layout.names, sizes.width
    part = names["embeddings"]
    segments = stored.take(f"{part}.token_type_embeddings.weight", sizes.type_vocab_size, size)
    positions = stored.take(f"{part}.position_embeddings.weight", sizes.max_position_embeddings, size)
    words = stored.take(f"{part}.word_embeddings.weight", sizes.vocab_size, size)
    return EmbeddingTables(
        words[:pieces].clone(),
        own(positions),
        segments[0].float() + positions.float(),
        stored.norm(f"{part}.LayerNorm", size),
        stored.linear(sizes.hidden_size, size, names["projection"]) if sizes.is_projected else None,
    )


def _layer(sizes: runs.Architecture, stored: Stored, group: int) -> Layer:
    """Return the layer of this group; unless the family shares layers, each layer is a group."""
    prefix = sizes.layout.names["layer"].format(group)
    names = {part: f"{prefix}.{name}" for part, name in sizes.layout.names.items()}
    hidden, intermediate = sizes.hidden_size, sizes.intermediate_size or 0
    return Layer(
        sizes.num_attention_heads,
        stored.linear(hidden, hidden, names["query"], names["key"], names["value"]),
        stored.linear(hidden, hidden, names["output"]),
        stored.norm(names["attention_norm"], hidden),
        stored.linear(intermediate, hidden, names["inner"]),
        activation_of(sizes),
        stored.linear(hidden, intermediate, names["outer"]),
        stored.norm(names["norm"], hidden),
    )


def _head(sizes: runs.Architecture, stored: Stored, words: Tensor) -> Head:
    """Return the masked-word head; its decoder is the embeddings `words` [pieces, E] unless another is stored.

    Like transformers, it reads a stored decoder or bias even if config.json ties them to the embeddings.
    """
    names, size, pieces = sizes.layout.names, sizes.width, len(words)
    decoder_name = names.get("decoder", "")  # empty for a family whose decoder is always tied
    its_bias = decoder_name.removesuffix("weight") + "bias"
    tied = sizes.tie_word_embeddings and decoder_name not in stored
    decoder = words if tied else stored.take(decoder_name, sizes.vocab_size, size)[:pieces]
    bias = its_bias if decoder_name and its_bias in stored else names["bias"]
    return Head(
        stored.linear(size, sizes.hidden_size, names["dense"]),
        sizes.layout.head_activation or activation_of(sizes),
        stored.norm(names["head_norm"], size),
        stored.to_linear(decoder, stored.take(bias, sizes.vocab_size)[:pieces], shared=tied),
    )


def _detector(sizes: runs.Architecture, stored: Stored) -> Detector:
    """Return the replaced-token head."""
    names, size = sizes.layout.names, sizes.hidden_size
    dense, decision = stored.linear(size, size, names["detector_dense"]), stored.linear(1, size, names["detector"])
    return Detector(dense, activation_of(sizes), decision)
