"""One look at the disk: while it lasts, a run's files count as they were when they were first looked at."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from embryo_core.types import Run

Found = TypeVar("Found")

_seen: ContextVar[dict[tuple[Callable, Path], Any] | None] = ContextVar("seen", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Begin a look, which lasts to the end of the block; within another one, go on with that."""
    if _seen.get() is not None:
        yield
        return
    beginning = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(beginning)


def seen_once(see: Callable[[Run], Found]) -> Callable[[Run], Found]:
    """Decorates a function that looks at a run's files: it is called once for each run within a look, else each time.

    A look belongs to its thread. What `see` returns is shared, so nobody may change it; what it raises is not kept.
    """

    @wraps(see)
    def seen(run: Run) -> Found:
        known = _seen.get()
        if known is None:
            return see(run)
        if (see, run.path) not in known:
            known[see, run.path] = see(run)
        return known[see, run.path]

    return seen
