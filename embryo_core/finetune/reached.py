"""From which step on a task's score has come up to a share of its last value, with an interval by bootstrap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from embryo_core.errors import ResultsError
from embryo_core.finetune.forms import MOST_LABELS

DRAWS = 400  # bootstrap samples of the development examples
SEED = 7
AT_ONCE = 2**20  # indices that are held at a time, a few tens of MB with what is made of them
MOST_ANSWERS = 2**23  # of a task at all steps; QQP at 40 steps with five seeds has as many
LABELLED = ("matthews", "accuracy", "f1")
Score = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of a step's answers [n] and draws [B, n]: scores [B]


@dataclass(frozen=True)
class Reached:
    """The first step whose score is at least the share of the last one, and the ends of its 95 % interval."""

    step: int
    earliest: int
    latest: int


def reached(answers: pd.DataFrame, metric: str, share: float) -> Reached | None:
    """When the score's mean over seeds reached a share of its last value; None where that is not above 0.

    `answers` has the columns step, seed, example, gold and answer; every (step, seed) answered the same examples. The
    interval is that of these steps with the development examples drawn anew, with replacement, the same for all steps.
    Draws whose last score is not above 0 reach no step and are left out of it. Raises ResultsError where some step
    lacks an example, or an answer is none of the labels.
    """
    if answers.empty:
        return None
    _check(answers, "example")
    if metric in LABELLED:
        _check_labels(answers)
    table = answers.pivot_table(index=["step", "seed"], columns="example", values="answer")
    gold = answers.groupby("example")["gold"].first().to_numpy()
    return _reached(table, lambda row, draws: resampled(metric, gold, row, draws), share)


def reached_in_spans(spans: pd.DataFrame, metric: str, share: float) -> Reached | None:
    """The same of answers to questions, whose score is the mean of the column `metric`: exact or f1.

    `spans` has the columns step, seed, question and that one. Raises ResultsError where some step lacks a question.
    """
    if spans.empty:
        return None
    _check(spans, "question")
    table = spans.pivot_table(index=["step", "seed"], columns="question", values=metric)
    return _reached(table, lambda row, draws: row[draws].mean(1), share)


def _reached(table: pd.DataFrame, score: Score, share: float) -> Reached | None:
    steps, scores, drawn = _by_step(table, score)
    firsts = [steps[first_at(curve, share)] for curve in drawn if curve[-1] > 0]
    if scores[-1] <= 0 or not firsts:
        return None
    low, high = np.quantile(firsts, [0.025, 0.975], method="inverted_cdf")
    return Reached(int(steps[first_at(scores, share)]), int(low), int(high))


def first_at(scores: np.ndarray, share: float) -> int:
    """The index of the first of `scores` [S], the last above 0, that is at least a share of the last."""
    return int(np.argmax(scores >= share * scores[-1]))


def _by_step(table: pd.DataFrame, score: Score) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps [S], scores [S], and scores of every draw [DRAWS, S], means over the seeds.

    `table` has a row for each step and seed and n columns.
    """
    samples = _samples(len(table.columns))
    values = np.concatenate([np.stack([score(row, rows) for row in table.to_numpy()], 1) for rows in samples])
    means = pd.DataFrame(values.T, index=table.index.get_level_values("step")).groupby(level=0).mean()
    return means.index.to_numpy(), means[0].to_numpy(), means.to_numpy()[:, 1:].T


def _samples(n: int) -> Iterator[np.ndarray]:
    """Indices of the development set's n examples, then of each draw of them, some rows [., n] at a time."""
    random = np.random.default_rng(SEED)
    yield np.arange(n)[None]
    left = DRAWS
    while left:
        count = min(left, max(1, AT_ONCE // n))
        yield random.integers(0, n, (count, n))
        left -= count


def _check(answers: pd.DataFrame, of: str) -> None:
    """Raise ResultsError for answers that cannot be resampled, or not in bounded time and memory."""
    if len(answers) > MOST_ANSWERS:
        raise ResultsError(f"The task has {len(answers):,} answers; at most {MOST_ANSWERS:,} are drawn from.")
    if len(answers) != answers.groupby(["step", "seed"]).ngroups * answers[of].nunique():
        raise ResultsError("Some steps did not answer all examples of the task; fine-tune on it with --overwrite.")


def _check_labels(answers: pd.DataFrame) -> None:
    """Raise ResultsError for answers that are no index of a label."""
    values = answers[["gold", "answer"]].to_numpy()
    if not ((values >= 0) & (values < MOST_LABELS) & (values == np.floor(values))).all():
        raise ResultsError("Some answers are none of the task's labels; fine-tune on it with --overwrite.")


def resampled(metric: str, gold: np.ndarray, answers: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The metric [B] of B samples of the examples, `draws` [B, n] being their indices.

    Equal to scikit-learn's and scipy's, sample by sample, and many times as fast. A correlation without a value is 0.
    """
    if metric in LABELLED:
        return _of_counts(metric, gold.astype(int), answers.astype(int), draws)
    gold, answers = gold[draws], answers[draws]
    if metric == "spearman":  # by pandas: scipy.stats takes a second to import, and the pages do without
        gold, answers = (pd.DataFrame(values).rank(axis=1).to_numpy() for values in (gold, answers))
    return _correlation(gold, answers)


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's correlation of the rows of two arrays [B, n]."""
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return np.divide((a * b).sum(1), size, out=np.zeros(len(a)), where=size > 0)


def _of_counts(metric: str, gold: np.ndarray, answers: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Scores of labels, from how often each was answered where each was right."""
    labels = max(2, int(max(gold.max(), answers.max())) + 1)
    cells = (gold * labels + answers)[draws] + labels**2 * np.arange(len(draws))[:, None]
    counts = np.bincount(cells.ravel(), minlength=labels**2 * len(draws)).reshape(-1, labels, labels).astype(float)
    right, n = counts.trace(axis1=1, axis2=2), counts.sum((1, 2))
    if metric == "accuracy":
        return right / n
    given, answered = counts.sum(2), counts.sum(1)  # [B, labels]
    if metric == "f1":  # of label 1
        size, shared = (given[:, 1] + answered[:, 1]) / 2, counts[:, 1, 1]
    else:  # Gorodkin's form for any number of labels
        shared = right * n - (given * answered).sum(1)
        size = np.sqrt((n**2 - (given**2).sum(1)) * (n**2 - (answered**2).sum(1)))
    return np.divide(shared, size, out=np.zeros(len(draws)), where=size > 0)
