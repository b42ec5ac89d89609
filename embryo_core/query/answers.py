"""The answers of a run's checkpoints to a question, as a long table with methods to read it.

A row is an answer at a step, with these columns:

- step
- mask: the answered mask, counted from 1, or TOGETHER (0) for all masks of a text together; for a continued text, 1 is
  its next piece, and TOGETHER the greedy continuation
- layer: the layer to whose hidden state the head was applied (see `ask_layers`), or NA for the model's own answer
- rank, and exact: whether the rank is exact or a lower bound
- token: a piece in readable form, the words of a joint answer, a continuation, or the tracked word
- probability
- listed: whether the answer is among the best of its step
- leads: whether the answer is the best at its step; a single mask's answer leads if the best joint answer contains it

The table has the best answers of each step. At every step it also has the answers that lead at any step, and the best
FOLLOWED_COUNT answers of the last step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from embryo_core.query.beam import Reply
from embryo_core.query.question import Question
from embryo_core.types import Prediction

TOGETHER = 0  # the mask number of an answer to all masks
SEPARATOR = " | "  # between the words of a joint answer
FOLLOWED_COUNT = 5  # number of best answers of the last step that are followed over all steps
NO_LAYER = -1  # layer of the model's own answer; NA in the table
COLUMNS = ("step", "mask", "layer", "rank", "token", "probability", "exact", "listed", "leads")

Ids = tuple[int, ...]  # a joint answer, a piece for each mask
WordScore = tuple[float, int, bool]  # probability or log probability, rank, and whether the rank is exact
Scores = dict[int, dict[Ids, WordScore]]  # scores of joint answers by step
Columns = dict[str, np.ndarray]  # the columns of COLUMNS, of equal length


@dataclass(frozen=True)
class Lead:
    """The answer that leads at the last step, and when it took the lead."""

    token: str
    first: int  # the step at which it first led
    for_good: int  # the step from which it has led at every step

    def says(self, last: int) -> str:
        """Return the kind of lead in words; a lead that holds only at the `last` step is not for good."""
        if self.for_good < last:
            return "leads for good"
        return "leads only at the last step" if self.first == last else "leads again"


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of the checkpoints of a run to one question."""

    run: str
    question: Question
    columns: Columns  # the columns of `table`
    skipped: tuple[str, ...]  # reasons why checkpoints were left out, one sentence each

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return the answers as a table (see the module), built on first use, which takes longer than a checkpoint."""
        return _frame(self.columns)

    def table_with_given(self) -> pd.DataFrame:
        """Return the table with a third column `given`: the best answers in the masks before, "" if there are none."""
        best = {step: words.split(SEPARATOR) for step, words in self.leaders(TOGETHER).items()}
        rows = zip(self.columns["step"].tolist(), self.columns["mask"].tolist(), strict=True)
        given = [SEPARATOR.join(best.get(step, [])[: max(0, mask - 1)]) for step, mask in rows]
        table = self.table.copy(deep=False)
        table.insert(2, "given", given)
        return table

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Return the steps whose checkpoints answered, ascending."""
        return tuple(dict.fromkeys(self.columns["step"].tolist()))

    @property
    def masks(self) -> int:
        """Return the number of answered masks."""
        return len(self.question.masks)

    def best(self, step: int, mask: int = 1, layer: int | None = None) -> list[Prediction]:
        """Return the best answers at a step, best first."""
        columns = self.columns
        is_selected = (columns["step"] == step) & (columns["mask"] == mask) & columns["listed"]
        is_selected &= columns["layer"] == (NO_LAYER if layer is None else layer)
        fields = (columns[name][is_selected].tolist() for name in ("token", "probability", "rank", "exact"))
        return [Prediction(*row) for row in zip(*fields, strict=True)]

    def history(self, mask: int = 1) -> pd.DataFrame:
        """Return the rows, at every step, of the answers that ever led and the best answers of the last step."""
        columns, tokens = self.columns, self.columns["token"]
        is_selected = columns["mask"] == mask
        if not self.question.word:
            is_final = is_selected & (columns["step"] == self.steps[-1]) & columns["listed"]
            tokens_shown = {*tokens[is_selected & columns["leads"]], *tokens[is_final][:FOLLOWED_COUNT]}
            is_selected = is_selected & [token in tokens_shown for token in tokens]
        return _frame({name: values[is_selected] for name, values in columns.items()})

    def leaders(self, mask: int = 1) -> dict[int, str]:
        """Return the leading answer of each step; for a tracked word, the word."""
        columns = self.columns
        is_selected = columns["mask"] == mask
        is_selected = is_selected if self.question.word else is_selected & columns["leads"]
        return dict(zip(columns["step"][is_selected].tolist(), columns["token"][is_selected].tolist(), strict=True))

    def lead(self, mask: int = 1) -> Lead:
        """Return the final answer, the step at which it first led, and the step from which it led for good."""
        leaders = self.leaders(mask)
        token = leaders[self.steps[-1]]
        return Lead(token, *leads([*leaders], [*leaders.values()]))


def _frame(columns: Columns) -> pd.DataFrame:
    """Return columns as a table, with NA for NO_LAYER."""
    layers = columns["layer"]
    return pd.DataFrame(columns | {"layer": pd.arrays.IntegerArray(layers, layers == NO_LAYER)})


def leads(steps: Sequence[int], leaders: Sequence[object]) -> tuple[int, int]:
    """Return the step at which the last leader first led, and the step from which it led to the end.

    >>> leads([0, 1, 2, 4, 8], ["the", "Paris", "the", "Paris", "Paris"])
    (1, 4)
    """
    other_indices = [i for i, leader in enumerate(leaders) if leader != leaders[-1]]
    return steps[list(leaders).index(leaders[-1])], steps[other_indices[-1] + 1 if other_indices else 0]


# === The table ===


def tabulate_word(question: Question, scores: dict[int, WordScore]) -> Columns:
    """Return the columns of a tracked word; `scores` has its probability and rank at each step."""
    steps = sorted(scores)
    probabilities, ranks, exact = zip(*(scores[step] for step in steps), strict=True)
    columns = {"step": steps, "rank": ranks, "probability": probabilities, "exact": exact}
    token = np.array(question.tracked.token, object)
    return _complete(columns | {"mask": question.tracked.mask, "token": token, "listed": False, "leads": False})


def tabulate(question: Question, replies: dict[int, Reply], k: int, scores: Scores) -> Columns:
    """Return the columns of the answers to a text; `scores` has the scores of followed joint answers at every step."""
    steps = sorted(replies)
    ordered_replies = [replies[step] for step in steps]
    tables = [_mask_columns(question, steps, ordered_replies, mask, k) for mask in range(1, len(question.masks) + 1)]
    if question.continues:
        tables.insert(0, _continuation_columns(question, steps, ordered_replies))
    elif len(tables) > 1:
        tables.insert(0, _joint_columns(question, steps, ordered_replies, k, scores))
    else:
        return _complete(tables[0])
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    order = np.argsort(columns["step"], kind="stable")  # sorted by step, mask, rank
    return _complete({name: values[order] for name, values in columns.items()})


def answers_to_draw(leaders: Sequence[object], last: Sequence[object]) -> list:
    """Return the distinct answers whose curves are drawn: every leader, then the best of the `last` step."""
    return list(dict.fromkeys([*leaders, *last[:FOLLOWED_COUNT]]))


def _mask_columns(question: Question, steps: Sequence[int], replies: Sequence[Reply], mask: int, k: int) -> Columns:
    """Return the columns of the answers to one mask, in the order of steps and ranks."""
    i = mask - 1
    leaders = np.array([reply.answers[0, i] for reply in replies])
    best_ids = np.stack([reply.best(i, k) for reply in replies])  # [S, k]
    drawn_ids = np.array(answers_to_draw(leaders.tolist(), best_ids[-1].tolist()))
    ids = np.concatenate([best_ids, np.broadcast_to(drawn_ids, (len(steps), len(drawn_ids)))], axis=1)  # [S, columns]
    logits = np.stack([reply.logits[i][ids_of_step] for reply, ids_of_step in zip(replies, ids, strict=True)])
    probabilities = np.exp(logits - np.stack([reply.logsumexps[i] for reply in replies]))
    ranks = np.empty_like(ids)
    ranks[:, : best_ids.shape[1]] = np.arange(1, best_ids.shape[1] + 1)
    ranks[:, best_ids.shape[1] :] = [reply.ranks(i, drawn_ids) for reply in replies]
    is_listed = np.broadcast_to(np.arange(ids.shape[1]) < best_ids.shape[1], ids.shape)
    is_row = is_listed | ~(ids[:, :, None] == best_ids[:, None, :]).any(axis=2)
    pieces, inverse = np.unique(ids[is_row], return_inverse=True)
    return {
        "step": np.broadcast_to(np.array(steps)[:, None], ids.shape)[is_row],
        "mask": np.full(is_row.sum(), mask),
        "rank": ranks[is_row],
        "token": np.array(question.tokenizer.readable(pieces.tolist()), object)[inverse],
        "probability": probabilities[is_row],
        "exact": np.ones(is_row.sum(), bool),
        "listed": is_listed[is_row],
        "leads": (ids == leaders[:, None])[is_row],
    }


def _joint_columns(
    question: Question, steps: Sequence[int], replies: Sequence[Reply], k: int, scores: Scores
) -> Columns:
    """Return the columns of the joint answers, in the order of steps; at each step those outside the beam come last."""
    answers = joint_followed(replies, k)
    rows = []
    for step, reply in zip(steps, replies, strict=True):
        best = [tuple(ids) for ids in reply.answers[:k].tolist()]
        for ids in dict.fromkeys([*best, *answers]):
            total, rank, exact = scores[step][ids]
            rows.append((step, rank, ids, math.exp(total), exact, ids in best, ids == best[0]))
    tokens = {ids: SEPARATOR.join(question.tokenizer.readable(ids)) for ids in {row[2] for row in rows}}
    step, rank, ids, probability, exact, is_listed, is_leading = zip(*rows, strict=True)
    return {
        "step": np.array(step),
        "mask": np.full(len(rows), TOGETHER),
        "rank": np.array(rank),
        "token": np.array([tokens[row_ids] for row_ids in ids], object),
        "probability": np.array(probability),
        "exact": np.array(exact),
        "listed": np.array(is_listed),
        "leads": np.array(is_leading),
    }


def _continuation_columns(question: Question, steps: Sequence[int], replies: Sequence[Reply]) -> dict[str, np.ndarray]:
    """Return the columns of the greedy continuations, whose rank among all continuations is unknown."""
    count = len(steps)
    return {
        "step": np.array(steps),
        "mask": np.full(count, TOGETHER),
        "rank": np.ones(count, np.int64),
        "token": np.array([question.decode_continuation(reply.answers[0]) for reply in replies], object),
        "probability": np.exp([reply.log_probabilities[0] for reply in replies]),
        "exact": np.zeros(count, bool),
        "listed": np.ones(count, bool),
        "leads": np.ones(count, bool),
    }


def joint_followed(replies: Sequence[Reply], k: int) -> list[Ids]:
    """Return the joint answers to follow over all steps; `replies` are in the order of steps."""
    leaders = [tuple(reply.answers[0].tolist()) for reply in replies]
    return answers_to_draw(leaders, [tuple(ids) for ids in replies[-1].answers[:k].tolist()])


def tabulate_layers(
    question: Question, mask: int, steps: Sequence[int], best: np.ndarray, probabilities: np.ndarray
) -> Columns:
    """Return the columns of the answers of every layer: ids `best` and probabilities [S, layers, k], best first."""
    step, layer, rank = np.indices(best.shape)
    pieces, inverse = np.unique(best, return_inverse=True)
    columns = {
        "step": np.array(steps)[step.ravel()],
        "layer": layer.ravel(),
        "rank": rank.ravel() + 1,
        "token": np.array(question.tokenizer.readable(pieces.tolist()), object)[inverse.ravel()],
        "probability": probabilities.ravel(),
    }
    return _complete(columns | {"mask": mask, "exact": True, "listed": True, "leads": False})


def _complete(columns: dict[str, Any]) -> Columns:
    """Return `columns` in the order of COLUMNS: single values are repeated, and a missing layer becomes NO_LAYER."""
    rows = len(columns["step"])
    complete = {name: np.asarray(columns.get(name, NO_LAYER)) for name in COLUMNS}
    return {name: values if values.ndim else np.full(rows, values) for name, values in complete.items()}
