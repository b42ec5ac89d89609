"""The fast engine: ALBERT, BERT and ELECTRA on a CPU without transformers.

It reads a checkpoint in Hugging Face layout into the parts of a network and accounts for every tensor. families/ has
the names of a family's tensors and those that are left unread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from embryo_core import runs
from embryo_core.engine import device, network
from embryo_core.engine.capabilities import heads
from embryo_core.engine.kernels import Linear, make_linear, own
from embryo_core.engine.network import Detector, EmbeddingTables, Head, Layer, Network
from embryo_core.engine.stored import Stored
from embryo_core.engine.tensor_files import broken
from embryo_core.families import FAMILIES, Layout
from embryo_core.tokenizers.tokenizer import check_vocabulary
from embryo_core.types import Checkpoint

# In the names of tensors that no family uses: a pooler, position numbers, the decoder of a model without masked words,
# and the bias of a decoder that has its own.
UNREAD = ("pooler.", "position_ids", "predictions.decoder.", "predictions.bias")
OBJECT_BYTES = 1024  # of a tensor besides its numbers
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


class FastBase:
    """What the fast engines of encoders and decoders share of an `Engine` (see model.py)."""

    def __init__(self, sizes: runs.Architecture, network: Any, mapped: bool = False):
        """Describe a network that was read for a model of these sizes."""
        device.use_one_core_per_pass()
        self._network, self.mapped = network, mapped
        self.max_positions = sizes.max_position_embeddings
        self.num_layers = sizes.num_hidden_layers
        self.num_heads = sizes.num_attention_heads
        self.hidden_size = sizes.hidden_size
        self.nbytes = nbytes(network)
        self.tokens_at_once = device.CPU_TOKENS

    def passes_at_once(self) -> int:
        return device.passes_at_once()


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
        engines: "Sequence[FastEngine]", ids: Tensor, mask: Tensor | None, at: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        return network.logits([engine._network for engine in engines], ids, mask, at)

    def read_on(self, ids: Tensor, past: Tensor | None, last: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError  # encoders give no next words


@dataclass(frozen=True)
class NetworkSizes:
    """The architecture as config.json describes it."""

    layout: Layout
    vocabulary: int
    positions: int
    segments: int
    embedding: int  # E
    hidden: int  # H
    intermediate: int
    layers: int
    groups: int  # distinct layers; ALBERT repeats them
    heads: int
    activation: str
    epsilon: float
    tied: bool  # the word embeddings are the decoder of the head


def read_network(checkpoint: Checkpoint, pieces: int) -> Network:
    """Read a checkpoint for a tokenizer of `pieces` pieces.

    Extra rows of the vocabulary, with which many models are padded, are left out. Raises BrokenCheckpoint if a file or
    tensor is missing, unexpected or misshapen, and TokenizerMismatch if the vocabulary is smaller than the tokenizer.
    """
    sizes = read_sizes(checkpoint)
    check_vocabulary(checkpoint, pieces)
    stored = Stored(checkpoint, (*UNREAD, *sizes.layout.unread), sizes.epsilon)
    embeddings, words = _embeddings(sizes, stored, pieces)
    groups = [_layer(sizes, stored, i) for i in range(sizes.groups)]
    head = _head(sizes, stored, words[:pieces]) if "masked_words" in heads(checkpoint) else None
    detector = _detector(sizes, stored) if "replaced_tokens" in heads(checkpoint) else None
    stored.finish()
    return Network(embeddings, groups, sizes.layers, head, detector)


def nbytes(part: Any) -> int:
    """Return the bytes of memory of all maps and tensors in a part; tied embeddings count twice.

    The result is within a tenth of what the process holds (measured in tests/embryo_core/engine/test_cache.py).
    """
    if isinstance(part, Linear):
        return part.nbytes + 2 * OBJECT_BYTES
    if isinstance(part, Tensor):
        return part.nbytes + OBJECT_BYTES
    return sum(map(nbytes, part)) if isinstance(part, tuple | list) else 0


# === config.json ===


def read_sizes(checkpoint: Checkpoint) -> NetworkSizes:
    """Read config.json. Raises BrokenCheckpoint for a family that this engine does not know."""
    config = runs.read_config(checkpoint, runs.Architecture)
    layout = FAMILIES.get(config.model_type)
    if layout is None:
        raise broken(checkpoint, f"config.json names none of the families {', '.join(FAMILIES)}")
    return NetworkSizes(
        layout,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        segments=config.type_vocab_size,
        embedding=config.width,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size or 0,
        layers=config.num_hidden_layers,
        groups=config.groups,
        heads=config.num_attention_heads,
        activation=ACTIVATIONS[str(config.hidden_act)],
        epsilon=config.layer_norm_eps,
        tied=config.tie_word_embeddings,
    )


# === Parts ===


def _embeddings(sizes: NetworkSizes, stored: Stored, pieces: int) -> tuple[EmbeddingTables, Tensor]:
    """Return the embeddings, and the stored word embeddings [V, E], which a tied decoder shares."""
    names, size = sizes.layout.names, sizes.embedding
    part = names["embeddings"]
    segments = stored.take(f"{part}.token_type_embeddings.weight", sizes.segments, size)
    positions = stored.take(f"{part}.position_embeddings.weight", sizes.positions, size)
    words = stored.take(f"{part}.word_embeddings.weight", sizes.vocabulary, size)
    projected = sizes.layout.always_projected or size != sizes.hidden
    embeddings = EmbeddingTables(
        words[:pieces].clone(),
        own(positions),
        segments[0].float() + positions.float(),
        stored.norm(f"{part}.LayerNorm", size),
        stored.linear(sizes.hidden, size, names["projection"]) if projected else None,
    )
    return embeddings, words


def _layer(sizes: NetworkSizes, stored: Stored, group: int) -> Layer:
    """Return one distinct layer."""
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


def _head(sizes: NetworkSizes, stored: Stored, words: Tensor) -> Head:
    """Return the masked-word head over the pieces of `words` [pieces, E], its decoder unless another is stored.

    Like transformers, it reads a stored decoder or bias even if config.json ties them to the embeddings.
    """
    names, size, pieces = sizes.layout.names, sizes.embedding, len(words)
    own = names.get("decoder", "")  # empty for a family whose decoder is always tied
    its_bias = own.removesuffix("weight") + "bias"
    decoder = words if sizes.tied and own not in stored else stored.take(own, sizes.vocabulary, size)[:pieces]
    bias = its_bias if own and its_bias in stored else names["bias"]
    return Head(
        stored.linear(size, sizes.hidden, names["dense"]),
        sizes.layout.head_activation or sizes.activation,
        stored.norm(names["head_norm"], size),
        make_linear(decoder, stored.take(bias, sizes.vocabulary)[:pieces]),
    )


def _detector(sizes: NetworkSizes, stored: Stored) -> Detector:
    """Return the head of replaced tokens."""
    names, size = sizes.layout.names, sizes.hidden
    dense, decision = stored.linear(size, size, names["detector_dense"]), stored.linear(1, size, names["detector"])
    return Detector(dense, sizes.activation, decision)
