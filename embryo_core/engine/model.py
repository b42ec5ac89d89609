"""The facade of the engines: load a checkpoint, token ids in, numpy arrays out; float32 whatever was stored.

Model says what its checkpoint gives, and an Engine computes it. Loading chooses the engine; nothing outside this room
knows which it is.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.capabilities import (
    THROUGH_TRANSFORMERS,
    gives,
    has_masked_word_head,
    has_replaced_token_head,
)
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.fast import FastEngine
from embryo_core.engine.remote import fetch_checkpoint
from embryo_core.engine.stored import broken
from embryo_core.engine.weights import ACTIVATIONS
from embryo_core.errors import MissingCapability
from embryo_core.families import FAMILIES
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Checkpoint


class Engine(Protocol):
    """What computes one checkpoint, tensors in, tensors out. `mask` [B, 1, 1, L]: True at tokens; None: no padding."""

    max_positions: int
    num_layers: int
    num_heads: int
    hidden_size: int
    nbytes: int  # of memory
    tokens_at_once: int  # in a batch

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        """Word embeddings [V, E] and position embeddings [P, E], where there are any."""

    def head(self, states: Tensor) -> Tensor:
        """Masked-word logits [n, V] of states [n, H]."""

    def detect(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Logits [B, L] that each of ids [B, L] is a replaced token."""

    def hidden_states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """States [layers + 1, B, L, H] of ids [B, L]."""

    def attentions(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Attention weights [layers, B, heads, L, L] of ids [B, L]."""

    @staticmethod
    def logits(engines: Sequence[Self], ids: Tensor, mask: Tensor | None, at: tuple[Tensor, Tensor]) -> list[Tensor]:
        """Masked-word logits [n, V] of each of C engines at positions (rows, columns) of its part of ids [C, B, L]."""

    def passes_at_once(self) -> int:
        """How many passes may run at once, each in a thread of its own."""


class Model:
    """One loaded checkpoint. Arrays of ids are [B, L]; attention_mask is 1 at tokens and 0 at padding.

    `gives` is what it can be asked for: "masked_words", "replaced_tokens", "states", "attentions", "trainable".
    Anything else raises MissingCapability. Logits of words are over the V pieces of the tokenizer, whatever the size of
    the stored vocabulary.
    """

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer, engine: Engine, generator: Self | None = None):
        """`generator` predicts the masked words of an ELECTRA, whose own states and attentions are `engine`'s."""
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self.gives = gives(checkpoint)
        self.vocabulary_size = tokenizer.vocabulary_size  # V
        self.max_positions = min(engine.max_positions, generator.max_positions if generator else engine.max_positions)
        self.num_layers = engine.num_layers
        self.num_heads = engine.num_heads
        self.hidden_size = engine.hidden_size  # H
        self.nbytes = engine.nbytes + (generator.nbytes if generator else 0)  # of memory
        self.passes_at_once = engine.passes_at_once()  # each in a thread of its own
        self.tokens_at_once = min(part.tokens_at_once for part in (engine, generator) if part)  # in a batch
        self._engine = engine
        self._generator = generator

    @property
    def words(self) -> "Model":
        """The model that predicts masked words, by its own states: this one, or an ELECTRA's generator."""
        return self._generator or self

    def mlm_logits(
        self, ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Masked-word logits [n, V] at the n positions (rows[i], columns[i]); the head is applied nowhere else."""
        return mlm_logits([self], ids[None], attention_mask, rows, columns)[0]

    @torch.inference_mode()
    def embeddings(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Word embeddings [V, E] and position embeddings [P, E] as stored; None without one for each position."""
        self._need("states")
        words, positions = self._engine.embeddings()
        return words.numpy(), None if positions is None else positions.numpy()

    @torch.inference_mode()
    def mlm_head(self, states: np.ndarray) -> np.ndarray:
        """Masked-word logits [n, V] of hidden states [n, H] of `words`, such as those of a lower layer."""
        self._need("masked_words")
        return self.words._engine.head(torch.as_tensor(states)).numpy()

    @torch.inference_mode()
    def replaced_logits(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Logits [B, L] that each token was replaced; above 0 is replaced (Clark et al., 2020, Section 2)."""
        self._need("replaced_tokens")
        return self._engine.detect(torch.as_tensor(ids), _mask(attention_mask)).numpy()

    @torch.inference_mode()
    def hidden_states(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """States [num_layers + 1, B, L, H]; the first are the embeddings, after their projection to H."""
        self._need("states")
        return self._engine.hidden_states(torch.as_tensor(ids), _mask(attention_mask)).numpy()

    @torch.inference_mode()
    def attentions(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Attention weights [num_layers, B, heads, L, L], row = from, column = to."""
        self._need("attentions")
        return self._engine.attentions(torch.as_tensor(ids), _mask(attention_mask)).numpy()

    def _need(self, capability: str) -> None:
        """Raise MissingCapability where the model does not give this."""
        if capability not in self.gives:
            path = self.checkpoint.path
            kind = runs.read_config(self.checkpoint, runs.ModelClass).name
            wanted, given = (", ".join(sorted(names)).replace("_", " ") for names in ({capability}, self.gives))
            message = f"{path} ({kind}) gives no {wanted}, only {given}; choose a run whose model gives them."
            raise MissingCapability(message)


@torch.inference_mode()
def mlm_logits(
    models: Sequence[Model], ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> list[np.ndarray]:
    """Masked-word logits [n, V] of each of C models of one run; model c reads ids[c] [B, L] (see `Model.mlm_logits`).

    Attention mask and positions are the same for all. Between models no time is lost to Python or to its lock.
    """
    for model in models:
        model._need("masked_words")
    at = (torch.as_tensor(rows), torch.as_tensor(columns))
    engines, own, mask = [model.words._engine for model in models], torch.as_tensor(ids), _mask(attention_mask)
    found = []
    for kind, alike in groupby(range(len(engines)), key=lambda i: type(engines[i])):  # of a whole run, as a rule
        chosen = [*alike]
        found += kind.logits([engines[i] for i in chosen], own[chosen[0] : chosen[-1] + 1], mask, at)
    return [logits.numpy() for logits in found]


def load(checkpoint: Checkpoint, device: Device = CPU) -> Model:
    """Read a checkpoint: by the fast engine on a CPU where that knows family and activation, else by transformers.

    Weights on the Hub are fetched. Raises BrokenCheckpoint, TokenizerMismatch, BrokenRun, and MissingWeights where they
    were removed or cannot be fetched.
    """
    fetch_checkpoint(checkpoint)
    runs.verify(checkpoint)
    tokenizer = load_tokenizer(checkpoint.run)
    inner = runs.generator(checkpoint)
    generator = load(inner, device) if inner else None
    return Model(checkpoint, tokenizer, _engine(checkpoint, tokenizer.vocabulary_size, device), generator)


def _engine(checkpoint: Checkpoint, pieces: int, device: Device) -> Engine:
    config = runs.read_config(checkpoint, runs.Architecture)
    if config.is_decoder:
        raise broken(checkpoint, "config.json has is_decoder; encoders alone are read, which see words after a mask")
    family = config.model_type
    bare = family in FAMILIES and not (has_masked_word_head(checkpoint) or has_replaced_token_head(checkpoint))
    if device == CPU and family not in THROUGH_TRANSFORMERS and not bare and config.hidden_act in ACTIVATIONS:
        return FastEngine(checkpoint, pieces)
    from embryo_core.engine.hub import HubEngine  # transformers takes seconds to import

    return HubEngine(checkpoint, pieces, device)


def _mask(attention_mask: np.ndarray) -> Tensor | None:
    """True at tokens, [B, 1, 1, L]; None without padding."""
    return None if attention_mask.all() else torch.as_tensor(attention_mask, dtype=torch.bool)[:, None, None]
