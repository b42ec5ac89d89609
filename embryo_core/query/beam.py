"""Beam search for the joint answers of checkpoints to a question with several masks.

The probability of an answer (w1, ..., wm) follows from the chain rule, with masks filled from left to right,

    P(w1, ..., wm | text) = P(w1 | text) P(w2 | text, w1) ... P(wm | text, w1, ..., wm-1),

where each factor is computed at its mask, with the words before it filled in and the masks after it still in place. The
best answers are found with a beam of BEAM_WIDTH, which skips prefixes that can no longer change the best. The
predictions for one mask are its factor, exact over the whole vocabulary, with the words of the best answer in the masks
before it. With one [MASK] they are the model's own distribution. If a text is continued, each factor is the model's
prediction of the next piece.

A beam can miss an answer that begins with improbable words. An answer dropped at a mask is no more probable than the
least probable prefix kept there, and only loses probability with every further word. So the rank of a joint answer is
exact if the answer is at least as probable as each of these prefixes (`Reply.bound`). Otherwise its rank in the beam is
a lower bound of the true rank.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.query.question import Question
from embryo_core.query.sweep import OPERATIONS, between_chunks

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

BEAM_WIDTH = 10  # joint answers kept after each mask
FIRST_ROWS = 4  # rows of the beam that are computed first, if the rest seem too improbable to matter
IMPROBABLE_GAP = np.log(50)  # gap to the best log probability from which they seem so; affects speed, not answers
Pasts = dict[int, tuple[int, Any]]  # id of a model -> length of the continued text, and its past (cached states)


# === Beam search ===


@dataclass(frozen=True, eq=False)
class Reply:
    """The answers of one checkpoint to a question with m masks, as numbers.

    For a text that is continued m is 1, and the one joint answer is the greedy continuation (continuation.py).
    """

    answers: np.ndarray  # [at most the beam, m] ids of the best joint answers, best first
    log_probabilities: np.ndarray  # [answers] natural logarithm of their joint probabilities
    bound: float  # highest possible log probability of an answer outside the beam
    logits: np.ndarray  # [m, V] float32 logits of every piece at each mask, given the best answer before it
    logsumexps: np.ndarray  # [m, 1] logarithm of the sum of their exponentials
    sorted_logits: np.ndarray  # [m, V] the logits of each mask in ascending order
    pieces: np.ndarray  # [m, at most the beam] ids of the best pieces at each mask, best first
    sought: float = np.nan  # log probability of the `sought` joint answer, if any

    @property
    def conditionals(self) -> np.ndarray:
        """Return the log probability [m, V] in float64 of every piece at each mask, given the best answer before it."""
        return self.logits - self.logsumexps

    def best(self, mask: int, k: int) -> np.ndarray:
        """Return the ids [k] of the most probable pieces at one mask (counted from 0), best first."""
        return self.pieces[mask, :k] if k <= self.pieces.shape[1] else top_k(self.logits[mask], k)

    def ranks(self, mask: int, ids: Sequence[int] | np.ndarray) -> list[int]:
        """Return the ranks of pieces at one mask (counted from 0); of equally probable pieces, the first is better."""
        values, sorted_values = self.logits[mask], self.sorted_logits[mask]
        ids = np.asarray(ids)
        scores = values[ids]
        up_to, below = np.searchsorted(sorted_values, scores, side="right"), np.searchsorted(sorted_values, scores)
        ranks = 1 + len(values) - up_to
        for i in np.flatnonzero(up_to - below > 1):
            ranks[i] += np.count_nonzero(values[: ids[i]] == scores[i])
        return ranks.tolist()

    def joint_rank(self, log_probability: float) -> tuple[int, bool]:
        """Return the rank of a joint answer of this log probability, and whether it is exact or a lower bound."""
        return 1 + int((self.log_probabilities > log_probability).sum()), bool(log_probability >= self.bound)


def search(
    models: Sequence["Model"], question: Question, beam: int = BEAM_WIDTH, sought: np.ndarray | None = None
) -> list[Reply]:
    """Answer a question jointly with C models, by beam search over the chain rule; models share the passes at a mask.

    If only the rank of one joint answer, ids [m], is `sought`, the search skips less probable answers, and stops once a
    whole beam of more probable ones is known. This does not change the `joint_rank` of that answer.
    """
    every = np.arange(len(models))
    answers, totals = np.zeros((len(models), 1, 0), np.int64), np.zeros((len(models), 1))
    bounds = np.full(len(models), -np.inf)
    sought_total: np.ndarray | None = None  # [C] log probability of the sought answer
    pasts: Pasts = {}
    rounds = []  # per mask: logits [C, answers, V], logsumexps, best pieces, and the prefix row of each new answer
    for _ in question.masks:
        extended = Extensions(models, question, answers, totals, beam, pasts)
        extended.read(sought_total)
        logits, logsumexps, best = extended.logits, extended.logsumexps, extended.best
        if sought is not None and sought_total is None:
            sought_total = _log_probability(models, question, sought, logits[:, 0], logsumexps[:, 0, 0], pasts)
        words, joint = best.reshape(len(models), -1), extended.joint.reshape(len(models), -1)
        order = top_k(joint, beam)
        parents, best_indices = order // best.shape[2], (every[:, None], order)
        rounds.append((logits, logsumexps, best, parents))
        answers = np.concatenate([answers[every[:, None], parents], words[best_indices][..., None]], axis=2)
        totals = joint[best_indices]
        bounds = np.maximum(bounds, totals[:, -1])
    path, row = [], np.zeros(len(models), np.int64)  # backtrack from the best answer to the rows of its prefixes
    for *of_mask, parents in reversed(rounds):
        row = parents[every, row]
        path.append([reply[every, row] for reply in of_mask])
    logits, logsumexps, pieces = (
        np.stack(replies, axis=1) for replies in zip(*reversed(path), strict=True)
    )  # [C, m, ...]
    sought_totals = [np.nan] * len(models) if sought_total is None else sought_total.tolist()
    replies = zip(
        answers, totals, bounds.tolist(), logits, logsumexps, np.sort(logits), pieces, sought_totals, strict=True
    )
    return [Reply(*reply) for reply in replies]


class Extensions:
    """Answers [C, B, n] to the first n masks, ordered best first, each extended by the best pieces at the next mask.

    An answer that no model has read has no extension: its joint log probabilities are -inf.
    """

    def __init__(
        self,
        models: Sequence["Model"],
        question: Question,
        answers: np.ndarray,
        totals: np.ndarray,
        beam: int,
        pasts: Pasts,
    ):
        self.models, self.totals, self.beam, self.pasts = models, totals, beam, pasts  # totals [C, B] log probabilities
        self.ids, self.position = question.filled(answers), question.masks[answers.shape[2]]
        self.is_last = answers.shape[2] == len(question.masks) - 1
        size = models[0].vocabulary_size
        self.logits = np.empty((*totals.shape, size), np.float32)  # [C, B, V] after each answer
        self.logsumexps = np.zeros((*totals.shape, 1))
        self.best = np.zeros((*totals.shape, min(beam, size)), np.int64)  # [C, B, beam] pieces that extend it best
        self.joint = np.full(self.best.shape, -np.inf)  # log probabilities of the extended answers

    def read(self, sought_total: np.ndarray | None) -> None:
        """Let the models read the answers whose extensions can matter, the most probable ones first.

        An extension is at most as probable as its answer. So no model reads an answer that is less probable than the
        last extension in the beam of the answers before it, or than `sought_total` [C], the log probability of a sought
        answer; nor any further answer if, at the last mask, that extension is more probable than `sought_total`.
        """
        count, rows = self.totals.shape
        if rows <= FIRST_ROWS:
            self._read_rows(np.arange(count), 0, rows)
            return
        next_totals = self.totals[:, FIRST_ROWS]
        is_improbable = next_totals < self.totals[:, 0] - IMPROBABLE_GAP
        is_split = is_improbable if sought_total is None else np.ones(count, bool)
        self._read_rows(np.flatnonzero(~is_split), 0, rows)
        self._read_rows(np.flatnonzero(is_split), 0, FIRST_ROWS)
        beam_bound = np.sort(self.joint.reshape(count, -1))[:, -self.beam]
        is_needed = next_totals >= beam_bound
        if sought_total is not None:
            is_needed &= next_totals >= sought_total
            if self.is_last:
                is_needed &= beam_bound <= sought_total
        self._read_rows(np.flatnonzero(is_split & is_needed), FIRST_ROWS, rows)

    def _read_rows(self, models: np.ndarray, begin: int, end: int) -> None:
        """Let these models, by number, read the answers `begin` to `end`."""
        chosen_models = [self.models[c] for c in models]
        for c, row, logits in _logits(chosen_models, self.ids[models, begin:end], self.position, self.pasts):
            at = models[c], slice(begin + row, begin + row + logits.shape[-2])
            self.logits[at], self.logsumexps[at], self.best[at] = logits, logsumexp(logits), top_k(logits, self.beam)
            best_logits = np.take_along_axis(logits, self.best[at], axis=-1)
            self.joint[at] = self.totals[at][..., None] + best_logits - self.logsumexps[at]


def joint_log_probability(model: "Model", question: Question, reply: Reply, answers: np.ndarray) -> np.ndarray:
    """Compute log probabilities [A] of joint answers, ids [A, m]; each first factor is from `reply`."""
    totals = reply.logits[0, answers[:, 0]] - reply.logsumexps[0]
    for i, position in enumerate(question.masks[1:], start=1):
        prefixes, prefix = np.unique(answers[:, :i], axis=0, return_inverse=True)
        for _, row, logits in _logits([model], question.filled(prefixes[None]), position, {}):
            rows_read = np.flatnonzero((prefix >= row) & (prefix < row + len(logits)))
            indices = prefix[rows_read] - row
            totals[rows_read] += logits[indices, answers[rows_read, i]] - logsumexp(logits)[indices, 0]
    return totals


def _log_probability(
    models: Sequence["Model"],
    question: Question,
    answer: np.ndarray,
    logits: np.ndarray,
    logsumexps: np.ndarray,
    pasts: Pasts,
) -> np.ndarray:
    """Compute the log probability [C] of a joint answer, ids [m], given the first mask's logits and logsumexps."""
    totals = logits[:, answer[0]] - logsumexps
    for i, position in enumerate(question.masks[1:], start=1):
        ids = question.filled(np.broadcast_to(answer[:i], (len(models), 1, i)))
        for c, _, of_model in _logits(models, ids, position, pasts):
            totals[c] += of_model[0, answer[i]] - logsumexp(of_model)[0, 0]
    return totals


# === Arithmetic ===


def _logits(
    models: Sequence["Model"], ids: np.ndarray, position: int, pasts: Pasts
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Compute logits over all pieces at one position; model c reads the rows ids[c] [B, L] of ids [C, B, L].

    At the position after the end, L, they are logits of the next piece. Yields, for some rows at a time, the model's
    number c, the first row, and the logits [rows, V]. A pass has models or rows for one chunk of work (see sweep.py).
    """
    from embryo_core.engine.model import word_logits  # imports torch, with the first query

    if not models:
        return
    count, rows, length = ids.shape
    positions = OPERATIONS / (24 * models[0].num_layers * models[0].hidden_size ** 2)
    max_rows = max(1, int(positions / length))  # rows
    if position == length:
        for c, model in enumerate(models):
            past_length, past = pasts.get(id(model), (0, None))
            max_rows = max(1, int(positions / (length - past_length)))
            for j in range(0, rows, max_rows):
                between_chunks()
                logits, new_past = model.forward_with_past(ids[c, j : j + max_rows, past_length:], past)
                pasts.setdefault(id(model), (length, new_past))  # the past of the text alone, which is read first
                yield c, j, logits[:, -1]
        return
    models_per_pass = max(1, max_rows // rows)  # models
    for i in range(0, count, models_per_pass):
        for j in range(0, rows, max_rows):
            between_chunks()
            chunk = ids[i : i + models_per_pass, j : j + max_rows]
            row_indices = np.arange(chunk.shape[1])
            columns = np.full_like(row_indices, position)
            chunk_logits = word_logits(models[i : i + models_per_pass], chunk, row_indices, columns)
            yield from ((c, j, of_model) for c, of_model in enumerate(chunk_logits, i))


def logsumexp(logits: np.ndarray) -> np.ndarray:
    """Compute log(sum(exp(logits))) [..., 1] of logits [..., V] in float64."""
    highest = logits.max(axis=-1, keepdims=True)
    differences = logits - highest
    return highest + np.log(np.exp(differences, out=differences).sum(axis=-1, keepdims=True, dtype=np.float64))


def top_k(values: np.ndarray, k: int) -> np.ndarray:
    """Return the indices [..., k] of the k largest values [..., n], or of all, largest first; ties are in order."""
    from embryo_core.engine.kernels import largest  # imports torch, which loading models has already imported

    k = min(k, values.shape[-1])
    if k == 1:
        return values.argmax(axis=-1, keepdims=True)
    candidates = np.sort(largest(values, k))
    top = np.take_along_axis(values, candidates, axis=-1)
    best = np.take_along_axis(candidates, np.argsort(-top, kind="stable"), axis=-1)
    candidate_count = np.count_nonzero(values >= top.min(axis=-1, keepdims=True), axis=-1)
    for row in map(tuple, np.argwhere(candidate_count > k)):  # `largest` takes any of the values equal to the smallest
        best[row] = np.argsort(-values[row], kind="stable")[:k]
    return best
