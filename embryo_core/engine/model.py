"""Load a checkpoint as a Model, which computes float32 numpy arrays from token ids.

A Model has the capabilities of its checkpoint, and an Engine does the computation. Loading chooses the engine; nothing
outside this folder depends on the choice.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.capabilities import checkpoint_capabilities, heads, is_decoder
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.engine import Engine
from embryo_core.engine.fast_decoder import FastDecoder, is_fast
from embryo_core.engine.fast_engine import ACTIVATIONS, FastEncoder
from embryo_core.engine.hub_cache import fetch_checkpoint
from embryo_core.engine.tensor_files import broken_error, is_finite
from embryo_core.errors import BrokenCheckpoint, MissingCapability
from embryo_core.families import ENCODERS
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Checkpoint


class Model:
    """A loaded checkpoint. Arrays of ids are [B, L]: B sequences of equal length, without padding.

    `capabilities` are names: "masked_words", "next_words", "words", "replaced_tokens", "states", "attentions",
    "trainable" (see capabilities.py). Other outputs raise MissingCapability, and outputs that are NaN or infinite raise
    BrokenCheckpoint. Word logits are over the V pieces of the tokenizer, even if the stored vocabulary is larger.
    """

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer, engine: Engine, generator: "Model | None" = None):
        """Wrap an engine; an ELECTRA has a `generator` for masked words, and uses `engine` otherwise."""
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self._engine = engine
        self._generator = generator
        self.capabilities = checkpoint_capabilities(checkpoint)
        self.vocabulary_size = tokenizer.vocabulary_size  # V
        engines: list[Engine] = [engine, generator._engine] if generator else [engine]
        self.max_positions = min(part.max_positions for part in engines)
        self.num_layers = engine.num_layers
        self.num_heads = engine.num_heads
        self.hidden_size = engine.hidden_size  # H
        self.nbytes = sum(part.nbytes for part in engines)  # memory of the weights
        self.mapped = engine.mapped  # the weights stay in their file
        self.parallel_passes = engine.parallel_passes
        self.max_batch_tokens = min(part.max_batch_tokens for part in engines)

    @property
    def masked_word_model(self) -> "Model":
        """Return the model that predicts masked words: this one, or an ELECTRA's generator."""
        return self._generator or self

    def mlm_logits(self, ids: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Compute masked-word logits [n, V] at the n positions (rows[i], columns[i]), and only there."""
        return word_logits([self], ids[None], rows, columns)[0]

    def next_logits(self, ids: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Compute logits [n, V] of the piece after each of the n positions (rows[i], columns[i]), and only there."""
        return word_logits([self], ids[None], rows, columns, "next_words")[0]

    @torch.inference_mode()
    def forward_with_past(
        self, ids: np.ndarray, past: Tensor | None = None, last: int = 1
    ) -> tuple[np.ndarray, Tensor]:
        """Compute next-piece logits [B, last, V] at the `last` pieces of ids [B, n], which follow the pieces of a past.

        Also returns the past including these ids, for the next call; `past[..., :P, :]` is the past of the first P
        pieces. All rows may continue the past of a single row.
        """
        self._need("next_words")
        logits, past = self._engine.forward_with_past(torch.as_tensor(ids), past, last)
        return self._finite("logits", logits), past

    @torch.inference_mode()
    def embeddings(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return word embeddings [V, E] as stored, and position embeddings [P, E], or None if the model has none."""
        self._need("states")
        words, positions = self._engine.embeddings()
        return words.numpy(), None if positions is None else positions.numpy()

    @torch.inference_mode()
    def layer_logits(self, ids: np.ndarray, position: int) -> np.ndarray:
        """Compute masked-word logits [num_layers + 1, V] from every layer's state at a position of ids [L].

        The final norm, if the model has one, and the head are applied to each. The last row equals `mlm_logits`.
        """
        self._need("masked_words")
        return self._finite("logits", self.masked_word_model._engine.layer_logits(torch.as_tensor(ids)[None], position))

    @torch.inference_mode()
    def next_head(self, states: np.ndarray) -> np.ndarray:
        """Compute next-piece logits [n, V] from states [n, H] below the last layer; the final norm is applied first."""
        self._need("next_words")
        return self._finite("logits", self._engine.head(torch.as_tensor(states)))

    @torch.inference_mode()
    def replaced_logits(self, ids: np.ndarray) -> np.ndarray:
        """Compute logits [B, L], above 0 where the model judges a token replaced (Clark et al., 2020, Section 2)."""
        self._need("replaced_tokens")
        return self._finite("logits", self._engine.detect(torch.as_tensor(ids)))

    @torch.inference_mode()
    def hidden_states(self, ids: np.ndarray) -> np.ndarray:
        """Compute states [num_layers + 1, B, L, H], embeddings first; the last have passed a decoder's final norm."""
        self._need("states")
        return self._finite("states", self._engine.hidden_states(torch.as_tensor(ids)))

    @torch.inference_mode()
    def attentions(self, ids: np.ndarray) -> np.ndarray:
        """Compute attention weights [num_layers, B, heads, L, L], row = from, column = to."""
        self._need("attentions")
        return self._finite("attentions", self._engine.attentions(torch.as_tensor(ids)))

    def _finite(self, name: str, tensor: Tensor) -> np.ndarray:
        """Return numbers as an array; raise BrokenCheckpoint if one is NaN or infinite, as when weights overflow."""
        if not is_finite(tensor):
            raise BrokenCheckpoint(
                f"{self.checkpoint.path}: its {name} are NaN or infinite, although its weights are not; leave out this "
                "step."
            )
        return tensor.numpy()

    def _need(self, capability: str) -> None:
        """Raise MissingCapability if the model lacks a capability."""
        if capability not in self.capabilities:
            path = self.checkpoint.path
            class_name = runs.read_config(self.checkpoint, runs.ModelClass).name
            label = capability.replace("_", " ")
            available = ", ".join(sorted(self.capabilities)).replace("_", " ") or "nothing that Embryo reads"
            raise MissingCapability(
                f"{path} ({class_name}) does not output {label}, only {available}; choose another model."
            )


@torch.inference_mode()
def word_logits(
    models: Sequence[Model], ids: np.ndarray, rows: np.ndarray, columns: np.ndarray, capability: str = "masked_words"
) -> list[np.ndarray]:
    """Compute word logits [n, V] of each of C models of one run; model c reads ids[c] [B, L].

    All models share the positions. Compiled code loops over the models, without the GIL. Raises MissingCapability if a
    model lacks the capability, "masked_words" or "next_words".
    """
    for model in models:
        model._need(capability)
    positions = (torch.as_tensor(rows), torch.as_tensor(columns))
    engines = [model.masked_word_model._engine for model in models]
    all_ids = torch.as_tensor(ids)
    logits: list[Tensor] = []
    for _, group in groupby(engines, key=type):  # usually one kind for a whole run
        of_type = [*group]
        ids_of_type = all_ids[len(logits) : len(logits) + len(of_type)]
        logits += of_type[0].logits(of_type, ids_of_type, positions)
    return [model._finite("logits", of_model) for model, of_model in zip(models, logits, strict=True)]


def load(checkpoint: Checkpoint, device: Device = CPU) -> Model:
    """Load a checkpoint, after fetching it if it is on the Hub. Raises as `read_model` does, and MissingWeights."""
    fetch_checkpoint(checkpoint)
    return read_model(checkpoint, device)


def read_model(checkpoint: Checkpoint, device: Device = CPU) -> Model:
    """Read a checkpoint on this machine. Raises BrokenCheckpoint, MissingWeights, TokenizerMismatch and BrokenRun."""
    runs.verify(checkpoint)
    tokenizer = load_tokenizer(checkpoint.run)
    inner = runs.generator(checkpoint)
    generator = read_model(inner, device) if inner else None
    return Model(checkpoint, tokenizer, _engine(checkpoint, tokenizer.vocabulary_size, device), generator)


def _engine(checkpoint: Checkpoint, pieces: int, device: Device) -> Engine:
    """Read a checkpoint with a fast engine on a CPU if one supports family and activation, else with transformers."""
    config = runs.read_config(checkpoint, runs.Architecture)
    decoder = is_decoder(runs.read_config(checkpoint, runs.ModelClass))
    if config.is_decoder and not decoder:
        raise broken_error(checkpoint, f"config.json has is_decoder; a {config.model_type} is read as an encoder only")
    fast = config.model_type in ENCODERS and not decoder and heads(checkpoint) and config.hidden_act in ACTIVATIONS
    if fast and device == CPU:
        return FastEncoder(checkpoint, pieces)
    if device == CPU and is_fast(checkpoint):
        return FastDecoder(checkpoint, pieces)
    from embryo_core.engine.transformers_engine import TransformersEngine  # slow to import

    return TransformersEngine(checkpoint, pieces, device)
