"""Pages take turns to be drawn, one at a time: several at once slow one another and every answer.

A page steps aside while it waits for what takes long, so that others are drawn meanwhile. While it is drawn, the files
of its runs count as they were at first; without that, it would list a long series again and again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from embryo_core.runs import one_look

_place = Lock()  # of the page that is drawn
_own = local()  # `held`: whether this thread has the place


@contextmanager
def drawing() -> Iterator[None]:
    """Wait for a place, and draw a page within it, or a part of one; a thread that has a place keeps it."""
    if getattr(_own, "held", False):
        yield
        return
    _take()
    try:
        with one_look():
            yield
    finally:
        _give_back()


@contextmanager
def aside() -> Iterator[None]:
    """Leave the place to others, and wait for one again at the end; a thread that has none goes on as it is.

    Whoever waits for what another page computes steps aside too, so that the other finds a place to go on.
    """
    if not getattr(_own, "held", False):
        yield
        return
    _give_back()
    try:
        yield
    finally:
        _take()


def _take() -> None:
    _place.acquire()
    _own.held = True


def _give_back() -> None:
    _own.held = False
    _place.release()
