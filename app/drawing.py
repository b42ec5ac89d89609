"""Pages are drawn one at a time: several at once slow one another and every answer.

A page steps aside while it waits for what takes long, so that others are drawn meanwhile. While it is drawn, the files
of its runs count as they were at first, and as the page before it saw them if that was less than a second ago; without
that, each would list a long series again and again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from embryo_core.runs import snapshot

SEEN_FOR = 1.0  # seconds for which what a page saw of a run's files counts for the next ones

_lock = Lock()  # held by the page that is drawn
_own = local()  # `held`: whether this thread holds the lock


@contextmanager
def drawing() -> Iterator[None]:
    """Wait for this page's turn, and draw it or a part of it; a thread whose turn it is goes on."""
    if getattr(_own, "held", False):
        yield
        return
    _take()
    try:
        with snapshot(SEEN_FOR):
            yield
    finally:
        _give_back()


@contextmanager
def aside() -> Iterator[None]:
    """Let other pages be drawn until the block ends, then wait for a turn again; without a turn nothing changes.

    A page that waits for what another computes steps aside too, or the other could never go on.
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
    _lock.acquire()
    _own.held = True


def _give_back() -> None:
    _own.held = False
    _lock.release()
