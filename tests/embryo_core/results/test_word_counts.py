"""The counts of words are those of the last step, whatever became of their file."""

from dataclasses import replace

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.results.word_counts import COLUMNS, COUNTS
from embryo_core.types import Run
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, find, lose


def counted(run: Run) -> pd.DataFrame:
    """The words of the last step as they are stored."""
    return results.read_words(run, "mask_prediction", step=max(results.done(run)["mask_prediction"]))[COLUMNS]


def write(run: Run, steps: tuple[int, ...]) -> None:
    """Store the words of a metric at these steps, as parts, and what another metric has without words.

    Counts grow with the step, as no treebank's do, so that those of one step are no other's.
    """
    for step in steps:
        found = find("mask_prediction", step, seed=step)
        found.words = [replace(word, n=word.n + step) for word in found.words]
        results.write(at(run, step), "mask_prediction", found)
        results.write(at(run, step), "attention", find("attention", step))


@pytest.mark.parametrize("compacted", [False, True])
def test_words_are_counted_at_the_last_step(run: Run, compacted: bool):
    """From parts as from the summary, and again once a later step has come."""
    for steps in (STEPS[:2], STEPS[2:]):
        write(run, steps)
        if compacted:
            results.compact(run)
        assert (run.results / COUNTS.file).exists() == compacted
        assert not counted(run).empty
        pd.testing.assert_frame_equal(results.read_word_counts(run, "mask_prediction"), counted(run))
    assert results.read_word_counts(run, "attention").empty


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_summary_that_cannot_be_trusted_is_computed_anew(run: Run, damage: str):
    """And written again by the next compaction, which finds no parts."""
    write(run, STEPS)
    results.compact(run)
    path = run.results / COUNTS.file
    whole = path.read_bytes()
    lose(path, damage)
    pd.testing.assert_frame_equal(results.read_word_counts(run, "mask_prediction"), counted(run))
    results.compact(run)
    assert path.read_bytes() == whole


def test_without_words_there_are_no_counts(run: Run):
    """An empty frame with all columns, and no file."""
    assert list(results.read_word_counts(run, "mask_prediction")) == COLUMNS
    assert results.read_word_counts(run, "mask_prediction").empty and not run.results.exists()
