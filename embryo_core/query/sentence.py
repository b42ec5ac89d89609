"""Attention in one sentence: every head at one step, or one head at every step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core import runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import QueryError
from embryo_core.query.question import MAX_CHARACTERS, check_length, normalise_masks
from embryo_core.query.sweep import between_chunks, sweep_run
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class SentenceAttention:
    """All heads at one step: weights [layers, heads, L, L] float32, row = from, column = to, over L pieces."""

    pieces: tuple[str, ...]
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class SentenceHistory:
    """The attention of one head in a text at S steps: steps [S], weights [S, L, L] float32 (row: from, column: to)."""

    pieces: tuple[str, ...]
    steps: np.ndarray
    weights: np.ndarray
    skipped: tuple[str, ...]  # reasons why checkpoints were left out, one sentence each


def attend(run: Run, text: str, step: int) -> SentenceAttention:
    """Compute the attention in a text at one step. Raises QueryError for an unreadable text, CheckpointError."""
    (checkpoint,) = runs.loadable_checkpoints(run, [step])
    model = MODELS.get(checkpoint)
    ids = read_sentence(text, model.tokenizer, model.max_positions)
    return SentenceAttention(tuple(model.tokenizer.readable(ids)), _attention(model, ids))


def attend_over_steps(
    run: Run, text: str, layer: int, head: int, steps: Iterable[int] | None = None
) -> SentenceHistory:
    """Compute the attention of one head at every readable checkpoint of a run, or at given steps.

    Layers and heads count from 1. Raises QueryError for an unreadable text; UnknownStep and MissingWeights for a given
    step; BrokenCheckpoint if no checkpoint can be read.
    """

    def head_weights(model: "Model") -> np.ndarray:
        ids = read_sentence(text, model.tokenizer, model.max_positions)
        return _attention(model, ids)[layer - 1, head - 1].copy()  # copied: a view would keep all heads in memory

    weights_at, skipped = sweep_run(run, lambda models: [head_weights(model) for model in models], steps)
    tokenizer = load_tokenizer(run)
    pieces = tokenizer.readable(tokenizer.encode_text(normalise_masks(text)))
    return SentenceHistory(tuple(pieces), np.array([*weights_at]), np.stack([*weights_at.values()]), skipped)


def read_sentence(text: str, tokenizer: "Tokenizer", max_positions: int) -> np.ndarray:
    """Return the ids [L] of a text between [CLS] and [SEP]. Raises QueryError if it is empty or too long."""
    text = normalise_masks(text)
    if not text:
        raise QueryError("The text is empty; write a sentence to see how the heads read it.")
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"The text has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}. Shorten it.")
    ids = tokenizer.encode_text(text)
    check_length(len(ids), max_positions)
    return ids


def _attention(model: "Model", ids: np.ndarray) -> np.ndarray:
    """Compute the attention [layers, heads, L, L] of one sequence of ids [L]."""
    between_chunks()
    return model.attentions(ids[None])[:, 0]
