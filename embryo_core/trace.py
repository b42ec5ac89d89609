"""A question asked of every checkpoint of a run: which answers ever led, and from which step the final one leads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.model_cache import MODELS
from embryo_core.query import (
    JOIN,
    Question,
    Reply,
    ask,
    joint_log_probability,
    largest,
    normalise,
    read_question,
    readable,
)
from embryo_core.types import Checkpoint, Run

if TYPE_CHECKING:
    from embryo_core.model import Model, Tokenizer


@dataclass(frozen=True)
class Candidate:
    """One answer at every step of a trace."""

    token: str
    probabilities: tuple[float, ...]
    ranks: tuple[int | None, ...]  # None: a joint answer that is not among the BEAM best at that step


@dataclass(frozen=True)
class Course:
    """How the candidates for one mask, or for all masks together, fared over the steps.

    A candidate leads at a step where it is in the best answer (with one [MASK]: where its rank is 1). The final answer
    is the one that leads at the last step. It leads for good from the first step of the unbroken stretch that ends there.
    """

    candidates: tuple[Candidate, ...]  # all that ever led, in that order, then the best ones at the last step
    leaders: tuple[str, ...]  # one per step
    first_led: int  # the step at which the final answer first led
    leads_from: int  # the step from which it has led at every step


@dataclass(frozen=True)
class Trace:
    """The answers of all checkpoints of a run to one text."""

    run: str
    text: str
    steps: tuple[int, ...]
    masks: tuple[Course, ...]
    joint: Course | None  # all masks together; None with a single mask, where it would say the same again
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def trace(run: Run, text: str, k: int = 5, steps: Iterable[int] | None = None) -> Trace:
    """Answer a text at every checkpoint of a run, or at the given steps.

    Followed are the pieces that ever led and the k best at the last step. A checkpoint that cannot be read is left out
    and named in `skipped`. Raises QueryError, UnknownStep, TokenizerMismatch, and BrokenCheckpoint where none is left.
    """
    text = normalise(text)
    chosen = runs.checkpoints(run) if steps is None else [runs.checkpoint(run, step) for step in sorted(set(steps))]
    replies, read, skipped, question = [], [], [], None
    for checkpoint in chosen or [runs.checkpoint(run, 0)]:
        try:
            model = MODELS.get(checkpoint)
        except BrokenCheckpoint as error:
            skipped.append(str(error))
            continue
        question = question or read_question(text, model.tokenizer, model.max_positions)
        replies.append(ask(model, question))
        read.append(checkpoint)
    if question is None:
        raise BrokenCheckpoint(f"No checkpoint of run '{run.name}' can be read: {skipped[-1]}")
    numbers = tuple(checkpoint.step for checkpoint in read)
    courses = tuple(_mask_course(numbers, replies, i, model.tokenizer, k) for i in range(len(question.masks)))
    joint = _joint_course(read, replies, question, k) if len(question.masks) > 1 else None
    return Trace(run.name, text, numbers, courses, joint, tuple(skipped))


def leads(steps: Sequence[int], leaders: Sequence[object]) -> tuple[int, int]:
    """The steps at which the last leader first led, and from which it led at every step to the end.

    >>> leads([0, 1, 2, 4, 8], ["the", "Paris", "the", "Paris", "Paris"])
    (1, 4)
    """
    others = [i for i, leader in enumerate(leaders) if leader != leaders[-1]]
    return steps[list(leaders).index(leaders[-1])], steps[others[-1] + 1 if others else 0]


def _mask_course(steps: Sequence[int], replies: list[Reply], i: int, tokenizer: "Tokenizer", k: int) -> Course:
    leaders = [int(reply.answers[0, i]) for reply in replies]
    factors = np.stack([reply.factors[i] for reply in replies])  # [S, V]
    ids = list(dict.fromkeys([*leaders, *largest(factors[-1], k).tolist()]))
    tokens = dict(zip(ids, readable(tokenizer, ids), strict=True))
    candidates = []
    for piece, token in tokens.items():
        ranks = (factors > factors[:, [piece]]).sum(axis=1) + 1
        candidates.append(Candidate(token, tuple(np.exp(factors[:, piece]).tolist()), tuple(ranks.tolist())))
    return Course(tuple(candidates), tuple(tokens[leader] for leader in leaders), *leads(steps, leaders))


def _joint_course(read: list[Checkpoint], replies: list[Reply], question: Question, k: int) -> Course:
    leaders = [tuple(reply.answers[0].tolist()) for reply in replies]
    answers = list(dict.fromkeys([*leaders, *map(tuple, replies[-1].answers[:k].tolist())]))
    places = []  # [S][A] joint log probability and rank
    for checkpoint, reply in zip(read, replies, strict=True):
        model = MODELS.get(checkpoint)
        places.append(_places(model, question, reply, answers))
    tokens = {answer: JOIN.join(readable(model.tokenizer, answer)) for answer in answers}
    candidates = []
    for answer, history in zip(answers, zip(*places, strict=True), strict=True):
        totals, ranks = zip(*history, strict=True)
        candidates.append(Candidate(tokens[answer], tuple(np.exp(totals).tolist()), ranks))
    steps = [checkpoint.step for checkpoint in read]
    return Course(tuple(candidates), tuple(tokens[leader] for leader in leaders), *leads(steps, leaders))


def _places(
    model: "Model", question: Question, reply: Reply, answers: list[tuple[int, ...]]
) -> list[tuple[float, int | None]]:
    """Joint log probability and rank of given answers at one step; only those outside the beam need the model."""
    found = {
        tuple(answer): (float(total), rank)
        for rank, (answer, total) in enumerate(zip(reply.answers.tolist(), reply.log_probabilities, strict=True), 1)
    }
    others = [answer for answer in answers if answer not in found]
    if others:
        totals = joint_log_probability(model, question, np.array(others))
        found |= {answer: (float(total), None) for answer, total in zip(others, totals, strict=True)}
    return [found[answer] for answer in answers]
