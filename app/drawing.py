"""The drawing lock: one page is drawn at a time, since concurrent rendering slows every page and query.

A page releases the lock while it waits for something slow, so that other pages are drawn meanwhile. It waits for the
lock at most MAX_WAIT seconds in all, and is then drawn without it, since the page of a damaged run may take minutes.
While a page is drawn, it sees the files of its runs as they were when it began, or as an earlier page saw them at most
SEEN_FOR seconds ago; otherwise each page would list the files of a long series repeatedly.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from time import monotonic

from embryo_core.engine.cache import return_memory
from embryo_core.runs import snapshot

SEEN_FOR = 1.0  # seconds for which later pages reuse the list of a run's files
MAX_WAIT = 2.0  # seconds that a page waits for the lock in all
TRIM_EVERY = 10.0  # minimum seconds between returns of free memory to the system, after a page; each takes 10 ms

_lock = Lock()  # held by the page that is being drawn
_trimmed = [0.0]  # time of the last return of free memory (monotonic clock, seconds)
_own = local()  # per thread: `held`, whether it holds the lock, and `patience`, the seconds that it may still wait


@contextmanager
def drawing() -> Iterator[None]:
    """Hold the lock while a page or a part of it is drawn in the block; do nothing in a thread that already draws."""
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
    """Return whether this thread draws a page or a part of it."""
    return hasattr(_own, "held")


@contextmanager
def lock_released() -> Iterator[None]:
    """Release the lock for the block, then wait for it again; do nothing if this thread does not hold it.

    A page that waits for the result of another thread must release the lock: the other thread may need it to continue.
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
    """Wait for the lock for at most `patience` seconds, and subtract the time that it took from `patience`."""
    began = monotonic()
    _own.held = _lock.acquire(timeout=_own.patience)
    _own.patience = max(0.0, _own.patience - (monotonic() - began))


def _release() -> None:
    if _own.held:
        _own.held = False
        _lock.release()
