"""Tests of the cache of frames: a frame is read once until files change, and callers cannot change cached frames."""

import gc
import weakref
from pathlib import Path

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.results import memo
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import find


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of tables read from files, in the order of reading."""
    read, names = results.read.read_table, []
    monkeypatch.setattr(
        "embryo_core.results.read.read_table",
        lambda *args, **options: names.append(args[1].name) or read(*args, **options),
    )
    return names


def test_frame_is_read_again_only_after_files_change(run: Run, reads: list[str]):
    """A pending evaluation and its compaction change files; other arguments are cached separately."""
    for change in (lambda: results.write(checkpoint_at(run, 0), "m", find("m", 0)), lambda: results.compact(run)):
        change()
        reads.clear()
        frames = [results.read_scores(run, "m"), results.read_scores(run, iter(["m"])), results.read_scores(run, ["m"])]
        assert len(frames[0]) == 4 and all(frame.equals(frames[0]) for frame in frames)
        assert reads == ["scores"] * 2
        assert results.read_scores(run, "n").empty
        assert len(reads) == 3


@pytest.mark.parametrize("linked", ["parts", "parts/m", "parts/m/step0"])
def test_link_among_pending_evaluations_is_not_followed(run: Run, tmp_path: Path, linked: str):
    """It could lead to the root of the file system, which takes minutes to list; readers refuse it."""
    others = tmp_path / "outside" / "other" / "step0"
    others.mkdir(parents=True)
    (others / "mine.txt").touch()
    link = run.results / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside")
    assert str(link) in str(memo.results_state(run)) and "mine" not in str(memo.results_state(run))
    assert "other" not in str(memo.results_state(run))


def test_callers_cannot_change_cached_frame(run: Run):
    """Changes of values, columns or index affect only the caller's copy."""
    results.write(checkpoint_at(run, 0), "m", find("m", 0))
    expected = results.read_scores(run).copy(deep=True)
    frame = results.read_scores(run)
    frame.loc[0, "value"] = -1.0
    frame["value"] += 1
    frame["more"] = 1
    frame.index = frame.index + 5
    frame.sort_values("value", inplace=True)
    pd.testing.assert_frame_equal(results.read_scores(run), expected)


def test_weak_references_to_copies_do_not_accumulate(run: Run):
    """Each copy leaves weak references in the cached frame; pandas removes dead ones once a block has 500."""
    results.write(checkpoint_at(run, 0), "m", find("m", 0))
    before = _dead_references()
    for _ in range(450):
        results.read_scores(run)
    assert _dead_references() < before + 800


def _dead_references() -> int:
    gc.collect()
    return sum(type(object_) is weakref.ref and object_() is None for object_ in gc.get_objects())


def test_large_or_evicted_frames_are_read_again(run: Run, reads: list[str], monkeypatch: pytest.MonkeyPatch):
    """A frame above MAX_FRAME_BYTES is not cached; smaller ones are evicted above MAX_BYTES."""
    results.write(checkpoint_at(run, 0), "m", find("m", 0))
    monkeypatch.setattr(memo, "MAX_FRAME_BYTES", 10)
    results.read_scores(run)
    results.read_scores(run)
    assert len(reads) == 2
    monkeypatch.setattr(memo, "MAX_FRAME_BYTES", memo.MAX_CACHE_BYTES)
    size = results.read_scores(run).memory_usage(deep=True).sum()
    monkeypatch.setattr(memo, "MAX_CACHE_BYTES", 2 * size)
    reads.clear()
    for metric in ("m", None, "m", "none", None):
        results.read_scores(run, metric)
    assert len(reads) >= 2
