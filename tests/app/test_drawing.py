"""One page is drawn at a time; one that waits steps aside for others."""

import threading

import pytest

from app import drawing
from app.caching import cached
from app.views import overview
from embryo_core.types import Run
from tests.app.conftest import Dashboard


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> threading.Lock:
    """A place of this test alone."""
    own = threading.Lock()
    monkeypatch.setattr(drawing, "_place", own)
    return own


def free(place: threading.Lock) -> bool:
    """Whether another page could be drawn now."""
    return not place.locked()


def test_a_page_keeps_its_place_until_it_is_drawn(place: threading.Lock) -> None:
    """Whether it ends as it should or not."""
    with pytest.raises(KeyError), drawing.drawing():
        assert not free(place)
        raise KeyError
    assert free(place)


def test_a_part_of_a_page_is_drawn_in_the_place_of_its_page(place: threading.Lock) -> None:
    """It waits for none of its own, which would be for ever, and leaves the page its place."""
    with drawing.drawing():
        with drawing.drawing():
            pass
        assert not free(place)
    assert free(place)


def test_who_waits_steps_aside(place: threading.Lock) -> None:
    """What has a spinner is read without a place, and so is what others read; afterwards the page has one again."""
    slow = cached(lambda run: (), 1, "Reading")(lambda run: free(place))
    quick = cached(lambda run: (), 1)(lambda run: free(place))
    run = Run("slow", None, "", "", {}, "", {}, (), "")
    with drawing.drawing():
        assert slow(run) and not quick(run)
        assert not free(place)
    with drawing.aside():  # outside a page
        assert free(place)
    assert free(place)


def test_each_page_has_a_place_while_it_is_drawn(
    place: threading.Lock, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And gives it back."""
    seen = []
    monkeypatch.setattr(overview, "show", lambda: seen.append(free(place)))
    dashboard.open("overview")
    assert seen == [False] and free(place)
