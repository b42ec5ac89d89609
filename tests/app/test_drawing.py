"""Few pages are drawn at once; one that waits steps aside for others."""

import threading

import pytest

from app import drawing
from app.results import cached
from app.views import overview
from embryo_core.types import Run
from tests.app.conftest import Dashboard


@pytest.fixture(autouse=True)
def one_place(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """A single place, so that it is seen who has it."""
    places = threading.Semaphore(1)
    monkeypatch.setattr(drawing, "_places", places)
    return places


def free(places: threading.Semaphore) -> bool:
    """Whether another page could be drawn now."""
    if found := places.acquire(blocking=False):
        places.release()
    return found


def test_a_page_keeps_its_place_until_it_is_drawn(one_place: threading.Semaphore) -> None:
    """Whether it ends as it should or not."""
    with pytest.raises(KeyError), drawing.drawing():
        assert not free(one_place)
        raise KeyError
    assert free(one_place)


def test_a_part_of_a_page_is_drawn_in_the_place_of_its_page(one_place: threading.Semaphore) -> None:
    """It waits for none of its own, which would be for ever, and leaves the page its place."""
    with drawing.drawing():
        with drawing.drawing():
            pass
        assert not free(one_place)
    assert free(one_place)


def test_who_waits_steps_aside(one_place: threading.Semaphore) -> None:
    """What has a spinner is read without a place, and so is what others read; afterwards the page has one again."""
    slow = cached(lambda run: (), 1, "Reading")(lambda run: free(one_place))
    quick = cached(lambda run: (), 1)(lambda run: free(one_place))
    run = Run("slow", None, "", "", {}, "", {}, (), "")
    with drawing.drawing():
        assert slow(run) and not quick(run)
        assert not free(one_place)
    with drawing.aside():  # outside a page
        assert free(one_place)
    assert free(one_place)


def test_each_page_has_a_place_while_it_is_drawn(
    one_place: threading.Semaphore, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gives it back."""
    seen = []
    monkeypatch.setattr(overview, "show", lambda: seen.append(free(one_place)))
    dashboard.open("overview")
    assert seen == [False] and free(one_place)
