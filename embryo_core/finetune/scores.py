"""Scores of answers in development, by scikit-learn and scipy, and those of a control that reads no text."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats
from sklearn import metrics


def score(metric: str, gold: np.ndarray, answers: np.ndarray) -> float:
    """One metric of answers [n] against gold answers [n]; in [-1, 1].

    Correlations with a constant, which have no value, count as 0, as Matthews' does. They are computed in float64.
    """
    with warnings.catch_warnings(action="ignore", category=stats.ConstantInputWarning):
        value = float(METRICS[metric](gold, answers))
    return 0.0 if np.isnan(value) else min(max(value, -1.0), 1.0)  # rounding may leave the interval


def scores(names: Sequence[str], gold: np.ndarray, answers: np.ndarray) -> dict[str, float]:
    """Several metrics by name."""
    return {name: score(name, gold, answers) for name in names}


def control(labels: Sequence[str], train: np.ndarray, n: int) -> tuple[str, np.ndarray]:
    """The name and n answers of the predictor that gives training's commonest label, or the mean of its values."""
    if labels:
        return "majority", np.full(n, np.bincount(train).argmax())
    return "mean", np.full(n, train.mean())


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "matthews": metrics.matthews_corrcoef,
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,  # of label 1
    "spearman": lambda gold, answers: stats.spearmanr(gold, answers).statistic,
    "pearson": lambda gold, answers: stats.pearsonr(gold.astype(float), answers.astype(float)).statistic,
}
