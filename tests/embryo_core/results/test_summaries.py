"""Tests that summaries agree with their tables, even if their files are damaged or missing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves.reached import reached_steps
from embryo_core.errors import ResultsError
from embryo_core.measurements import Findings, SpanAnswer, TaskAnswer, TaskScore
from embryo_core.results.summaries import IN_ANSWERS, IN_SPANS, WORD_COUNTS, WORD_COUNTS_SUMMARY
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import STEPS, find, lose

# === Word counts ===


def counted_words(run: Run) -> pd.DataFrame:
    """Return the words of the last step, read from the stored rows."""
    last = max(results.steps_by_metric(run)["mask_prediction"])
    return results.read_words(run, "mask_prediction", step=last)[WORD_COUNTS.columns]


def write_words(run: Run, steps: tuple[int, ...]) -> None:
    """Store pending words of one metric at these steps, and another metric without words.

    Counts grow with the step, unlike those of a treebank, so that the steps can be told apart.
    """
    for step in steps:
        findings = find("mask_prediction", step, seed=step)
        findings.words = [replace(word, n=word.n + step) for word in findings.words]
        results.write(checkpoint_at(run, step), "mask_prediction", findings)
        results.write(checkpoint_at(run, step), "attention", find("attention", step))


@pytest.mark.parametrize("compacted", [False, True])
def test_word_counts_are_those_of_last_step(run: Run, compacted: bool):
    """Counts come from pending evaluations or the summary, and are updated by later steps."""
    for steps in (STEPS[:2], STEPS[2:]):
        write_words(run, steps)
        if compacted:
            results.compact(run)
        assert (run.results / WORD_COUNTS_SUMMARY.file).exists() == compacted
        assert not counted_words(run).empty
        pd.testing.assert_frame_equal(results.read_word_counts(run, "mask_prediction"), counted_words(run))
    assert results.read_word_counts(run, "attention").empty


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_word_counts_are_recomputed(run: Run, damage: str):
    """The next compaction writes the same bytes again, even if nothing is pending."""
    write_words(run, STEPS)
    results.compact(run)
    path = run.results / WORD_COUNTS_SUMMARY.file
    whole = path.read_bytes()
    lose(path, damage)
    pd.testing.assert_frame_equal(results.read_word_counts(run, "mask_prediction"), counted_words(run))
    results.compact(run)
    assert path.read_bytes() == whole


def test_empty_run_has_no_word_counts(run: Run):
    """The frame has all columns, and no file is created."""
    assert list(results.read_word_counts(run, "mask_prediction")) == WORD_COUNTS.columns
    assert results.read_word_counts(run, "mask_prediction").empty and not run.results.exists()


# === Steps at which scores reached a share of their last value ===


N = 60
TUNED = "finetuning:{}:1"


def tune(run: Run, steps: tuple[int, ...], n: int = N) -> None:
    """Store three tasks: labels whose accuracy grows with the step, spans, and values."""
    for step in steps:
        random = np.random.default_rng(step)
        right = random.random(n) < 0.5 + 0.1 * STEPS.index(step)
        answers = [TaskAnswer("rte", 1, i, 1.0, float(right[i])) for i in range(n)]
        scores = [TaskScore("rte", 1, "model", "accuracy", float(right.mean()), n)]
        results.write(checkpoint_at(run, step), TUNED.format("rte"), Findings(task_scores=scores, answers=answers))
        words = np.where(np.arange(n) < n // 2, 0.6 + 0.4 * right, right)  # F1: half of the wrong answers overlap
        spans = [SpanAnswer("squad", 1, f"q{i:03}", 0, 1, float(right[i]), float(words[i])) for i in range(n)]
        scores = [TaskScore("squad", 1, "model", name, float(right.mean()), n) for name in ("exact", "f1")]
        results.write(checkpoint_at(run, step), TUNED.format("squad"), Findings(task_scores=scores, spans=spans))
        gold = np.random.default_rng(9).normal(size=n) ** 3  # with long tails, so that Spearman and Pearson differ
        noisy = gold + random.normal(size=n) ** 3 * (4.0, 2.0, 0.3, 0.4)[STEPS.index(step)]
        answers = [TaskAnswer("stsb", 1, i, float(gold[i]), float(noisy[i])) for i in range(n)]
        scores = [TaskScore("stsb", 1, "model", name, 0.5, n) for name in ("spearman", "pearson")]
        results.write(checkpoint_at(run, step), TUNED.format("stsb"), Findings(task_scores=scores, answers=answers))


@pytest.mark.parametrize("compacted", [False, True])
def test_reached_steps_equal_those_of_answers(run: Run, compacted: bool):
    """The steps come from pending evaluations or the summary, before and after a later step is compacted."""
    tune(run, STEPS[:-1])
    if compacted:
        results.compact(run)
    for _ in range(2):
        assert (run.results / IN_ANSWERS.file).exists() == (run.results / IN_SPANS.file).exists() == compacted
        table = results.read_reached(run, "rte", "accuracy")
        assert table == reached_steps(results.read_answers(run, "rte"), "accuracy") and None not in table
        of_spans = reached_steps(results.read_spans(run, "squad"), "exact")
        assert results.read_reached(run, "squad", "exact", spans=True) == of_spans == table
        tune(run, STEPS[-1:])
    if compacted:
        results.compact(run)
        assert results.read_reached(run, "rte", "accuracy") == reached_steps(
            results.read_answers(run, "rte"), "accuracy"
        )


def test_reached_steps_are_read_from_summary(run: Run, monkeypatch: pytest.MonkeyPatch):
    """No page should wait until bootstrap samples of the answers of a long series are drawn."""
    tune(run, STEPS)
    results.compact(run)
    expected = results.read_reached(run, "rte", "accuracy")
    monkeypatch.setattr("embryo_core.results.summaries.read_answers", None)
    assert results.read_reached(run, "rte", "accuracy") == expected


def test_reached_steps_differ_by_metric(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Exact match and F1 of spans, and Spearman and Pearson correlations, equal those computed from the answers."""
    tune(run, STEPS)
    spans, values = results.read_spans(run, "squad"), results.read_answers(run, "stsb")
    expected = [reached_steps(spans, name) for name in ("exact", "f1")]
    expected += [reached_steps(values, name) for name in ("spearman", "pearson")]
    results.compact(run)
    for name in ("read_answers", "read_spans"):
        monkeypatch.setattr(f"embryo_core.results.summaries.{name}", None)
    tables = [results.read_reached(run, "squad", name, spans=True) for name in ("exact", "f1")]
    tables += [results.read_reached(run, "stsb", name) for name in ("spearman", "pearson")]
    assert tables == expected and tables[0] != tables[1] and tables[2] != tables[3]


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_reached_steps_are_recomputed(run: Run, damage: str):
    """The next compaction writes the same bytes again."""
    tune(run, STEPS)
    results.compact(run)
    path = run.results / IN_ANSWERS.file
    whole, expected = path.read_bytes(), results.read_reached(run, "rte", "accuracy")
    lose(path, damage)
    assert results.read_reached(run, "rte", "accuracy") == expected
    results.compact(run)
    assert path.read_bytes() == whole


def test_task_with_changed_examples_is_refused_on_read(run: Run):
    """Compaction does not fail; reading explains that not all examples were answered at every step."""
    tune(run, STEPS[:-1])
    tune(run, STEPS[-1:], n=N - 1)
    results.compact(run)
    with pytest.raises(ResultsError, match="lack answers to examples"):
        results.read_reached(run, "rte", "accuracy")


def test_empty_run_has_no_reached_steps(run: Run):
    """No file is created."""
    assert results.read_reached(run, "rte", "accuracy") == [None, None] and not run.results.exists()
