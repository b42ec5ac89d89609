"""Live cloze: what a checkpoint answers to any text with [MASK]; trace.py asks all checkpoints of a run.

Several masks are answered jointly. The probability of an answer (w1, ..., wm) is that of the chain rule, masks filled
left to right,

    P(w1, ..., wm | text) = P(w1 | text) P(w2 | text, w1) ... P(wm | text, w1, ..., wm-1),

where each factor is read at its mask with the words before it filled in and the masks after it still in place. The best
answers are found with a beam of BEAM. The predictions listed for one mask are its factor, exact over the whole
vocabulary, given the words that the best answer puts into the masks before it. With one [MASK] all this is the model's
own distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.query.question import Question, read_question, readable
from embryo_core.types import Prediction

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.engine.tokenizer import Tokenizer

JOIN = " | "  # between the words of a joint answer
BEAM = 10  # joint answers kept after each mask


# === One checkpoint ===


@dataclass(frozen=True, eq=False)
class Reply:
    """What one checkpoint answers to a question with m masks."""

    answers: np.ndarray  # [at most the beam, m] ids of the best joint answers, best first
    log_probabilities: np.ndarray  # [answers] natural logarithm of their joint probabilities
    logits: np.ndarray  # [m, V] float32 logits of every piece at each mask, given the best answer before it
    normalisers: np.ndarray  # [m, 1] what log probabilities lack of them
    ordered: np.ndarray  # [m, V] the logits of each mask in ascending order

    @property
    def factors(self) -> np.ndarray:
        """Log probability [m, V] of every piece at each mask, given the best answer before it, in float64."""
        return self.logits - self.normalisers

    def ranks(self, mask: int, ids: Sequence[int]) -> list[int]:
        """Rank of some pieces at one mask (from 0), 1 for the most probable; of equals, the first is the better."""
        values, ordered = self.logits[mask], self.ordered[mask]
        own = values[ids]
        up_to, below = np.searchsorted(ordered, own, side="right"), np.searchsorted(ordered, own)
        ranks = 1 + len(values) - up_to
        for i in np.flatnonzero(up_to - below > 1):
            ranks[i] += np.count_nonzero(values[: ids[i]] == own[i])
        return ranks.tolist()


def ask(models: Sequence["Model"], question: Question, beam: int = BEAM) -> list[Reply]:
    """Answer a question jointly at each checkpoint, by beam search over the chain rule; one pass per mask for all."""
    every = np.arange(len(models))
    answers, totals = np.zeros((len(models), 1, 0), np.int64), np.zeros((len(models), 1))
    found = []  # per mask: logits [C, answers, V] and normalisers, a row for each answer so far; that of each new one
    for position in question.masks:
        logits = _logits(models, question.filled(answers), position)
        normalisers = log_normaliser(logits)
        best = largest(logits, beam)  # [C, answers, beam]; the best joint answers are among them
        joint = totals[..., None] + np.take_along_axis(logits, best, axis=2) - normalisers
        words, joint = best.reshape(len(models), -1), joint.reshape(len(models), -1)
        order = largest(joint, beam)
        parents, chosen = order // best.shape[2], (every[:, None], order)
        found.append((logits, normalisers, parents))
        answers = np.concatenate([answers[every[:, None], parents], words[chosen][..., None]], axis=2)
        totals = joint[chosen]
    path, row = [], np.zeros(len(models), np.int64)  # back from the best answer to the rows it came from
    for logits, normalisers, parents in reversed(found):
        row = parents[every, row]
        path.append((logits[every, row], normalisers[every, row]))
    logits, normalisers = (np.stack(parts, axis=1) for parts in zip(*reversed(path), strict=True))  # [C, m, ...]
    return [Reply(*parts) for parts in zip(answers, totals, logits, normalisers, np.sort(logits), strict=True)]


def joint_log_probability(model: "Model", question: Question, answers: np.ndarray) -> np.ndarray:
    """Natural logarithm [A] of the chain-rule probability of given answers, `answers` [A, m] ids for the m masks."""
    totals = np.zeros(len(answers))
    for i, position in enumerate(question.masks):
        prefixes, row = np.unique(answers[:, :i], axis=0, return_inverse=True)
        (logits,), row = _logits([model], question.filled(prefixes[None]), position), row.reshape(-1)
        totals += logits[row, answers[:, i]] - log_normaliser(logits)[row, 0]
    return totals


def fill_mask(model: "Model", text: str, k: int = 10) -> list[list[Prediction]]:
    """The k best pieces for each [MASK] of a text, one list per mask, best first; probabilities are over all pieces.

    A mask's predictions are conditioned on the best joint answer before it (see the module), so that the words of one
    answer fit together. Raises QueryError.
    """
    question = read_question(text, model.tokenizer, model.max_positions)
    return predictions(ask([model], question)[0], model.tokenizer, k)


def predictions(reply: Reply, tokenizer: "Tokenizer", k: int = 10) -> list[list[Prediction]]:
    """The k best pieces of a reply for each mask."""
    return [ranked(factor, tokenizer, k) for factor in reply.factors]


def joint_predictions(reply: Reply, tokenizer: "Tokenizer", k: int = BEAM) -> list[Prediction]:
    """The k best joint answers (at most BEAM); the token of a Prediction is the words of all masks, joined by JOIN."""
    return [
        Prediction(JOIN.join(readable(tokenizer, answer)), float(np.exp(total)), rank)
        for rank, (answer, total) in enumerate(zip(reply.answers[:k], reply.log_probabilities, strict=False), start=1)
    ]


# === Arithmetic ===


def ranked(log_probabilities: np.ndarray, tokenizer: "Tokenizer", k: int) -> list[Prediction]:
    """The k best pieces of one distribution [V], best first."""
    best = largest(log_probabilities, k)
    found = zip(readable(tokenizer, best), np.exp(log_probabilities[best]).tolist(), strict=True)
    return [Prediction(token, probability, rank) for rank, (token, probability) in enumerate(found, 1)]


def beam_rank(reply: Reply, total: float) -> int | None:
    """Rank of a joint answer of log probability `total`: 1 + the beam's more probable answers; None where all are.

    It is the answer's true rank or better, as answers that the beam missed can only come before it.
    """
    better = int((reply.log_probabilities > total).sum())
    return better + 1 if better < len(reply.log_probabilities) else None


def _logits(models: Sequence["Model"], ids: np.ndarray, position: int) -> np.ndarray:
    """Logits [C, B, V] by each of C models of every piece at one position of each row of its own ids [C, B, L]."""
    from embryo_core.engine.model import mlm_logits  # torch is imported by the first query, not by the dashboard

    rows = np.arange(ids.shape[1])
    return np.stack(mlm_logits(models, ids, np.ones_like(ids[0]), rows, np.full_like(rows, position)))


def log_normaliser(logits: np.ndarray) -> np.ndarray:
    """What log probabilities lack of logits: the logarithm [..., 1] of the sum of exp(logits [..., V]), in float64."""
    highest = logits.max(axis=-1, keepdims=True)
    return highest + np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True, dtype=np.float64))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log probabilities [..., V] in float64 of float32 logits [..., V]."""
    return logits - log_normaliser(logits)


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices [..., k] of the k largest values [..., n], or of all, largest first; of equals among them the first."""
    k = min(k, values.shape[-1])
    if k == 1:
        return values.argmax(axis=-1, keepdims=True)
    candidates = np.sort(np.argpartition(-values, k - 1)[..., :k])
    order = np.argsort(-np.take_along_axis(values, candidates, axis=-1), kind="stable")
    return np.take_along_axis(candidates, order, axis=-1)
