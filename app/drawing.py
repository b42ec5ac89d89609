"""The lock of drawing: one page is drawn at a time, since concurrent rendering slows every page and query.

A page releases the lock while it waits for something slow, so that others are drawn meanwhile. It waits for others at
most MAX_WAIT seconds in all and is then drawn at the same time, since the page of a damaged run may take minutes. While
a page is drawn, it sees the files of its runs as they were when it began, or as the previous page saw them less than a
second ago; otherwise each page would list a long series repeatedly.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from time import monotonic

from embryo_core.engine.cache import return_memory
from embryo_core.runs import snapshot

SEEN_FOR = 1.0  # seconds for which the next pages reuse the list of a run's files
MAX_WAIT = 2.0  # seconds that a page waits for other pages
TRIM_EVERY = 10.0  # seconds between two returns of free memory to the system, after a page; each takes 10 ms

_lock = Lock()  # held by the page that is being drawn
_trimmed = [0.0]  # when free memory was last returned
_own = local()  # per thread: `held`, whether it holds the lock, and `patience`, the seconds that it still waits


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
def lock_released() -> Iterator[None]:
    """Release the lock until the block ends, then wait for it again; does nothing if this thread does not hold it.

    A page that waits for the result of another thread must release it: that thread may need the lock to continue.
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
