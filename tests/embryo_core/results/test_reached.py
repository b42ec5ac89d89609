"""When a score reached most of its last value is read as it is computed from the answers, however they are stored."""

import numpy as np
import pytest

from embryo_core import results
from embryo_core.curves.reached import reached, reached_in_spans
from embryo_core.errors import ResultsError
from embryo_core.results.reached import IN_ANSWERS, IN_SPANS
from embryo_core.types import Answer, Findings, Run, SpanAnswer, TaskScore
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, lose

N = 60
TUNED = "finetuning:{}:1"


def tune(run: Run, steps: tuple[int, ...], n: int = N) -> None:
    """Store a task of labels, whose share of right answers grows with the step, and one of spans."""
    for step in steps:
        random = np.random.default_rng(step)
        right = random.random(n) < 0.5 + 0.1 * STEPS.index(step)
        answers = [Answer("rte", 1, i, 1.0, float(right[i])) for i in range(n)]
        scores = [TaskScore("rte", 1, "model", "accuracy", float(right.mean()), n)]
        results.write(at(run, step), TUNED.format("rte"), Findings(task_scores=scores, answers=answers))
        spans = [SpanAnswer("squad", 1, f"q{i:03}", 0, 1, float(right[i]), float(right[i])) for i in range(n)]
        scores = [TaskScore("squad", 1, "model", name, float(right.mean()), n) for name in ("exact", "f1")]
        results.write(at(run, step), TUNED.format("squad"), Findings(task_scores=scores, spans=spans))


@pytest.mark.parametrize("compacted", [False, True])
def test_it_is_what_the_answers_say(run: Run, compacted: bool):
    """From parts as from the summary, and once a later step has come, as a part beside the summary and in it."""
    tune(run, STEPS[:-1])
    if compacted:
        results.compact(run)
    for _ in range(2):
        assert (run.results / IN_ANSWERS.file).exists() == (run.results / IN_SPANS.file).exists() == compacted
        found = results.read_reached(run, "rte", "accuracy")
        assert found == reached(results.read_answers(run, "rte"), "accuracy") and None not in found
        of_spans = reached_in_spans(results.read_spans(run, "squad"), "exact")
        assert results.read_reached_in_spans(run, "squad", "exact") == of_spans == found
        tune(run, STEPS[-1:])
    if compacted:
        results.compact(run)
        assert results.read_reached(run, "rte", "accuracy") == reached(results.read_answers(run, "rte"), "accuracy")


def test_the_summary_is_read_and_not_the_answers(run: Run, monkeypatch: pytest.MonkeyPatch):
    """No page waits for the answers of a long series to be drawn from."""
    tune(run, STEPS)
    results.compact(run)
    expected = results.read_reached(run, "rte", "accuracy")
    monkeypatch.setattr("embryo_core.results.reached.read_answers", None)
    assert results.read_reached(run, "rte", "accuracy") == expected


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_summary_that_cannot_be_trusted_is_computed_anew(run: Run, damage: str):
    """And written again by the next compaction."""
    tune(run, STEPS)
    results.compact(run)
    path = run.results / IN_ANSWERS.file
    whole, expected = path.read_bytes(), results.read_reached(run, "rte", "accuracy")
    lose(path, damage)
    assert results.read_reached(run, "rte", "accuracy") == expected
    results.compact(run)
    assert path.read_bytes() == whole


def test_a_task_whose_steps_answered_other_examples_is_left_out_and_says_why(run: Run):
    """Compaction goes on with the others."""
    tune(run, STEPS[:-1])
    tune(run, STEPS[-1:], n=N - 1)
    results.compact(run)
    with pytest.raises(ResultsError, match="did not answer all examples"):
        results.read_reached(run, "rte", "accuracy")


def test_without_answers_nothing_was_reached(run: Run):
    """No task, no file."""
    assert results.read_reached(run, "rte", "accuracy") == [None, None] and not run.results.exists()
