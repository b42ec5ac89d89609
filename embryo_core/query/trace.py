"""A question asked of every checkpoint of a run: which answers ever led, and from which step the final one leads."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.query.beam import BEAM_WIDTH, SEPARATOR, Reply, ask, joint_log_probability, top_k
from embryo_core.query.question import check_text, read_together, readable
from embryo_core.query.sweep import Sweep, ask_each, sweep
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

Score = tuple[float, int, bool]  # joint log probability, rank, and whether the rank is exact
Ids = tuple[int, ...]  # a joint answer, a piece for each mask
Scores = dict[int, dict[Ids, Score]]  # of joint answers, by step


@dataclass(frozen=True)
class Candidate:
    """One answer at every step of a trace."""

    token: str
    probabilities: tuple[float, ...]
    ranks: tuple[int, ...]
    exact: tuple[bool, ...]  # False: a joint answer, whose true rank is at least this (see beam.py)


@dataclass(frozen=True)
class AnswerHistory:
    """The candidates for one mask, or for all masks together, over the steps.

    A candidate leads at a step where it is in the best answer (with one [MASK]: where its rank is 1). The final answer
    is the one that leads at the last step. It leads for good from the first step of the unbroken stretch to the end.
    """

    candidates: tuple[Candidate, ...]  # all that ever led, in that order, then the best ones at the last step
    leaders: tuple[str, ...]  # one per step
    first_led: int  # the step at which the final answer first led
    leads_from: int  # the step from which it has led at every step


@dataclass(frozen=True)
class Trace:
    """The answers of the checkpoints of a run to one text."""

    run: str
    text: str
    steps: tuple[int, ...]
    masks: tuple[AnswerHistory, ...]
    joint: AnswerHistory | None  # all masks together; None with a single mask, where it would say the same again
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def trace(run: Run, text: str, k: int = 5, steps: Iterable[int] | None = None) -> Trace:
    """Answer a text at every checkpoint of a run, or at the given steps.

    Followed are the pieces that ever led and the k best at the last step. A checkpoint that cannot be read is left out
    and named in `skipped`. Raises QueryError, UnknownStep, MissingWeights where a given step, or every one, has lost
    them, TokenizerMismatch, and BrokenCheckpoint where none is left.
    """
    text = check_text(text)
    return read_replies(run, text, sweep(run, partial(ask_together, text), steps), k, {})


def ask_together(text: str, models: Sequence["Model"]) -> list[Reply]:
    """What some checkpoints answer to a checked text: all that a trace reads."""
    question = read_together(text, models)
    return ask(models, question, BEAM_WIDTH if len(question.masks) > 1 else 1)  # all logits of one mask are read


def read_replies(run: Run, text: str, found: Sweep[Reply], k: int, scores: Scores) -> Trace:
    """The trace of what was answered.

    `scores` are those of joint answers that are known by now; what it lacks is asked, and added to it.
    """
    masks = len(found.answers[0].logits)
    histories = tuple(_mask_history(found, i, k) for i in range(masks))
    joint = _joint_history(run, found, text, k, scores) if masks > 1 else None
    return Trace(run.name, text, found.steps, histories, joint, found.skipped)


def leads(steps: Sequence[int], leaders: Sequence[object]) -> tuple[int, int]:
    """The steps at which the last leader first led, and from which it led at every step to the end.

    >>> leads([0, 1, 2, 4, 8], ["the", "Paris", "the", "Paris", "Paris"])
    (1, 4)
    """
    others = [i for i, leader in enumerate(leaders) if leader != leaders[-1]]
    return steps[list(leaders).index(leaders[-1])], steps[others[-1] + 1 if others else 0]


def _mask_history(found: Sweep[Reply], i: int, k: int) -> AnswerHistory:
    leaders = [int(reply.answers[0, i]) for reply in found.answers]
    logits = [reply.logits[i] for reply in found.answers]  # [S][V]
    ids = list(dict.fromkeys([*leaders, *top_k(logits[-1], k).tolist()]))
    tokens = dict(zip(ids, readable(found.tokenizer, ids), strict=True))
    logsumexps = np.stack([reply.logsumexps[i] for reply in found.answers])  # [S, 1]
    probabilities = np.exp([row[ids] for row in logits] - logsumexps)  # [S, candidates]
    ranks = [reply.ranks(i, ids) for reply in found.answers]
    exact = (True,) * len(found.steps)
    histories = zip(tokens.values(), zip(*probabilities.tolist(), strict=True), zip(*ranks, strict=True), strict=True)
    candidates = tuple(Candidate(*history, exact) for history in histories)
    return AnswerHistory(candidates, tuple(tokens[leader] for leader in leaders), *leads(found.steps, leaders))


def _joint_history(run: Run, found: Sweep[Reply], text: str, k: int, scores: Scores) -> AnswerHistory:
    leaders = [tuple(reply.answers[0].tolist()) for reply in found.answers]
    answers = list(dict.fromkeys([*leaders, *map(tuple, found.answers[-1].answers[:k].tolist())]))
    _score(run, text, dict(zip(found.steps, found.answers, strict=True)), answers, scores)
    tokens = {answer: SEPARATOR.join(readable(found.tokenizer, answer)) for answer in answers}
    candidates = []
    for answer in answers:
        totals, ranks, exact = zip(*(scores[step][answer] for step in found.steps), strict=True)
        candidates.append(Candidate(tokens[answer], tuple(math.exp(total) for total in totals), ranks, exact))
    return AnswerHistory(tuple(candidates), tuple(tokens[leader] for leader in leaders), *leads(found.steps, leaders))


def _score(run: Run, text: str, replies: dict[int, Reply], answers: list[Ids], scores: Scores) -> None:
    """Add to `scores` what they lack of the answers; only those outside the beam of a step need its model.

    Raises BrokenCheckpoint where a checkpoint that answered cannot be read any more.
    """
    passing = bool(scores)  # models of earlier rounds; those of the first one have just been loaded
    for step, reply in replies.items():
        if step not in scores:
            best = zip(map(tuple, reply.answers.tolist()), reply.log_probabilities.tolist(), strict=True)
            scores[step] = {ids: (total, rank, total >= reply.bound) for rank, (ids, total) in enumerate(best, 1)}
    lacking = {step: others for step in replies if (others := [one for one in answers if one not in scores[step]])}

    def score(models: Sequence["Model"]) -> list[list[float]]:
        question = read_together(text, models)
        found = []
        for model in models:
            step = model.checkpoint.step
            found.append(joint_log_probability(model, question, replies[step], np.array(lacking[step])).tolist())
        return found

    found, broken = ask_each(runs.loadable(run, lacking), score, passing) if lacking else ({}, {})
    for reason in broken.values():
        raise BrokenCheckpoint(reason)
    for step, (_, totals) in found.items():
        rows = zip(lacking[step], totals, strict=True)
        scores[step] |= {ids: (total, *replies[step].joint_rank(total)) for ids, total in rows}
