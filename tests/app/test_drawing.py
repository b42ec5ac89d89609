"""Tests of the lock under which one page is drawn at a time, and which a waiting page releases."""

import threading
from importlib import import_module

import pytest

from app import drawing
from app.caching import cached
from app.views import overview
from embryo_core import runs
from embryo_core.types import Run
from tests.app.conftest import Dashboard

snapshots = import_module("embryo_core.runs.snapshot")  # runs.snapshot is its function


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> threading.Lock:
    """Replace the global lock by one that only this test uses."""
    own = threading.Lock()
    monkeypatch.setattr(drawing, "_lock", own)
    return own


def free(lock: threading.Lock) -> bool:
    """Return whether another page could be drawn now."""
    return not lock.locked()


def test_page_holds_lock_until_drawn(lock: threading.Lock) -> None:
    """A page that fails releases the lock too."""
    with pytest.raises(KeyError), drawing.drawing():
        assert not free(lock)
        raise KeyError
    assert free(lock)


def test_part_of_page_reuses_lock_of_its_page(lock: threading.Lock) -> None:
    """Acquiring the lock again would deadlock, and the page still holds it after its part has been drawn."""
    with drawing.drawing():
        with drawing.drawing():
            pass
        assert not free(lock)
    assert free(lock)


def test_slow_read_releases_lock(lock: threading.Lock) -> None:
    """A read with a spinner releases the lock, another read does not; afterwards the page holds the lock again."""
    slow = cached(lambda run: (), 1, "Reading")(lambda run: free(lock))
    quick = cached(lambda run: (), 1)(lambda run: free(lock))
    run = Run("slow", None, "", "", {}, "", {}, (), "")
    with drawing.drawing():
        assert slow(run) and not quick(run)
        assert not free(lock)
    with drawing.lock_released():  # outside a page
        assert free(lock)
    assert free(lock)


def test_page_waits_for_another_for_limited_time(
    lock: threading.Lock, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one page blocks, another is drawn after MAX_WAIT seconds, although it does not hold the lock."""
    monkeypatch.setattr(drawing, "MAX_WAIT", 0.05)
    entered, go_on = threading.Event(), threading.Event()

    def block() -> None:
        with drawing.drawing():
            entered.set()
            go_on.wait(60)

    blocked = threading.Thread(target=block)
    blocked.start()
    assert entered.wait(60)
    seen = []
    monkeypatch.setattr(overview, "show", lambda: seen.append(free(lock)))
    dashboard.open("overview")
    with drawing.drawing(), drawing.drawing(), drawing.lock_released():
        seen.append(free(lock))
    assert seen == [False, False] and blocked.is_alive()
    go_on.set()
    blocked.join()
    assert free(lock)
    with drawing.drawing():
        assert not free(lock)


def test_dashboard_draws_pages_under_lock(
    lock: threading.Lock, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is taken while `show` runs and free afterwards."""
    seen = []
    monkeypatch.setattr(overview, "show", lambda: seen.append(free(lock)))
    dashboard.open("overview")
    assert seen == [False] and free(lock)


def test_pages_share_file_listing_for_a_moment(
    lock: threading.Lock, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For SEEN_FOR seconds a page sees the checkpoints listed before, since listing a long series is slow."""
    monkeypatch.setattr(drawing, "SEEN_FOR", 1.0)
    now = [100.0]
    monkeypatch.setattr(snapshots, "monotonic", lambda: now[0])
    monkeypatch.setattr(snapshots, "_recent", {})
    seen = []
    for seconds in (0, 0.9, 0.2):
        now[0] += seconds
        with drawing.drawing():
            seen.append(len(runs.checkpoints(own_run)))
        if len(seen) == 1:
            (own_run.path / "checkpoints" / "step8").rename(own_run.path / "step8")
    assert seen == [3, 3, 2]
