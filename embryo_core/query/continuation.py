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


def continue_greedily(models: Sequence["Model"], question: Question) -> list[Reply]:
    """Continue a text with C models, piece by piece, each the most probable piece after the pieces before it.

    A continuation has CONTINUATION_LENGTH pieces; fewer at the models' last position, or if a token ends the text.
    """
    count = min(CONTINUATION_LENGTH, models[0].max_positions - len(question.ids) + 1)
    return [_continue(model, question.ids, count) for model in models]


def _continue(model: "Model", text: np.ndarray, count: int) -> Reply:
    """Continue a text, ids [L], by up to `count` pieces."""
    end_ids = end_tokens(model.checkpoint)
    pieces: list[int] = []
    logits_of_pieces: list[np.ndarray] = []  # [1, V] each
    ids, past = text, None
    while len(pieces) < count and not end_ids.intersection(pieces):
        between_chunks()
        logits, past = model.forward_with_past(ids[None], past)  # each piece is read once, after the cached states
        logits_of_pieces.append(logits[0])
        pieces.append(int(logits.argmax()))
        ids = np.array(pieces[-1:])
    log_probability = sum(logits.max() - logsumexp(logits)[0, 0] for logits in logits_of_pieces)
    first_logits = logits_of_pieces[0]
    return Reply(
        answers=np.array([pieces]),
        log_probabilities=np.array([log_probability]),
        bound=-np.inf,
        logits=first_logits,
        logsumexps=logsumexp(first_logits),
        sorted_logits=np.sort(first_logits),
        pieces=np.array([pieces[:1]]),
    )


def end_tokens(checkpoint: Checkpoint) -> set[int]:
    """Return the ids of tokens that end a text, from config.json."""
    end_ids = runs.read_config(checkpoint, dict[str, Any]).get("eos_token_id")
    return {end_id for end_id in (end_ids if isinstance(end_ids, list) else [end_ids]) if isinstance(end_id, int)}
