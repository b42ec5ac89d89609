"""Tests of snapshots, within which a run's files are read once."""

from importlib import import_module

import pytest

from embryo_core import runs
from embryo_core.types import Run

snapshots = import_module("embryo_core.runs.snapshot")  # runs.snapshot is the function of that name


def test_snapshot_lists_checkpoints_once(own_run: Run):
    """A folder removed during the snapshot is still listed there, but not in the next one."""
    with runs.snapshot():
        before = runs.checkpoints(own_run)
        _remove(own_run, 8)
        assert runs.checkpoints(own_run) == before
    with runs.snapshot():
        assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]


def test_listing_is_fresh_without_snapshot(own_run: Run):
    """A program that only calls functions never sees an outdated state."""
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    _remove(own_run, 8)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]


def test_nested_snapshot_joins_outer_one(own_run: Run):
    """What was read is kept until the outer snapshot ends."""
    with runs.snapshot():
        with runs.snapshot():
            runs.checkpoints(own_run)
        _remove(own_run, 8)
        assert len(runs.checkpoints(own_run)) == 3
    assert len(runs.checkpoints(own_run)) == 2


def test_callers_cannot_change_cached_list(own_run: Run):
    """Each caller gets a separate list."""
    with runs.snapshot():
        runs.checkpoints(own_run).clear()
        assert len(runs.checkpoints(own_run)) == 3


def test_results_are_cached_per_run_and_failures_are_not(own_run: Run, tiny_run: Run):
    """A function that raised is called again; afterwards it is called once for each run."""
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


def test_snapshot_may_reuse_recent_reads(own_run: Run, clock: list[float]):
    """snapshot(seconds) reuses what was read within that time before it; snapshot() always reads again."""
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


def test_plain_snapshot_shares_nothing(own_run: Run, clock: list[float]):
    """Only snapshots with a maximum age share what they read."""
    with runs.snapshot():
        assert len(runs.checkpoints(own_run)) == 3
    _remove(own_run, 8)
    with runs.snapshot(1):
        assert len(runs.checkpoints(own_run)) == 2


def test_shared_reads_are_bounded(own_run: Run, clock: list[float], monkeypatch: pytest.MonkeyPatch):
    """A server that shows ever more runs keeps at most MAX_RECENT reads."""
    monkeypatch.setattr(snapshots, "MAX_RECENT", 2)
    for _ in range(5):
        with runs.snapshot(1):
            runs.read_once(lambda run: run.name)(own_run)
            assert len(snapshots._recent) <= 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time that snapshots see, in seconds; a test may change it. Nothing has been read before."""
    now = [100.0]
    monkeypatch.setattr(snapshots, "monotonic", lambda: now[0])
    monkeypatch.setattr(snapshots, "_recent", {})
    return now


def _remove(run: Run, step: int) -> None:
    folder = run.path / "checkpoints" / f"step{step}"
    folder.rename(folder.with_name(f"{folder.name}.tmp"))
