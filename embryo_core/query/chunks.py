"""Chunks of the work on a question: between two of them it can be paused, or ended with an exception."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

OPERATIONS = 7.5e9  # floating-point operations of a chunk: about an eighth of a second on one core

_pause: ContextVar[Callable[[], None]] = ContextVar("pause", default=lambda: None)


@contextmanager
def pausing(pause: Callable[[], None]) -> Iterator[None]:
    """Within it, questions call `pause` before each chunk, in each thread that works on them."""
    token = _pause.set(pause)
    try:
        yield
    finally:
        _pause.reset(token)


def between_chunks() -> None:
    """Call what `pausing` was given: the question waits in it, or ends with what it raises."""
    _pause.get()()
