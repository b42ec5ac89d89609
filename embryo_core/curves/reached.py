"""The first step at which a task's score reaches a share of its last value, with a bootstrap interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd

from embryo_core.curves.multibootstrap import resampled_counts
from embryo_core.errors import ResultsError

DRAWS = 400  # bootstrap samples of the development examples
SEED = 7  # seed of the draws
AT_ONCE = 2**20  # examples times draws in memory at once: tens of MB with the arrays computed from them
MAX_ANSWERS = 2**23  # answers to a task at all steps: enough for QQP at 40 steps with five seeds
MAX_LABELS = 256  # labels of a task; every draw counts how often each was answered
SHARES = (0.95, 0.99)  # shares of the last score
SURE = 0.975  # the last score is significantly above 0 if it is above 0 in this share of the draws
ROUNDING = 1e-12  # values that vary by less, relative to their size, count as constant
LABELLED = ("matthews", "accuracy", "f1")  # metrics of answers that are labels
# a step's answers [n] and the samples' weights [B, n] -> scores [B]
ScoreFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Reached:
    """The first step whose score is at least a share of the last one, and the ends of its 95 % interval."""

    step: int
    earliest: int
    latest: int


def reached(answers: pd.DataFrame, metric: str, shares: Sequence[float] = SHARES) -> list[Reached | None]:
    """Return when the mean score over seeds reached each share of its last value; None if that may be 0 by chance.

    `answers` has the columns step, seed, example, gold and answer; for answers to questions, whose score is the mean of
    the column `metric` (exact or f1), it has step, seed, question and that column. Every (step, seed) answered the same
    examples. The interval comes from resampling the development examples, the same for all steps. Draws whose last
    score is not above 0 reach no step; only a few may do so (SURE). Raises ResultsError for too many answers, if some
    step lacks an example, or if an answer is not one of the labels.
    """
    if answers.empty:
        return [None] * len(shares)
    of_spans = "question" in answers
    item, value = ("question", metric) if of_spans else ("example", "answer")
    _check(answers, item, labelled=metric in LABELLED and not of_spans)
    table = answers.pivot(index=["step", "seed"], columns=item, values=value)
    gold = None if of_spans else answers.drop_duplicates(item).set_index(item)["gold"].loc[table.columns].to_numpy()

    def score(row: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights @ row / len(row) if gold is None else resampled(metric, gold, row, weights)

    by_step: dict[int, np.ndarray] = {step: rows.to_numpy(float) for step, rows in table.groupby(level="step")}
    n = len(table.columns)
    samples = chain([np.ones((1, n))], resampled_counts(n, DRAWS, AT_ONCE, SEED))  # all examples once, then the draws
    parts = [_first_steps(by_step, score, shares, weights) for weights in samples]
    whole, *firsts = np.concatenate(parts)
    return [_with_interval(whole[i], [first[i] for first in firsts if first[i] >= 0]) for i in range(len(shares))]


def _with_interval(step: int, drawn: list[int]) -> Reached | None:
    """Return a step with the interval of the drawn steps; None if it is -1 or too few draws reached a step (SURE)."""
    if step < 0 or len(drawn) < SURE * DRAWS:
        return None
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return Reached(int(step), int(low), int(high))


def _first_steps(
    answers: dict[int, np.ndarray], score: ScoreFunction, shares: Sequence[float], weights: np.ndarray
) -> np.ndarray:
    """Return the first step at which each sample reached each share of its last score, [B, shares]; -1 if none.

    `answers` has an array [seeds, n] for each step. Samples that have reached all shares are not scored again.
    """

    def mean(step: int, samples: np.ndarray) -> np.ndarray:
        return np.mean([score(row, samples) for row in answers[step]], axis=0)

    last = mean(max(answers), weights)
    first = np.full((len(weights), len(shares)), -1)
    waiting = np.flatnonzero(last > 0)
    for step in sorted(answers):
        scores = mean(step, weights[waiting])
        up = scores[:, None] >= np.asarray(shares) * last[waiting, None]
        first[waiting] = np.where(up & (first[waiting] < 0), step, first[waiting])
        waiting = waiting[(first[waiting] < 0).any(axis=1)]
        if not len(waiting):
            break
    return first


def _check(answers: pd.DataFrame, example_column: str, labelled: bool) -> None:
    """Raise ResultsError for answers that are too many, are missing at some steps, or are not the index of a label."""
    if len(answers) > MAX_ANSWERS:
        raise ResultsError(f"The task has {len(answers):,} answers; the maximum is {MAX_ANSWERS:,}.")
    if len(answers) != answers.groupby(["step", "seed"]).ngroups * answers[example_column].nunique():
        raise ResultsError("Some steps lack answers to examples of the task; fine-tune on it with --overwrite.")
    values = answers[["gold", "answer"]].to_numpy() if labelled else np.zeros(0)
    if not ((values >= 0) & (values < MAX_LABELS) & (values == np.floor(values))).all():
        raise ResultsError("Some answers are none of the task's labels; fine-tune on it with --overwrite.")


def resampled(metric: str, gold: np.ndarray, answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute the metric [B] of B samples of n examples; `weights` [B, n] is how often each sample has each example.

    The results equal those of scikit-learn and scipy for each sample, many times faster. An undefined correlation is 0.
    """
    if metric in LABELLED:
        return _label_scores(metric, gold.astype(int), answers.astype(int), weights)
    if metric == "spearman":
        gold, answers = _ranks(gold, weights), _ranks(answers, weights)
    return _correlation(gold, answers, weights)


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the rank of each example's value [n] within each sample, [B, n]; equal values share their mean rank."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)  # [B, groups]
    return (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, group]


def _correlation(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute Pearson's correlation in each sample; a and b are [n], or [B, n] if they differ between samples."""
    n = weights.sum(1, keepdims=True)
    of_both, of_a, of_b = _products(a, b, weights)
    rounding = ROUNDING * np.sqrt(of_a * of_b)
    a, b = (x - (weights * x).sum(1, keepdims=True) / n for x in (a, b))
    of_both, of_a, of_b = _products(a, b, weights)
    size = np.sqrt(of_a * of_b)
    return np.divide(of_both, size, out=np.zeros(len(weights)), where=size > rounding)


def _products(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums over each sample of a times b, of a squared and of b squared, [B] each."""
    a, b = (np.broadcast_to(x, weights.shape) for x in (a, b))
    both, of_a, of_b = (np.einsum("ij,ij,ij->i", weights, x, y) for x, y in ((a, b), (a, a), (b, b)))
    return both, of_a, of_b


def _label_scores(metric: str, gold: np.ndarray, answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute accuracy, F1 or Matthews correlation [B] from weighted counts of gold labels, answers and matches."""
    n = weights.sum(1)
    if metric == "accuracy":
        return weights @ (gold == answers) / n
    if metric == "f1":  # the F1 of label 1
        size, shared = weights @ ((gold == 1) * 0.5 + (answers == 1) * 0.5), weights @ ((gold == 1) & (answers == 1))
    else:  # Matthews in Gorodkin's form for any number of labels
        each = np.arange(max(gold.max(), answers.max()) + 1)
        given, answered = weights @ (gold[:, None] == each), weights @ (answers[:, None] == each)  # [B, labels]
        shared = weights @ (gold == answers) * n - (given * answered).sum(1)
        size = np.sqrt((n**2 - (given**2).sum(1)) * (n**2 - (answered**2).sum(1)))
    return np.divide(shared, size, out=np.zeros(len(n)), where=size > 0)
