"""The fast engine of decoders: GPT-2 and GPT-NeoX on a CPU without transformers.

Weights of a large model stay in their memory-mapped file: a query of many checkpoints reads each number once, so
converting the weights would take longer than the query itself.
"""

from collections.abc import Container, Sequence
from functools import partial

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine import decoder_network as network
from embryo_core.engine.decoder_network import DecoderLayer, DecoderNetwork
from embryo_core.engine.engine import Engine
from embryo_core.engine.fast_engine import ACTIVATIONS, CheckpointTensors, nbytes
from embryo_core.engine.kernels import copy_float32
from embryo_core.families import DECODERS, DecoderLayout
from embryo_core.types import Checkpoint

MAPPED_BYTES = 2**27  # bytes of weights; from this size on, they stay in their file


class FastDecoder(Engine):
    """A loaded decoder; its passes are the functions of decoder_network.py."""

    def __init__(self, checkpoint: Checkpoint, pieces: int):
        """Read a checkpoint for a tokenizer of `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        super().__init__(checkpoint, pieces)
        self.mapped = sum(path.stat().st_size for path, _ in runs.weights_files(checkpoint)) >= MAPPED_BYTES
        architecture, config = self.architecture, runs.read_config(checkpoint, runs.DecoderConfig)
        layout, hidden = DECODERS[architecture.model_type], self.hidden_size
        tensors = CheckpointTensors(checkpoint, layout.unread, config.epsilon, self.mapped)
        base = layout.base if tensors.has_prefix(layout.base) else ""
        words = tensors.take(f"{base}{layout.names['words']}.weight", architecture.vocab_size, hidden)
        positions = None
        if name := layout.names.get("positions"):
            positions = tensors.take(f"{base}{name}.weight", architecture.max_position_embeddings, hidden)
        table = words[:pieces] if self.mapped else words[:pieces].clone()
        self._network = DecoderNetwork(
            table,
            None if positions is None else copy_float32(positions),
            frequencies(architecture, config) if layout.rotary else torch.empty(0),
            [_layer(architecture, config, tensors, base, i) for i in range(self.num_layers)],
            tensors.norm(base + layout.names["final_norm"], hidden),
            _decoder(architecture, config, tensors, table) if "next_words" in self.heads else None,
        )
        tensors.finish()
        self.nbytes = nbytes(self._network)
        self.hidden_states = partial(network.hidden_states, self._network)
        self.attentions = partial(network.attentions, self._network)
        self.head = partial(network.apply_head, network=self._network)
        self.forward_with_past = partial(network.forward_with_past, self._network)

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        return self._network.words.float(), self._network.positions

    @staticmethod
    def logits(engines: "Sequence[FastDecoder]", ids: Tensor, positions: tuple[Tensor, Tensor]) -> list[Tensor]:
        return network.logits([engine._network for engine in engines], ids, positions)


def is_fast(checkpoint: Checkpoint) -> bool:
    """Return whether this engine supports a decoder: its family, its activation, and all of its parts."""
    layout = DECODERS.get(runs.read_config(checkpoint, runs.ModelClass).model_type)
    if layout is None:
        return False
    config = runs.read_config(checkpoint, runs.DecoderConfig)
    return config.is_plain and bool(decoder_activation(config, layout))


def decoder_activation(config: runs.DecoderConfig, layout: DecoderLayout) -> str:
    """Return the engine's name of a decoder's activation; "" if the engine lacks it."""
    return ACTIVATIONS.get(str(config.activation_function or config.hidden_act or layout.activation), "")


def frequencies(architecture: runs.Architecture, config: runs.DecoderConfig) -> Tensor:
    """Return the rotation frequencies [R / 2], theta^(-2 i / R) for i from 0 to R / 2 - 1."""
    theta, share = config.rotation
    dimensions = int(architecture.hidden_size // architecture.num_attention_heads * share)
    return 1 / theta ** (torch.arange(0, dimensions, 2).float() / dimensions)


def _layer(
    architecture: runs.Architecture, config: runs.DecoderConfig, tensors: CheckpointTensors, base: str, i: int
) -> DecoderLayer:
    """Return layer i; 0 is the lowest."""
    layout = DECODERS[architecture.model_type]
    prefix = base + layout.names["layer"].format(i)
    names = {part: f"{prefix}.{name}" for part, name in layout.names.items()}
    hidden, inner, transposed = architecture.hidden_size, architecture.intermediate_size or 0, layout.transposed
    scale = (hidden // architecture.num_attention_heads) ** -0.5 if config.scale_attn_weights else 1.0
    return DecoderLayer(
        architecture.num_attention_heads,
        layout.by_head,
        scale / (i + 1) if config.scale_attn_by_inverse_layer_idx else scale,
        tensors.norm(names["attention_norm"], hidden),
        tensors.linear(3 * hidden, hidden, names["query_key_value"], transposed=transposed),
        tensors.linear(hidden, hidden, names["output"], transposed=transposed),
        layout.parallel if config.use_parallel_residual is None else config.use_parallel_residual,
        tensors.norm(names["norm"], hidden),
        tensors.linear(inner, hidden, names["inner"], transposed=transposed),
        decoder_activation(config, layout),
        tensors.linear(hidden, inner, names["outer"], transposed=transposed),
    )


def _decoder(
    architecture: runs.Architecture, config: runs.DecoderConfig, tensors: CheckpointTensors, table: Tensor
) -> network.Linear:
    """Return the output matrix [pieces, H]: the stored one, or the word embeddings `table` if tied."""
    name, pieces = output_name(DECODERS[architecture.model_type], config, tensors), len(table)
    matrix = table if name is None else tensors.take(name, architecture.vocab_size, architecture.hidden_size)[:pieces]
    return tensors.to_linear(matrix, torch.zeros(pieces), shared=name is None)


def output_name(layout: DecoderLayout, config: runs.DecoderConfig, tensors: Container[str]) -> str | None:
    """Return the name of a decoder's output matrix; None if it is the word embeddings."""
    names = [f"{name}.weight" for name in layout.decoder]
    is_tied = layout.tied if config.tie_word_embeddings is None else config.tie_word_embeddings
    return next((name for name in names if name in tensors), None if is_tied else names[0])
