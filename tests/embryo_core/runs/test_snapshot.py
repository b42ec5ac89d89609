"""Within one snapshot a run's files are as they were at first; after it they are as they are."""

from importlib import import_module

import pytest

from embryo_core import runs
from embryo_core.types import Run

snapshots = import_module("embryo_core.runs.snapshot")  # runs.snapshot is its function


def test_within_a_snapshot_checkpoints_are_listed_once(own_run: Run):
    """A folder that goes meanwhile is still listed, and is gone in the next snapshot."""
    with runs.snapshot():
        before = runs.checkpoints(own_run)
        _remove(own_run, 8)
        assert runs.checkpoints(own_run) == before
    with runs.snapshot():
        assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]


def test_without_a_snapshot_every_listing_is_new(own_run: Run):
    """A program that only calls functions never sees an old state."""
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    _remove(own_run, 8)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]


def test_a_snapshot_within_another_goes_on_with_it(own_run: Run):
    """The outer one ends it."""
    with runs.snapshot():
        with runs.snapshot():
            runs.checkpoints(own_run)
        _remove(own_run, 8)
        assert len(runs.checkpoints(own_run)) == 3
    assert len(runs.checkpoints(own_run)) == 2


def test_a_list_that_its_receiver_changes_stays_as_it_was(own_run: Run):
    """Each caller gets a separate list."""
    with runs.snapshot():
        runs.checkpoints(own_run).clear()
        assert len(runs.checkpoints(own_run)) == 3


def test_runs_and_functions_are_shown_apart_and_failures_are_tried_again(own_run: Run, tiny_run: Run):
    """What one function found of one run says nothing about another run or function."""
    calls = []

    @runs.read_once
    def name(run: Run) -> str:
        calls.append(run.path)
        if len(calls) == 1:
            raise OSError("not yet")
        return str(run.path)

    with runs.snapshot():
        with pytest.raises(OSError, match="not yet"):
            name(own_run)
        assert [name(own_run), name(own_run), name(tiny_run)] == [str(own_run.path)] * 2 + [str(tiny_run.path)]
    assert calls == [own_run.path, own_run.path, tiny_run.path]


def test_what_was_seen_a_moment_ago_counts_in_the_next_snapshot(own_run: Run, clock: list[float]):
    """For as many seconds as that asks for, counted from when it was read; a plain one looks itself."""
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 3
    _remove(own_run, 8)
    clock[0] += 0.6
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 3
    with runs.snapshot(0.5):
        assert len(runs.checkpoints(own_run)) == 2
    _remove(own_run, 16)
    clock[0] += 0.6
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 2
    with runs.snapshot():
        assert len(runs.checkpoints(own_run)) == 1
    assert len(runs.checkpoints(own_run)) == 1
    clock[0] += 0.6
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 1


def test_a_plain_snapshot_leaves_nothing_to_others(own_run: Run, clock: list[float]):
    """Only those that may be late share what they read."""
    with runs.snapshot():
        assert len(runs.checkpoints(own_run)) == 3
    _remove(own_run, 8)
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 2


def test_what_is_kept_for_others_is_bounded(own_run: Run, clock: list[float], monkeypatch: pytest.MonkeyPatch):
    """A server that shows ever more runs forgets them."""
    monkeypatch.setattr(snapshots, "MAX_RECENT", 2)
    for _ in range(5):
        with runs.snapshot(1):
            runs.read_once(lambda run: run.name)(own_run)
            assert len(snapshots._recent) <= 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time that snapshots see; before it nothing was read."""
    now = [100.0]
    monkeypatch.setattr(snapshots, "monotonic", lambda: now[0])
    monkeypatch.setattr(snapshots, "_recent", {})
    return now


def _remove(run: Run, step: int) -> None:
    folder = run.path / "checkpoints" / f"step{step}"
    folder.rename(folder.with_name(f"{folder.name}.tmp"))
