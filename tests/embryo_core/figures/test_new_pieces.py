"""Tests of the accuracy on words with new vocabulary pieces, in the extended run and in the one that splits them."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.errors import FigureError
from embryo_core.figures import new_pieces
from embryo_core.figures.axis import AxisChoice
from embryo_core.measurements import Findings, Score, WordCount
from embryo_core.types import Run
from pretrain import tokenizer as tokenizers
from tests.conftest import checkpoint_at

AXIS = AxisChoice("log", "step", 1)
GROUPS = ("noun", "verb")
COUNTS = {  # by tag and word: n, and how many the run with new pieces and the other one get right
    ("NN", "Walker"): (6, 4, 1),
    ("NN", "river"): (10, 5, 6),
    ("NNS", "walkers"): (8, 2, 2),
    ("VBD", "outwalked"): (5, 5, 0),
    ("VBD", "is"): (20, 15, 14),
    ("IN", "of"): (30, 30, 29),
}
NEW = {"walker", "outwalked"}


def write(run: Run, place: int) -> None:
    """Write these counts at the last step; at step 8 every word is right."""
    for step, own in ((8, 0), (16, place)):
        word_counts = [WordCount("mask_prediction", tag, word, n[0], n[own]) for (tag, word), n in COUNTS.items()]
        scores = [Score("mask_prediction", 0.5, sum(n[0] for n in COUNTS.values()), "all")]
        results.write(
            checkpoint_at(run, step), "mask_prediction", Findings(scores=scores, words=word_counts), {"data": "t"}
        )


@pytest.fixture
def extended_run(own_run: Run) -> Run:
    """Return a copy of the run with two more words in its tokenizer; write results of both runs."""
    path = Path(shutil.copytree(own_run.path, own_run.path.with_name("extended")))
    folder = path / "tokenizer"
    tokenizers.extend(own_run.tokenizer, [" ".join(NEW)], len(NEW), folder)
    run = replace(runs.read_run(path), tokenizer_sha256=runs.sha256(folder / "tokenizer.json"))
    runs.write_run(run)
    write(own_run, 2)
    write(run, 1)
    return run


def test_new_and_other_words_are_counted_apart(extended_run: Run, own_run: Run):
    """Counts are by part of speech and overall, at the last step; the run with the old vocabulary has the same rows."""
    assert new_pieces.new_words(extended_run) == NEW and not new_pieces.new_words(own_run)
    figure = new_pieces.accuracy([own_run, extended_run], AXIS, "mask_prediction", GROUPS)
    table = figure.table.set_index(["run", "group", "words"])
    members = {"all": ("NN", "NNS", "VBD", "IN"), "noun": ("NN", "NNS"), "verb": ("VBD",)}
    for run, place in ((extended_run, 1), (own_run, 2)):
        for group, tags in members.items():
            for kind in (new_pieces.NEW_PIECES, new_pieces.OTHER_WORDS):
                own = [
                    n
                    for (tag, word), n in COUNTS.items()
                    if tag in tags and (word.lower() in NEW) == (kind == new_pieces.NEW_PIECES)
                ]
                row = table.loc[(run.name, group, kind)]
                assert row["n"] == sum(n[0] for n in own) and row["step"] == 16
                assert row["value"] == pytest.approx(sum(n[place] for n in own) / row["n"])
    assert "extended gets 81.8 % right" in figure.caption.summary and "2 pieces" in figure.caption.details


def test_runs_without_new_pieces_have_no_figure(own_run: Run):
    """The error names the run."""
    with pytest.raises(FigureError, match=own_run.name):
        new_pieces.accuracy([own_run], AXIS, "mask_prediction", GROUPS)
