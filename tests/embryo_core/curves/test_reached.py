"""Tests of when a score reached a share of its last value, compared with values computed by hand and with a loop."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from embryo_core.curves.reached import reached_steps, resample_scores
from embryo_core.errors import ResultsError
from embryo_core.finetune.encoded_tasks import score

RANDOM = np.random.default_rng(2)


def count_draws(draws: np.ndarray) -> np.ndarray:
    """Return how often each example is in each draw [B, n]."""
    return np.stack([np.bincount(rows, minlength=draws.shape[1]) for rows in draws])


@pytest.mark.parametrize("metric", ["matthews", "accuracy", "f1", "spearman", "pearson"])
def test_scores_of_samples_match_scikit_learn_and_scipy(metric: str):
    """One of the samples repeats a single example, so nothing varies in it."""
    gold, answers = RANDOM.integers(0, 2, 60).astype(float), RANDOM.integers(0, 2, 60).astype(float)
    draws = np.vstack([RANDOM.integers(0, 60, (20, 60)), np.full((1, 60), 3)])
    expected = [score(metric, gold[rows], answers[rows]) for rows in draws]
    np.testing.assert_allclose(resample_scores(metric, gold, answers, count_draws(draws)), expected, atol=1e-12)


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_correlations_of_samples_match_scipy(metric: str):
    """Nearly all answers differ, and some of the gold values are tied."""
    gold, answers = RANDOM.integers(0, 20, 60) / 4, RANDOM.normal(size=60)
    draws = RANDOM.integers(0, 60, (20, 60))
    expected = [score(metric, gold[rows], answers[rows]) for rows in draws]
    np.testing.assert_allclose(resample_scores(metric, gold, answers, count_draws(draws)), expected, atol=1e-12)


def test_equal_answers_have_no_correlation():
    """Rounding of their mean would otherwise make some of them seem to vary."""
    gold, draws = RANDOM.normal(size=60), RANDOM.integers(0, 60, (20, 60))
    for answer in RANDOM.normal(size=20):
        for metric in ("spearman", "pearson"):
            assert not resample_scores(metric, gold, np.full(60, answer), count_draws(draws)).any()


def test_matthews_of_three_labels_matches_scikit_learn():
    gold, answers = RANDOM.integers(0, 3, 60), RANDOM.integers(0, 3, 60)
    draws = RANDOM.integers(0, 60, (5, 60))
    expected = [score("matthews", gold[rows], answers[rows]) for rows in draws]
    np.testing.assert_allclose(resample_scores("matthews", gold, answers, count_draws(draws)), expected, atol=1e-12)


def frame(shares: dict[int, float], n: int = 400, seeds: int = 2) -> pd.DataFrame:
    """Return answers of which the given shares are right at each step."""
    rows = []
    for step, share in shares.items():
        for seed in range(1, seeds + 1):
            right = np.arange(n) < round(share * n)
            same = {"step": step, "seed": seed, "gold": 1.0}
            rows.append(pd.DataFrame({"example": np.arange(n), "answer": right, **same}))
    return pd.concat(rows, ignore_index=True).astype({"answer": float})


def test_step_is_the_first_at_or_above_the_share():
    """The threshold is 95 % of 0.8, which is 0.76 and is reached at step 20."""
    (result,) = reached_steps(frame({0: 0.1, 10: 0.5, 20: 0.77, 30: 0.79, 40: 0.8}), "accuracy", [0.95])
    assert (result.step, result.earliest) == (20, 20) and result.latest in (20, 30)


def test_interval_holds_the_middle_95_percent_of_draws():
    """A loop computes the step of each of 400 draws from the mean score of two seeds with different accuracies."""
    random, steps, n = np.random.default_rng(49), range(0, 200, 5), 40
    rows = [(step, seed, example, 1, random.random() < 0.5 + 0.002 * step - 0.2 * seed)
            for step in steps for seed in (0, 1) for example in range(n)]  # fmt: skip
    answers = pd.DataFrame(rows, columns=["step", "seed", "example", "gold", "answer"]).astype({"answer": float})
    right = answers["answer"].to_numpy().reshape(len(steps), 2, n)
    firsts = []
    for drawn in (np.arange(n), *np.random.default_rng(7).integers(0, n, (400, n))):
        means = right[:, :, drawn].mean(axis=(1, 2))
        firsts.append(next(step for step, mean in zip(steps, means) if mean >= 0.9 * means[-1] - 1e-12))
    whole, *firsts = firsts
    (result,) = reached_steps(answers, "accuracy", [0.9])
    assert (result.step, result.earliest, result.latest) == (whole, sorted(firsts)[9], sorted(firsts)[389])
    assert sorted(firsts)[9] < sorted(firsts)[10] and sorted(firsts)[379] < sorted(firsts)[389]  # more draws, or fewer


def test_several_shares_are_found_independently():
    """The curve falls back between the two shares, so each has its own first step."""
    answers = frame({0: 0.1, 10: 0.6, 20: 0.2, 30: 0.65, 40: 0.8})
    together = reached_steps(answers, "accuracy", [0.7, 0.99])
    assert [result.step for result in together] == [10, 40]
    assert together == [*reached_steps(answers, "accuracy", [0.7]), *reached_steps(answers, "accuracy", [0.99])]


def test_interval_of_few_examples_is_wide():
    """Twenty examples answered at random cannot separate the steps; the interval contains the step."""
    random = frame({0: 0.5, 10: 0.5, 20: 0.5, 30: 0.5}, n=20, seeds=1)
    random["answer"] = np.random.default_rng(4).integers(0, 2, len(random)).astype(float)
    (result,) = reached_steps(random, "accuracy", [0.99])
    assert result.earliest <= result.step <= result.latest and result.earliest < result.latest


def test_interval_contains_the_step():
    """The curve stays just below the threshold until the last step, so nearly all draws reach it earlier."""
    random, n, rows = np.random.default_rng(0), 100, []
    for step in range(40):
        right = np.isin(np.arange(n), random.permutation(n)[: 94 if step < 39 else 100])
        rows.append(
            pd.DataFrame({"step": step, "seed": 1, "example": np.arange(n), "gold": 1.0, "answer": right * 1.0})
        )
    (found,) = reached_steps(pd.concat(rows, ignore_index=True), "accuracy", [0.95])
    assert (found.step, found.latest) == (39, 39) and found.earliest < 10


def test_last_score_of_0_is_never_reached():
    assert reached_steps(frame({0: 0.5, 10: 0.0}), "accuracy", [0.95]) == [None]


def test_last_score_within_chance_is_never_reached():
    """Matthews of answers unrelated to the labels is above 0 in many draws, but not in nearly all."""
    answers = frame({0: 0.5, 10: 0.5}, n=400, seeds=1)
    answers["gold"] = (answers["example"] % 2).astype(float)
    answers["answer"] = ((answers["example"] // 2) % 2).astype(float)
    answers.loc[answers["example"] < 8, "answer"] = answers["gold"]
    assert reached_steps(answers, "matthews", [0.95]) == [None]
    answers.loc[answers["example"] < 200, "answer"] = answers["gold"]
    assert reached_steps(answers, "matthews", [0.95])[0].step == 0


@pytest.mark.parametrize(("sure", "is_reached"), [(389, False), (390, True)])
def test_last_score_is_above_0_in_390_of_400_draws(sure: int, is_reached: bool):
    """A draw's score is above 0 if it has one of four questions, chosen such that this many draws do."""
    draws = np.random.default_rng(7).integers(0, 40, (400, 40))
    right = next(four for four in combinations(range(40), 4) if np.isin(draws, four).any(axis=1).sum() == sure)
    answers = pd.DataFrame({"step": 5, "seed": 1, "question": range(40)})
    answers["exact"] = answers["question"].isin(right).astype(float)
    assert (reached_steps(answers, "exact", [0.95]) != [None]) == is_reached


def test_questions_are_resampled_as_examples_are():
    """The score of a draw is the mean F1 or exact match of its questions, which equals accuracy here."""
    answers = frame({0: 0.1, 10: 0.5, 20: 0.77, 30: 0.79, 40: 0.8})
    spans = answers.assign(question=answers["example"], exact=answers["answer"].eq(answers["gold"]).astype(float))
    assert reached_steps(spans, "exact", [0.95]) == reached_steps(answers, "accuracy", [0.95])
    assert reached_steps(spans.assign(f1=spans["exact"] / 2), "f1", [0.95]) == reached_steps(
        answers, "accuracy", [0.95]
    )
    assert reached_steps(spans.assign(exact=0.0), "exact", [0.95]) == [None]


def test_f1_without_label_1_is_never_reached():
    """Label 1 is neither gold nor answered here; without any answers there is no step either."""
    zeros = frame({0: 0.0}, n=4, seeds=1).assign(gold=0.0)
    assert reached_steps(zeros, "f1", [0.95]) == reached_steps(zeros.iloc[:0], "f1", [0.95]) == [None]


@pytest.mark.parametrize("answer", [-1.0, 0.5, 2.0**31])
def test_answer_that_is_no_label_is_refused(answer: float):
    """Results may be untrusted, and the memory for the counts grows with the square of the labels."""
    answers = frame({0: 0.5, 10: 1.0}, n=4)
    answers.loc[3, "answer"] = answer
    with pytest.raises(ResultsError, match="none of the task's labels"):
        reached_steps(answers, "accuracy", [0.95])


def test_missing_example_of_a_step_is_reported():
    """Scores on different examples are not compared."""
    with pytest.raises(ResultsError, match="lack answers to examples"):
        reached_steps(frame({0: 0.5, 10: 1.0}, n=4).iloc[1:], "accuracy", [0.95])


def test_drawing_in_batches_does_not_change_the_interval(monkeypatch: pytest.MonkeyPatch):
    """The number of indices held at a time bounds the memory, and the number of answers is limited."""
    answers = frame({0: 0.1, 10: 0.5, 20: 0.77, 30: 0.79, 40: 0.8})
    whole = reached_steps(answers, "accuracy", [0.95])
    monkeypatch.setattr("embryo_core.curves.reached.MAX_VALUES_AT_ONCE", 1000)
    assert reached_steps(answers, "accuracy", [0.95]) == whole
    monkeypatch.setattr("embryo_core.curves.reached.MAX_ANSWERS", 100)
    with pytest.raises(ResultsError, match="the maximum is 100"):
        reached_steps(answers, "accuracy", [0.95])
