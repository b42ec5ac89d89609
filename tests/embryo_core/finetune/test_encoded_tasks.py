"""Tests that scores equal their definitions and that controls give one constant answer."""

import numpy as np
import pytest

from embryo_core.finetune.encoded_tasks import control, score, scores

RANDOM = np.random.default_rng(8)
GOLD, ANSWERS = RANDOM.integers(0, 2, 300), RANDOM.integers(0, 2, 300)
ANSWERS[:150] = GOLD[:150]


def test_scores_of_classes_equal_their_definitions():
    """Matthews' correlation, accuracy, and F1 of label 1 are computed from the four counts."""
    tp, tn, fp, fn = (
        int(((gold == GOLD) & (answer == ANSWERS)).sum()) for gold, answer in ((1, 1), (0, 0), (0, 1), (1, 0))
    )
    matthews = (tp * tn - fp * fn) / np.sqrt(float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    expected = {"matthews": matthews, "accuracy": (tp + tn) / 300, "f1": 2 * tp / (2 * tp + fp + fn)}
    assert scores(tuple(expected), GOLD, ANSWERS) == pytest.approx(expected, rel=1e-12)


def test_correlations_equal_their_definitions():
    """Spearman's is Pearson's correlation of ranks, in which ties share their mean rank."""
    gold, answers = RANDOM.integers(0, 6, 200).astype(float), RANDOM.normal(size=200)
    answers += gold

    def ranks(values: np.ndarray) -> np.ndarray:
        return np.array([(values < value).sum() + ((values == value).sum() + 1) / 2 for value in values])

    assert score("pearson", gold, answers) == pytest.approx(np.corrcoef(gold, answers)[0, 1], rel=1e-12)
    expected = np.corrcoef(ranks(gold), ranks(answers))[0, 1]
    assert score("spearman", gold, answers) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", ["matthews", "spearman", "pearson"])
def test_constant_answer_has_correlation_0(metric: str):
    """The score is 0 instead of NaN."""
    assert score(metric, GOLD.astype(float), np.ones(300)) == 0


def test_control_gives_the_most_frequent_training_label():
    """The labels of the validation data do not matter."""
    name, answers = control(("no", "yes"), np.array([1, 1, 0]), 4)
    assert name == "majority" and answers.tolist() == [1, 1, 1, 1]


def test_control_of_a_regression_gives_the_training_mean():
    """The answer is constant, so its correlation is 0."""
    name, answers = control((), np.array([1.0, 4.0]), 3)
    assert name == "mean" and answers.tolist() == [2.5, 2.5, 2.5]
