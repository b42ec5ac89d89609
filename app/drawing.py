"""The lock of drawing: one page is drawn at a time, since concurrent rendering slows every page and query.

A page steps aside while it waits for something slow, so that others are drawn meanwhile, and waits for others at most
MAX_WAIT seconds in all: then it is drawn beside them, as the page of a damaged run may take minutes. While a page is
drawn, it sees the files of its runs as they were at first, or as the page before saw them less than a second ago;
otherwise each page would list a long series again and again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from time import monotonic

from embryo_core.engine.cache import return_memory
from embryo_core.runs import snapshot

SEEN_FOR = 1.0  # seconds for which the next pages see the files of a run as one page saw them
MAX_WAIT = 2.0  # seconds that a page waits for other pages
TRIM_EVERY = 10.0  # seconds after which a page, once drawn, returns free memory to the system; it takes 10 ms

_lock = Lock()  # held by the page that is drawn
_trimmed = [0.0]  # when a page returned free memory last
_own = local()  # of a thread that draws: `held`, whether it holds the lock, and `patience`, the seconds it still waits


@contextmanager
def drawing() -> Iterator[None]:
    """Wait for this page's turn, then draw it or a part of it; a thread that already draws continues."""
    if is_drawing():
        yield
        return
    _own.patience = MAX_WAIT
    _acquire()
    try:
        with snapshot(SEEN_FOR):
            yield
    finally:
        _release()
        del _own.held
    if monotonic() - _trimmed[0] > TRIM_EVERY:
        _trimmed[0] = monotonic()
        return_memory()


def is_drawing() -> bool:
    """Whether this thread draws a page or a part of it."""
    return hasattr(_own, "held")


@contextmanager
def aside() -> Iterator[None]:
    """Let other pages be drawn until the block ends, then wait for a turn again; does nothing without a turn.

    A page that waits for the result of another thread has to step aside, or that thread could never go on.
    """
    if not getattr(_own, "held", False):
        yield
        return
    _release()
    try:
        yield
    finally:
        _acquire()


def _acquire() -> None:
    began = monotonic()
    _own.held = _lock.acquire(timeout=_own.patience)
    _own.patience = max(0.0, _own.patience - (monotonic() - began))


def _release() -> None:
    if _own.held:
        _own.held = False
        _lock.release()
