"""What changed in the course of a pretraining is read off its card."""

from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.types import Change, Origin, Run

ORIGIN = Origin("first", 100, 800, 20_000, "0" * 64, (Change(40, "sequences of 128 tokens"),))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, ()),
        ({"steps": 16, "short_steps": 8}, (Change(8, "sequences of 32 tokens"),)),
        ({"steps": 16, "constant_steps": 12}, (Change(12, "learning rate falls"),)),
        ({"steps": 16, "short_steps": 16, "constant_steps": 16}, ()),
    ],
    ids=str,
)
def test_phases_of_length_and_rate_are_changes(tiny_run: Run, settings: dict, message: tuple):
    """Where the second phase begins; a phase as long as the run has no second."""
    phases = {"short_batch_size": 8, "short_sequence_length": 16}
    assert runs.changes(replace(tiny_run, config=tiny_run.config | phases | settings)) == message


def test_a_continued_run_has_the_changes_of_the_first_and_its_own(tiny_run: Run):
    """Its text is another from its start on, and its phases count from there."""
    sources = [{"name": "a.txt"}, {"name": "b.txt"}, {"name": "c.txt"}]
    config = tiny_run.config | {"constant_steps": 10, "steps": 16}
    run = replace(tiny_run, origin=ORIGIN, config=config, corpus=tiny_run.corpus | {"sources": sources})
    assert runs.changes(run) == (
        Change(40, "sequences of 128 tokens"),
        Change(100, "corpus: a.txt and 2 more"),
        Change(110, "learning rate falls"),
    )


def test_a_run_that_goes_on_with_the_same_text_has_no_other(tiny_run: Run):
    """Its origin tells what began there; then no mark says that the text is another."""
    begun = Change(100, "same text, new warm-up")
    run = replace(tiny_run, origin=replace(ORIGIN, changes=(*ORIGIN.changes, begun)))
    assert runs.changes(run) == (*ORIGIN.changes, begun)


def test_the_origin_is_kept_in_run_json(own_run: Run):
    """Written and read again, it is the same; one that is none breaks the run."""
    run = replace(own_run, origin=ORIGIN)
    runs.write_run(run)
    assert runs.read_run(run.path) == run
    card = run.path / "run.json"
    card.write_text(card.read_text().replace('"step": 100', '"step": -1'))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(run.path)
