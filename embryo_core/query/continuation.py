"""The greedy continuation of a text by decoders: at each place, the most probable piece after the pieces before it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core import runs
from embryo_core.query.beam import Reply, logsumexp
from embryo_core.query.question import Question
from embryo_core.query.sweep import between_chunks
from embryo_core.types import Checkpoint

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

CONTINUATION_LENGTH = 6  # pieces of a greedy continuation


def continue_greedily(models: Sequence["Model"], question: Question, drafts: list[np.ndarray]) -> list[Reply]:
    """Continue a text with C models, piece by piece, each the most probable piece after the pieces before it.

    A continuation has CONTINUATION_LENGTH pieces; fewer at the models' last position, or if a token ends the text. The
    first pass reads the text and a draft after it: the last of `drafts`, the continuations by other models, to which
    each is added. A prediction is correct if the draft before it is, so each pass determines at least one piece, and
    all pieces of a correct draft. The next pass continues from the determined pieces. A model whose weights stay in
    their file reads a single piece, because reading is slow; any other model reads all predictions of the previous pass
    (Jacobi decoding: Santilli et al., 2023, arXiv:2305.10427).
    """
    count = min(CONTINUATION_LENGTH, models[0].max_positions - len(question.ids) + 1)
    replies = []
    for model in models:
        pieces = drafts[-1].copy() if drafts else np.zeros(count, np.int64)
        replies.append(_continue(model, question.ids, pieces))
        drafts.append(pieces)
    return replies


def _continue(model: "Model", text: np.ndarray, pieces: np.ndarray) -> Reply:
    """Continue a text, ids [L], by one model, and replace the draft in `pieces` by its continuation."""
    count, length, end_ids = len(pieces), len(text), end_tokens(model.checkpoint)
    log_probabilities, settled_count = np.zeros(count), 0
    logits, past = _read_on(model, np.append(text, pieces[:-1]), None, count)
    first_logits = logits[:1].copy()
    while True:
        best = logits.argmax(axis=1)
        draft = pieces[settled_count : settled_count + len(best)]
        wrong_indices = np.flatnonzero(best != draft)
        right_count = wrong_indices[0] + 1 if len(wrong_indices) else len(best)
        log_probabilities[settled_count : settled_count + right_count] = (
            logits.max(axis=1)[:right_count] - logsumexp(logits[:right_count])[:, 0]
        )
        draft[:] = best
        settled_count += right_count
        if settled_count == count or end_ids.intersection(pieces[:settled_count].tolist()):
            break
        next_ids = pieces[settled_count - 1 : settled_count if model.mapped else count - 1]
        logits, past = _read_on(model, next_ids, past[..., : length + settled_count - 1, :], len(next_ids))
    end = next((i for i, piece in enumerate(pieces[:settled_count].tolist(), 1) if piece in end_ids), settled_count)
    total, best = log_probabilities[:end].sum(keepdims=True), pieces[None, :1]
    sorted_logits = np.sort(first_logits)
    return Reply(pieces[None, :end], total, -np.inf, first_logits, logsumexp(first_logits), sorted_logits, best)


def _read_on(model: "Model", ids: np.ndarray, past: Any, last: int) -> tuple[np.ndarray, Any]:
    """Read ids [n] after a past; return the logits [last, V] after the last of them, and the extended past."""
    between_chunks()
    logits, past = model.forward_with_past(ids[None], past, last)
    return logits[0], past


def end_tokens(checkpoint: Checkpoint) -> set[int]:
    """Return the ids of tokens that end a text, from config.json."""
    end_ids = runs.read_config(checkpoint, dict[str, Any]).get("eos_token_id")
    return {end_id for end_id in (end_ids if isinstance(end_ids, list) else [end_ids]) if isinstance(end_id, int)}
