"""Ask the checkpoints of a run: all at once, or in rounds, first where the answers change.

A long series takes long to ask, and its answers change at few steps. So the first round asks FIRST_ROUND_SIZE
checkpoints, or all if there are fewer. Each further round asks the middle of the widest gaps between two asked steps
whose best answers differ; when no such gap is left, the middle of the widest gaps of any kind. After the last round the
answers equal those of `ask` for the whole series.

The lens (`ask_layers`) reads a layer's answer by applying the model's head to its hidden state at a [MASK], or at the
last piece of a text that is continued; a decoder's head includes its final norm. Layer 0 is the embeddings as they
enter the first layer; the last layer's answer is the model's own. The head was trained only on the last layer, so a
lower layer's answer shows how far its state already predicts a word (nostalgebraist 2020, "interpreting GPT: the logit
lens"). In a text with several masks, the masks that are not asked stay in place.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from embryo_core import runs
from embryo_core.curves.step_scales import log_spaced
from embryo_core.errors import BrokenCheckpoint
from embryo_core.query.answers import (
    TOGETHER,
    Answers,
    Columns,
    Scores,
    WordScore,
    joint_followed,
    tabulate,
    tabulate_layers,
    tabulate_word,
)
from embryo_core.query.beam import Reply, joint_log_probability, logsumexp, search, top_k
from embryo_core.query.continuation import continue_greedily
from embryo_core.query.question import Question, parse
from embryo_core.query.sweep import between_chunks, sweep, sweep_run, unreadable_error
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

FIRST_ROUND_SIZE = 32  # largest number of checkpoints of the first round
ROUND_SIZE = 64  # checkpoints of each further round: about a second's work for a model of the demo's size

OfLayers = tuple[np.ndarray, np.ndarray]  # ids and probabilities [layers, k] of the best pieces, best first
# whether the answers at the ends of the gap agree, its negative width, and the indices of its ends
Gap = tuple[bool, int, int, int]


def ask(run: Run, question: Question | str, steps: Iterable[int] | None = None, k: int = 10) -> Answers:
    """Ask every checkpoint of a run, or those of given steps; return the answers, which list the k best of each.

    A checkpoint that cannot be read is left out, and `skipped` has the reason. Raises QueryError; UnknownStep and
    MissingWeights for a given step; CheckpointError if no checkpoint has weights; BrokenCheckpoint if none can be read;
    TokenizerMismatch; MissingCapability if the model predicts neither masked nor next words.
    """
    refinement = Refinement(run, question, steps, k)
    refinement.ask(refinement.steps)
    return refinement.answers


def ask_layers(
    run: Run, question: Question | str, mask: int = 1, steps: Iterable[int] | None = None, k: int = 10
) -> Answers:
    """Ask every layer for one mask of a text; errors and steps as for `ask`."""
    question = parse(run, question)
    position = question.mask_position(mask)
    by_step, skipped = sweep_run(run, partial(_top_by_layer, question, position, k), steps)
    best, probabilities = (np.stack(arrays) for arrays in zip(*by_step.values(), strict=True))
    return Answers(run.name, question, tabulate_layers(question, mask, [*by_step], best, probabilities), skipped)


def first_steps(run: Run) -> list[int] | None:
    """Return the log-spaced steps to ask first in a long series; None if all steps are to be asked."""
    steps = [checkpoint.step for checkpoint in runs.loadable_checkpoints(run)]
    return log_spaced(steps, FIRST_ROUND_SIZE) if len(steps) > FIRST_ROUND_SIZE else None


class Refinement:
    """The answers of the checkpoints of a run to a question, asked in rounds; every answer in its table is exact.

    A round has ROUND_SIZE steps. With several masks it at least doubles the number of asked steps, since each answer
    that leads at a new step must then be scored at the old ones too.
    """

    def __init__(self, run: Run, question: Question | str, steps: Iterable[int] | None = None, k: int = 10):
        """Prepare the rounds without asking; arguments and errors as for `ask`."""
        with runs.snapshot():
            self.run, self.question, self.k = run, parse(run, question), k
            self._checkpoints = {checkpoint.step: checkpoint for checkpoint in runs.loadable_checkpoints(run, steps)}
            self._without_weights = runs.explain_missing_weights(runs.checkpoints(run)) if steps is None else []
        self._answered: dict[int, Reply | WordScore] = {}
        self.broken: dict[int, str] = {}  # reasons why asked checkpoints could not be read, by step
        self._scores: Scores = {}
        self._answers: Answers | None = None

    @property
    def steps(self) -> tuple[int, ...]:
        """Return all steps that may be asked, ascending."""
        return tuple(self._checkpoints)

    @property
    def asked(self) -> frozenset[int]:
        """Return the steps that have been asked, including those that could not be read."""
        answered_steps = self._answers.steps if self._answers else ()
        return frozenset(answered_steps) | frozenset(self.broken)

    @property
    def answers(self) -> Answers:
        """Return the answers at the steps asked so far. Raises BrokenCheckpoint if none of them could be read."""
        if self._answers is None:
            raise unreadable_error(self.run, tuple(self.broken.values()))
        return self._answers

    @property
    def narrowing(self) -> bool:
        """Return whether a gap of unasked steps is left whose ends have different best answers."""
        return any(not agree for agree, *_ in self._gaps())

    def next_round(self) -> list[int]:
        """Return the steps to ask next; empty once all have been asked."""
        if not self.asked:
            return log_spaced(self.steps, FIRST_ROUND_SIZE)
        count = max(ROUND_SIZE, len(self.asked)) if self._is_joint else ROUND_SIZE
        return halve(self._readable(), self._gaps(), count)

    def ask(self, steps: Iterable[int]) -> None:
        """Ask `steps`; if no checkpoint has answered yet, ask further rounds. Raises TokenizerMismatch, QueryError."""
        while unasked := [self._checkpoints[step] for step in sorted({*steps} - self.asked)]:
            answer = partial(_answer, self.question)
            replies, failures = sweep(unasked, answer, transient=bool(self.asked))
            all_replies, all_failures = self._answered | replies, self.broken | failures
            if all_replies:
                reasons = (*self._without_weights, *(all_failures[step] for step in sorted(all_failures)))
                self._answers = Answers(self.run.name, self.question, self._tabulate(all_replies), reasons)
            self._answered, self.broken = all_replies, all_failures
            steps = self.next_round()
            if not steps:
                self._answered, self._scores = {}, {}  # freed: the logits of a long series take much memory
            if self._answers:
                return

    @property
    def _is_joint(self) -> bool:
        """Return whether several masks are answered together."""
        return self.question.word is None and len(self.question.masks) > 1

    def _tabulate(self, replies: dict) -> Columns:
        """Return the columns of the table from replies or scores by step; score the followed joint answers."""
        if self.question.word:
            return tabulate_word(self.question, replies)
        if self._is_joint:
            followed = joint_followed([replies[step] for step in sorted(replies)], self.k)
            _add_scores(self.run, self.question, replies, followed, self._scores)
        return tabulate(self.question, replies, self.k, self._scores)

    def _readable(self) -> list[int]:
        """Return the steps whose checkpoints are not known to be unreadable."""
        return [step for step in self._checkpoints if step not in self.broken]

    def _gaps(self) -> list[Gap]:
        """Return the gaps between asked steps, comparing joint answers if there are several masks."""
        if self._answers is None:
            return find_gaps(self._readable(), {})
        mask = self.question.word.mask if self.question.word else TOGETHER if self._is_joint else 1
        return find_gaps(self._readable(), self._answers.leaders(mask))


def find_gaps(steps: Sequence[int], leaders: Mapping[int, object]) -> list[Gap]:
    """Return the gaps of unasked steps: between asked steps (those with a leader), before the first, after the last."""
    asked = [i for i, step in enumerate(steps) if step in leaders]
    edges = [-1, *asked, len(steps)]
    leaders_at = [None, *(leaders[steps[i]] for i in asked), None]
    agreements = [left == right for left, right in pairwise(leaders_at)]
    return [
        (is_same, low - high, low, high) for is_same, (low, high) in zip(agreements, pairwise(edges)) if high - low > 1
    ]


def halve(steps: Sequence[int], gaps: list[Gap], count: int) -> list[int]:
    """Return up to `count` steps, each of which halves the widest gap left; gaps whose ends differ come first."""
    heap: list[Gap] = list(gaps)
    selected: list[int] = []
    heapify(heap)
    while heap and len(selected) < count:
        is_same, _, low, high = heappop(heap)
        middle = (low + high) // 2
        selected.append(steps[middle])
        for half in pairwise((low, middle, high)):
            if half[1] - half[0] > 1:
                heappush(heap, (is_same, half[0] - half[1], *half))
    return sorted(selected)


# === The models ===


def _answer(question: Question, models: Sequence["Model"]) -> list:
    """Answer a text with C models, or score a tracked word with each."""
    question.check_length(min(model.max_positions for model in models))
    if question.word is None:
        return continue_greedily(models, question) if question.continues else search(models, question)
    ids = question.word.ids
    if len(ids) > 1:
        return [score_word(reply, ids) for reply in search(models, question, sought=ids)]
    replies = search(models, question, beam=1)
    return [(float(np.exp(reply.conditionals[0, ids[0]])), reply.ranks(0, ids)[0], True) for reply in replies]


def score_word(reply: Reply, ids: np.ndarray) -> WordScore:
    """Return the probability and rank of the pieces `ids`, and whether the rank is exact."""
    # a word in the beam has the log probability of the beam, so that a difference of rounding does not lower its rank
    itself = np.flatnonzero((reply.answers == ids).all(axis=1))
    total = reply.log_probabilities[itself[0]] if len(itself) else reply.sought
    return (math.exp(reply.sought), *reply.joint_rank(total))


def _add_scores(
    run: Run, question: Question, replies: dict[int, Reply], answers: Sequence[tuple[int, ...]], scores: Scores
) -> None:
    """Add the missing scores of joint answers to `scores`; answers outside a beam need the model.

    Raises BrokenCheckpoint.
    """
    transient = bool(scores)  # models of the first round are cached
    for step, reply in replies.items():
        if step not in scores:
            best = zip(map(tuple, reply.answers.tolist()), reply.log_probabilities.tolist(), strict=True)
            scores[step] = {ids: (total, rank, total >= reply.bound) for rank, (ids, total) in enumerate(best, 1)}
    missing = {
        step: missing_answers
        for step in replies
        if (missing_answers := [answer for answer in answers if answer not in scores[step]])
    }

    def score(models: Sequence["Model"]) -> list[list[float]]:
        steps = [model.checkpoint.step for model in models]
        requests = [(model, question, replies[step], np.array(missing[step])) for model, step in zip(models, steps)]
        return [joint_log_probability(*answer).tolist() for answer in requests]

    totals_by_step, failures = sweep(runs.loadable_checkpoints(run, missing), score, transient) if missing else ({}, {})
    for reason in failures.values():
        raise BrokenCheckpoint(reason)
    for step, totals in totals_by_step.items():
        rows = zip(missing[step], totals, strict=True)
        scores[step] |= {ids: (total, *replies[step].joint_rank(total)) for ids, total in rows}


def _top_by_layer(question: Question, position: int, k: int, models: Sequence["Model"]) -> list[OfLayers]:
    """Return the best pieces of every layer of each model, at one position of a question."""
    question.check_length(min(model.max_positions for model in models))
    logits = _layer_logits(question, position, models)
    best = top_k(logits, k)  # for all models at once, since each call waits for the GIL
    probabilities = np.exp(np.take_along_axis(logits, best, axis=2) - logsumexp(logits))
    return [*zip(best, probabilities, strict=True)]


def _layer_logits(question: Question, position: int, models: Sequence["Model"]) -> np.ndarray:
    """Compute logits [C, layers, V] of the head on every layer's state at one position of a question."""
    ids = question.ids[None]
    row, column = np.array([0]), np.array([position - 1])
    logits = []
    for model in models:
        between_chunks()
        if question.continues:  # the last states are already normalised, and the head would normalise them again
            states = model.hidden_states(ids)[:-1, 0, -1]
            logits.append(np.concatenate([model.next_head(states), model.next_logits(ids, row, column)]))
        else:
            logits.append(model.layer_logits(question.ids, position))
    return np.stack(logits)
