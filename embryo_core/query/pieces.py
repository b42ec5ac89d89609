"""Pieces of a question: between two of them whoever asked it may make it wait, or end it with an exception."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

OPERATIONS = 7.5e9  # floating-point operations of a piece: about an eighth of a second on one core

_pause: ContextVar[Callable[[], None]] = ContextVar("pause", default=lambda: None)


@contextmanager
def pausing(pause: Callable[[], None]) -> Iterator[None]:
    """Within it, questions call `pause` before each of their pieces, in each thread that works on them."""
    token = _pause.set(pause)
    try:
        yield
    finally:
        _pause.reset(token)


def between_pieces() -> None:
    """Call what `pausing` was given; a question of this context waits in it, or ends with what it raises."""
    _pause.get()()
