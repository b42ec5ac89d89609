"""The first step at which a task's score reaches a share of its last value, with a bootstrap interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd

from embryo_core.curves.multibootstrap import resampled_counts
from embryo_core.errors import ResultsError

DRAW_COUNT = 400  # bootstrap samples of the development examples
SEED = 7  # seed of the draws
MAX_VALUES_AT_ONCE = 2**20  # examples times draws in memory at once: tens of MB with the arrays computed from them
MAX_ANSWERS = 2**23  # answers to a task at all steps: enough for QQP at 40 steps with five seeds
MAX_LABELS = 256  # labels of a task; every draw counts how often each was answered
SHARES = (0.95, 0.99)  # shares of the last score
MIN_SURE_SHARE = 0.975  # the last score is significantly above 0 if it is above 0 in this share of the draws
ROUNDING = 1e-12  # values that vary by less, relative to their size, count as constant
LABEL_METRICS = ("matthews", "accuracy", "f1")  # metrics computed from predicted labels
# a step's answers [n] and the samples' weights [B, n] -> scores [B]
ScoreFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ReachedStep:
    """The first step whose score is at least a share of the last one, and the ends of its 95 % interval."""

    step: int
    earliest: int
    latest: int


def reached_steps(answers: pd.DataFrame, metric: str, shares: Sequence[float] = SHARES) -> list[ReachedStep | None]:
    """Return when the mean score over seeds reached each share of its last value; None if that may be 0 by chance.

    `answers` has the columns step, seed, example, gold and answer; for answers to questions, whose score is the mean of
    the column `metric` (exact or f1), it has step, seed, question and that column. Every (step, seed) answered the same
    examples. The interval comes from resampling the development examples, the same for all steps, and contains the
    step. Draws whose last score is not above 0 reach no step; only a few may do so (MIN_SURE_SHARE). Raises
    ResultsError for too many answers, if some step lacks an example, or if an answer is not one of the labels.
    """
    if answers.empty:
        return [None] * len(shares)
    is_span_task = "question" in answers
    example_column, value_column = ("question", metric) if is_span_task else ("example", "answer")
    _check_answers(answers, example_column, has_labels=metric in LABEL_METRICS and not is_span_task)
    table = answers.pivot(index=["step", "seed"], columns=example_column, values=value_column)
    gold = None
    if not is_span_task:
        gold = answers.drop_duplicates(example_column).set_index(example_column)["gold"].loc[table.columns].to_numpy()

    def score(row: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights @ row / len(row) if gold is None else resample_scores(metric, gold, row, weights)

    by_step: dict[int, np.ndarray] = {step: rows.to_numpy(float) for step, rows in table.groupby(level="step")}
    n = len(table.columns)
    # all examples once, then the draws
    samples = chain([np.ones((1, n))], resampled_counts(n, DRAW_COUNT, MAX_VALUES_AT_ONCE, SEED))
    first_steps = [_first_steps(by_step, score, shares, weights) for weights in samples]
    observed_steps, *sampled_steps = np.concatenate(first_steps)
    columns = zip(observed_steps, *sampled_steps, strict=True)  # one for each share
    return [_with_interval(step, [sample for sample in samples if sample >= 0]) for step, *samples in columns]


def _with_interval(step: int, sampled_steps: list[int]) -> ReachedStep | None:
    """Return a step with the interval of the drawn steps, which contains it.

    None if the step is -1 or too few draws reached one.
    """
    if step < 0 or len(sampled_steps) < MIN_SURE_SHARE * DRAW_COUNT:
        return None
    low, high = np.quantile(sampled_steps, [0.025, 0.975], method="inverted_cdf")
    return ReachedStep(int(step), min(int(low), int(step)), max(int(high), int(step)))


def _first_steps(
    answers: dict[int, np.ndarray], score: ScoreFunction, shares: Sequence[float], weights: np.ndarray
) -> np.ndarray:
    """Return the first step at which each sample reached each share of its last score, [B, shares]; -1 if none.

    `answers` has an array [seeds, n] for each step. Samples that have reached all shares are not scored again.
    """

    def mean_score(step: int, samples: np.ndarray) -> np.ndarray:
        return np.mean([score(row, samples) for row in answers[step]], axis=0)

    last_scores = mean_score(max(answers), weights)
    first_steps = np.full((len(weights), len(shares)), -1)
    unreached = np.flatnonzero(last_scores > 0)
    for step in sorted(answers):
        scores = mean_score(step, weights[unreached])
        is_reached = scores[:, None] >= np.asarray(shares) * last_scores[unreached, None]
        first_steps[unreached] = np.where(is_reached & (first_steps[unreached] < 0), step, first_steps[unreached])
        unreached = unreached[(first_steps[unreached] < 0).any(axis=1)]
        if not len(unreached):
            break
    return first_steps


def _check_answers(answers: pd.DataFrame, example_column: str, has_labels: bool) -> None:
    """Raise ResultsError for answers that are too many, are missing at some steps, or are not the index of a label."""
    if len(answers) > MAX_ANSWERS:
        raise ResultsError(f"The task has {len(answers):,} answers; the maximum is {MAX_ANSWERS:,}.")
    if len(answers) != answers.groupby(["step", "seed"]).ngroups * answers[example_column].nunique():
        raise ResultsError("Some steps lack answers to examples of the task; fine-tune on it with --overwrite.")
    values = answers[["gold", "answer"]].to_numpy() if has_labels else np.zeros(0)
    if not ((values >= 0) & (values < MAX_LABELS) & (values == np.floor(values))).all():
        raise ResultsError("Some answers are none of the task's labels; fine-tune on it with --overwrite.")


def resample_scores(metric: str, gold: np.ndarray, answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute the metric [B] of B samples of n examples; `weights` [B, n] is how often each sample has each example.

    The results equal those of scikit-learn and scipy for each sample, many times faster. An undefined correlation is 0.
    """
    if metric in LABEL_METRICS:
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
    covariance, variance_a, variance_b = _products(a, b, weights)
    rounding = ROUNDING * np.sqrt(variance_a * variance_b)
    a, b = (x - (weights * x).sum(1, keepdims=True) / n for x in (a, b))
    covariance, variance_a, variance_b = _products(a, b, weights)
    norm = np.sqrt(variance_a * variance_b)
    return np.divide(covariance, norm, out=np.zeros(len(weights)), where=norm > rounding)


def _products(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums over each sample of a times b, of a squared and of b squared, [B] each."""
    a, b = (np.broadcast_to(x, weights.shape) for x in (a, b))
    product, square_a, square_b = (np.einsum("ij,ij,ij->i", weights, x, y) for x, y in ((a, b), (a, a), (b, b)))
    return product, square_a, square_b


def _label_scores(metric: str, gold: np.ndarray, answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute accuracy, F1 or Matthews correlation [B] from weighted counts of gold labels, answers and matches."""
    n = weights.sum(1)
    if metric == "accuracy":
        return weights @ (gold == answers) / n
    if metric == "f1":  # the F1 of label 1
        denominator = weights @ ((gold == 1) * 0.5 + (answers == 1) * 0.5)
        numerator = weights @ ((gold == 1) & (answers == 1))
    else:  # Matthews in Gorodkin's form for any number of labels
        labels = np.arange(max(gold.max(), answers.max()) + 1)
        # [B, labels]
        gold_counts, answer_counts = weights @ (gold[:, None] == labels), weights @ (answers[:, None] == labels)
        numerator = weights @ (gold == answers) * n - (gold_counts * answer_counts).sum(1)
        denominator = np.sqrt((n**2 - (gold_counts**2).sum(1)) * (n**2 - (answer_counts**2).sum(1)))
    return np.divide(numerator, denominator, out=np.zeros(len(n)), where=denominator > 0)
