"""Attention of one sentence: every head at one step, or one head at every step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core import runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import QueryError
from embryo_core.query.chunks import between_chunks
from embryo_core.query.question import MAX_CHARACTERS, encode, normalise_masks, readable
from embryo_core.query.sweep import sweep
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
    """One head at every step: steps [S] int, weights [S, L, L] float32, row = from, column = to, over L pieces."""

    pieces: tuple[str, ...]
    steps: np.ndarray
    weights: np.ndarray
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def attend(run: Run, text: str, step: int) -> SentenceAttention:
    """Attention of a text at one step. Raises QueryError for an unreadable text, CheckpointError."""
    (checkpoint,) = runs.loadable(run, [step])
    model = MODELS.get(checkpoint)
    ids = read_sentence(text, model.tokenizer, model.max_positions)
    return SentenceAttention(tuple(readable(model.tokenizer, ids)), _weights(model, ids))


def attend_over_steps(
    run: Run, text: str, layer: int, head: int, steps: Iterable[int] | None = None
) -> SentenceHistory:
    """Attention of one head, counted from 1, at every checkpoint of a run that can be read, or at these steps.

    Raises QueryError for a text that cannot be read, BrokenCheckpoint where no checkpoint can, UnknownStep and
    MissingWeights for a step that has none.
    """

    def one_head(model: "Model") -> np.ndarray:
        ids = read_sentence(text, model.tokenizer, model.max_positions)
        return _weights(model, ids)[layer - 1, head - 1].copy()  # a view would keep all heads

    found = sweep(run, lambda models: [one_head(model) for model in models], steps)
    pieces = readable(found.tokenizer, found.tokenizer.encode_text(normalise_masks(text)))
    return SentenceHistory(tuple(pieces), np.array(found.steps), np.stack(found.answers), found.skipped)


def read_sentence(text: str, tokenizer: "Tokenizer", max_positions: int) -> np.ndarray:
    """Ids [L] of a text between [CLS] and [SEP]; it may hold [MASK] or not.

    Raises QueryError where it is empty or longer than the model's positions.
    """
    text = normalise_masks(text)
    if not text:
        raise QueryError("The text is empty; write a sentence to see how the heads read it.")
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} can be read. Shorten it.")
    return encode(text, tokenizer, max_positions)


def _weights(model: "Model", ids: np.ndarray) -> np.ndarray:
    """Attention [layers, heads, L, L] of one sequence of ids [L]."""
    between_chunks()
    return model.attentions(ids[None], np.ones_like(ids)[None])[:, 0]
