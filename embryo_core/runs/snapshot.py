"""A snapshot of a run's files: while it lasts, they count as they were when they were first read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from embryo_core.types import Run

Found = TypeVar("Found")

_known: ContextVar[dict[tuple[Callable, Path], Any] | None] = ContextVar("known", default=None)


@contextmanager
def snapshot() -> Iterator[None]:
    """A snapshot that lasts to the end of the block; within another one, that one."""
    if _known.get() is not None:
        yield
        return
    beginning = _known.set({})
    try:
        yield
    finally:
        _known.reset(beginning)


def read_once(read: Callable[[Run], Found]) -> Callable[[Run], Found]:
    """Decorates a function that reads a run's files: within a snapshot it is called once for each run, else each time.

    A snapshot belongs to its thread. What `read` returns is shared, so nobody may change it; what it raises is not
    kept.
    """

    @wraps(read)
    def kept(run: Run) -> Found:
        known = _known.get()
        if known is None:
            return read(run)
        if (read, run.path) not in known:
            known[read, run.path] = read(run)
        return known[read, run.path]

    return kept
