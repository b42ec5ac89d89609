"""Locks on folders: held by one process at a time, and gone with it, however it ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from embryo_core.errors import EmbryoError


@contextmanager
def locked(
    folder: Path, busy: EmbryoError | None = None, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock on a folder, which is made if need be.

    While another process holds it, raises `busy`, or calls `waiting` and waits.
    """
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_NONBLOCK)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if busy:
                raise busy from None
            waiting()
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
