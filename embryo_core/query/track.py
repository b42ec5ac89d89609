"""Track a word: the probability and rank of any word at a [MASK] over the steps of pretraining.

A word of m pieces widens its mask to m masks. Its probability is that of the chain rule, pieces filled left to right,

    P(word | text) = P(piece 1 | text) P(piece 2 | text, piece 1) ... P(piece m | text, piece 1, ..., piece m-1),

where each factor is read at its mask with the pieces before it filled in and the masks after it still in place. Other
masks of the text stay in place throughout. The rank of a single piece is exact, among all pieces. That of several
pieces is 1 + the number of more probable answers among those that the beam finds for as many masks: exact, or a lower
bound of the true rank (see beam.py).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.errors import QueryError
from embryo_core.query.beam import Reply, ask
from embryo_core.query.question import MAX_MASKS, Question, check_text, find_mask, read_question, readable
from embryo_core.query.sweep import sweep
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


@dataclass(frozen=True)
class Track:
    """One word at every step; see the module for what probability and rank mean."""

    run: str
    text: str
    word: str
    mask: int  # 1 is the first
    pieces: tuple[str, ...]  # as they are read: "##" marks a piece inside a word
    widened: str  # the text as the model reads it, the chosen mask written once per piece
    steps: tuple[int, ...]
    probabilities: tuple[float, ...]
    ranks: tuple[int, ...]
    exact: tuple[bool, ...]  # False: several pieces, whose true rank is at least this
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def track(run: Run, text: str, word: str, mask: int = 1, steps: Iterable[int] | None = None) -> Track:
    """Follow a word at one mask of a text over every checkpoint of a run, or over the given steps.

    Raises QueryError (an empty word, one that the vocabulary cannot write, no such mask, a widened text past the
    model's positions), UnknownStep, MissingWeights where a given step, or every one, has lost them, TokenizerMismatch,
    and BrokenCheckpoint where no checkpoint can be read.
    """
    text = check_text(text)
    start = find_mask(text, mask)
    tokenizer = load_tokenizer(run)
    pieces = read_word(word, tokenizer)
    widened = text[:start] + " ".join(["[MASK]"] * len(pieces)) + text[start + len("[MASK]") :]

    def ask_for_word(models: Sequence["Model"]) -> list[tuple[float, int, bool]]:
        question = _question(tokenizer, min(model.max_positions for model in models), text, mask, len(pieces))
        if len(pieces) == 1:
            return [_of_piece(reply, pieces) for reply in ask(models, question, beam=1)]
        return [_of_word(reply, pieces) for reply in ask(models, question, sought=pieces)]

    found = sweep(run, ask_for_word, steps)
    written = tuple(readable(tokenizer, pieces))
    scores = zip(*found.answers, strict=True)  # probabilities, ranks, and which of these are exact
    return Track(run.name, text, word.strip(), mask, written, widened, found.steps, *scores, found.skipped)


def joined(tracks: Sequence[Track]) -> Track:
    """One track of a word out of several, each of other steps."""
    points = sorted(point for one in tracks for point in zip(one.steps, one.probabilities, one.ranks, one.exact))
    steps, probabilities, ranks, exact = zip(*points, strict=True)
    skipped = tuple(reason for one in tracks for reason in one.skipped)
    return replace(
        tracks[0], steps=steps, probabilities=probabilities, ranks=ranks, exact=exact, skipped=skipped
    )


def read_word(word: str, tokenizer: Tokenizer) -> np.ndarray:
    """Ids [m] of a word's pieces. Raises QueryError for an empty word, and for one that the vocabulary cannot write."""
    word = word.strip()
    if not word:
        raise QueryError("The word to track is empty; write a word, such as Paris.")
    ids = tokenizer.encode_word(word)
    special = {tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id}
    if not len(ids) or special & set(ids.tolist()):
        raise QueryError(f"'{word}' is not a word to track; write one without [MASK] and other special tokens.")
    if tokenizer.unk_id in ids:
        raise QueryError(f"'{word}' has characters that are not in the vocabulary of this run; track another word.")
    if len(ids) > MAX_MASKS:
        raise QueryError(f"'{word}' has {len(ids)} pieces; at most {MAX_MASKS} can be tracked. Track a shorter word.")
    return ids


def _question(tokenizer: Tokenizer, max_positions: int, text: str, mask: int, pieces: int) -> Question:
    """The text with its mask widened in ids, where nothing depends on how the text around it is cut."""
    question = read_question(text, tokenizer, max_positions)
    position = question.masks[mask - 1]
    ids = np.concatenate([question.ids[:position], [tokenizer.mask_id] * pieces, question.ids[position + 1 :]])
    if len(ids) > max_positions:
        raise QueryError(
            f"With {pieces} masks for the pieces of the word the text is {len(ids):,} pieces long ([CLS] and [SEP] "
            f"counted), but this model reads at most {max_positions:,}. Shorten it."
        )
    return Question(text, ids, tuple(range(position, position + pieces)))


def _of_piece(reply: Reply, pieces: np.ndarray) -> tuple[float, int, bool]:
    """Probability and rank of a single piece in what a checkpoint answers, and that the rank is exact."""
    return float(np.exp(reply.conditionals[0, pieces[0]])), reply.ranks(0, pieces)[0], True


def _of_word(reply: Reply, pieces: np.ndarray) -> tuple[float, int, bool]:
    """Probability and rank of the pieces that were sought, and whether the rank is exact."""
    itself = np.flatnonzero((reply.answers == pieces).all(axis=1))  # as an answer its probability is rounded otherwise
    total = reply.log_probabilities[itself[0]] if len(itself) else reply.sought
    return math.exp(reply.sought), *reply.joint_rank(total)
