"""Answers and traces in the terminal say what the functions behind them found."""

from dataclasses import replace

import pytest

from embryo_core import query
from embryo_core.errors import QueryError
from embryo_core.query import report
from embryo_core.query.report import report_answers, report_trace
from embryo_core.query.trace import trace
from embryo_core.types import Run


def test_answers_at_one_step(tiny_run: Run) -> None:
    """One line per prediction, in the order of ranks."""
    (expected,) = query.answer(tiny_run, "a [MASK] .", 8, k=3).masks
    lines = report_answers(tiny_run, "a [mask] .", 8, k=3).splitlines()
    assert lines[0] == "tiny, step 8: a [MASK] ."
    assert [line.split() for line in lines[3:]] == [[str(p.rank), f"{p.probability:.4%}", p.token] for p in expected]


def test_several_masks(tiny_run: Run) -> None:
    """The joint answers come first, then a list for each mask."""
    text = report_answers(tiny_run, "[MASK] and [MASK]", 16)
    assert text.index("All masks together") < text.index("[MASK] 1, given") < text.index("[MASK] 2, given")


def test_trace(tiny_run: Run) -> None:
    """One line per step with its best answer, then the sentence on the final answer."""
    (history,) = trace(tiny_run, "a [MASK] .").masks
    lines = report_trace(tiny_run, "a [MASK] .").splitlines()
    assert [line.split()[:2] for line in lines[3:6]] == [
        [str(s), t] for s, t in zip((0, 8, 16), history.leaders, strict=True)
    ]
    assert lines[-1] == (
        f"{history.leaders[-1]!r} first leads at step {history.first_led:,}, for good from step {history.leads_from:,}."
    )
    assert "All masks together" in report_trace(tiny_run, "[MASK] and [MASK]")


def test_columns_are_as_wide_as_their_numbers(tiny_run: Run) -> None:
    """Steps may count tokens."""
    (history,) = trace(tiny_run, "a [MASK] .").masks
    *table, _ = report._history(tiny_run, (0, 8, 400_000_000_000), history).splitlines()
    assert len({len(line) for line in table}) == 1


def test_a_run_that_counts_words_says_so(tiny_run: Run) -> None:
    """In every report: at one step, at all, of a tracked word, and of the layers."""
    run, text = replace(tiny_run, counted_in="words"), "a [MASK] ."
    assert report_answers(run, text, 8).startswith("tiny, 8 words: ")
    assert report.report_lens(run, text, step=8).startswith("tiny, 8 words, layers")
    (history,) = trace(run, text).masks
    for told in (report_trace(run, text), report.report_track(run, text, "cat"), report.report_lens(run, text)):
        assert any(line.split()[:1] == ["words"] for line in told.splitlines()) and "step" not in told
    first, good = history.first_led, history.leads_from
    assert report_trace(run, text).endswith(f"first leads at {first:,} words, for good from {good:,} words.")


def test_bad_text(tiny_run: Run) -> None:
    """A text without [MASK] is refused as everywhere."""
    with pytest.raises(QueryError, match="no \\[MASK\\]"):
        report_trace(tiny_run, "nothing")
