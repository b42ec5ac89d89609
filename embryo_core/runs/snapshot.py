"""A snapshot of a run's files: while it lasts, they count as they were when they were first read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from embryo_core.types import Run

Found = TypeVar("Found")
Key = tuple[Callable, Path]

KEPT = 1024  # reads that are kept for the next snapshots


@dataclass
class _Snapshot:
    seconds: float
    found: dict[Key, Any] = field(default_factory=dict)


_current: ContextVar[_Snapshot | None] = ContextVar("current", default=None)
_recent: dict[Key, tuple[float, Any]] = {}  # when it was read, and what


@contextmanager
def snapshot(seconds: float = 0) -> Iterator[None]:
    """A snapshot that lasts to the end of the block; within another one, that one.

    What another snapshot with `seconds` read at most so long ago counts in it too: to look at a thousand manifests
    takes longer than to draw some pages.
    """
    if _current.get() is not None:
        yield
        return
    beginning = _current.set(_Snapshot(seconds))
    try:
        yield
    finally:
        _current.reset(beginning)


def read_once(read: Callable[[Run], Found]) -> Callable[[Run], Found]:
    """Decorates a function that reads a run's files: within a snapshot it is called once for each run, else each time.

    A snapshot belongs to its thread. What `read` returns is shared, so nobody may change it; what it raises is not
    kept.
    """

    @wraps(read)
    def kept(run: Run) -> Found:
        within = _current.get()
        if within is None:
            return read(run)
        key = read, run.path
        if key not in within.found:
            within.found[key] = _read_again(key, run, within.seconds)
        return within.found[key]

    return kept


def _read_again(key: Key, run: Run, seconds: float) -> Any:
    """What this function found of this run at most so many seconds ago, or finds now."""
    now = monotonic()
    if seconds and (known := _recent.get(key)) and now - known[0] <= seconds:
        return known[1]
    found = key[0](run)
    if seconds:
        if len(_recent) >= KEPT:
            _recent.clear()
        _recent[key] = now, found
    return found
