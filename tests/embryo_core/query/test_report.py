"""Answers and traces in the terminal say what the functions behind them found."""

from dataclasses import replace

import pytest

from embryo_core import query
from embryo_core.errors import QueryError
from embryo_core.query import report
from embryo_core.query.lens import lens
from embryo_core.query.report import report_answers, report_trace
from embryo_core.query.trace import trace
from embryo_core.query.track import track
from embryo_core.types import Run, StepUnit

ONE = "The cat sat on the [MASK] ."


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


def test_a_trace_has_the_chances_of_the_leader_and_those_and_ranks_of_the_final_answer(tiny_run: Run) -> None:
    """Step by step, though another answer leads at some."""
    (history,) = trace(tiny_run, ONE).masks
    by_token = {candidate.token: candidate for candidate in history.candidates}
    final = by_token[history.leaders[-1]]
    assert len(set(history.leaders)) > 1
    rows = [line.split() for line in report_trace(tiny_run, ONE).splitlines()[3:6]]
    for i, (step, leader) in enumerate(zip((0, 8, 16), history.leaders, strict=True)):
        chances = [f"{candidate.probabilities[i]:.4%}" for candidate in (by_token[leader], final)]
        assert rows[i] == [str(step), leader, *chances, f"{final.ranks[i]:,}"]


def test_a_tracked_word_has_its_chance_and_rank_at_each_step(tiny_run: Run) -> None:
    """To three digits; of several pieces the rank is at least the one shown."""
    for word in ("cat", "rivers"):
        found = track(tiny_run, ONE, word)
        head, *rows = [line.split() for line in report.report_track(tiny_run, ONE, word).splitlines()[-4:]]
        assert head == ["step", "probability", "rank"]
        for i, (step, probability, *rank) in enumerate(rows):
            assert (step, probability) == (str(found.steps[i]), f"{found.probabilities[i]:.3g}")
            assert " ".join(rank) == query.spell_rank(found.ranks[i], found.exact[i])
        assert len({(row[1], row[-1]) for row in rows}) == 3


def test_layers_are_numbered_and_have_their_answers(tiny_run: Run) -> None:
    """The best at every step, a column for each layer; the best of one step, a line for each layer."""
    every, one = lens(tiny_run, ONE, k=1), lens(tiny_run, ONE, k=2, steps=[8])

    def cells(predictions) -> list[str]:
        return [text for each in predictions for text in (each.token, f"{each.probability:.1%}")]

    head, *rows = [line.split() for line in report.report_lens(tiny_run, ONE).splitlines()[-4:]]
    assert head == ["step", "embeddings", "layer", "1", "layer", "2"]
    assert rows == [
        [str(step), *cells(best for (best,) in layers)] for step, layers in zip((0, 8, 16), every.cells, strict=True)
    ]
    head, *rows = [line.split() for line in report.report_lens(tiny_run, ONE, step=8, k=2).splitlines()[-4:]]
    assert head == ["layer", "1", "2"]
    assert rows == [[str(layer), *cells(best)] for layer, best in enumerate(one.cells[0])]


def test_columns_are_as_wide_as_their_numbers(tiny_run: Run) -> None:
    """Steps may count tokens."""
    (history,) = trace(tiny_run, "a [MASK] .").masks
    *table, _ = report._history(tiny_run, (0, 8, 400_000_000_000), history).splitlines()
    assert len({len(line) for line in table}) == 1


def test_a_run_that_counts_words_says_so(tiny_run: Run) -> None:
    """In every report: at one step, at all, of a tracked word, and of the layers."""
    run, text = replace(tiny_run, step_unit=StepUnit.WORDS), "a [MASK] ."
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
