"""One page is drawn at a time; one that waits releases the lock for others."""

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
    """Make a lock of this test alone."""
    own = threading.Lock()
    monkeypatch.setattr(drawing, "_lock", own)
    return own


def free(lock: threading.Lock) -> bool:
    """Whether another page could be drawn now."""
    return not lock.locked()


def test_a_page_keeps_its_turn_until_it_is_drawn(lock: threading.Lock) -> None:
    """Whether it ends as it should or not."""
    with pytest.raises(KeyError), drawing.drawing():
        assert not free(lock)
        raise KeyError
    assert free(lock)


def test_a_part_of_a_page_is_drawn_in_the_turn_of_its_page(lock: threading.Lock) -> None:
    """It waits for none of its own, which would be for ever, and leaves the page its turn."""
    with drawing.drawing():
        with drawing.drawing():
            pass
        assert not free(lock)
    assert free(lock)


def test_waiting_releases_the_lock(lock: threading.Lock) -> None:
    """What has a spinner is read outside the page's turn, other reads are not; afterwards the page has a turn again."""
    slow = cached(lambda run: (), 1, "Reading")(lambda run: free(lock))
    quick = cached(lambda run: (), 1)(lambda run: free(lock))
    run = Run("slow", None, "", "", {}, "", {}, (), "")
    with drawing.drawing():
        assert slow(run) and not quick(run)
        assert not free(lock)
    with drawing.lock_released():  # outside a page
        assert free(lock)
    assert free(lock)


def test_a_page_waits_for_another_for_a_limited_time(
    lock: threading.Lock, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the page of a run blocks, that of another is drawn beside it; its waiting at several places is summed."""
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


def test_each_page_has_its_turn_while_it_is_drawn(
    lock: threading.Lock, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gives it back."""
    seen = []
    monkeypatch.setattr(overview, "show", lambda: seen.append(free(lock)))
    dashboard.open("overview")
    assert seen == [False] and free(lock)


def test_a_page_sees_files_as_the_one_before_it_for_a_moment(
    lock: threading.Lock, own_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For SEEN_FOR seconds, in which a long series would be listed again for each answer; then as they are."""
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
