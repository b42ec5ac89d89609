"""Snapshots of runs: while one lasts, what was read of a run's files is not read again."""

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
Source = TypeVar("Source", Run, tuple[Path, ...])
Key = tuple[Callable, Path | tuple[Path, ...]]

MAX_RECENT = 1024  # reads that are kept for the next snapshots


@dataclass
class _Snapshot:
    seconds: float
    found: dict[Key, Any] = field(default_factory=dict)


_current: ContextVar[_Snapshot | None] = ContextVar("current", default=None)
_recent: dict[Key, tuple[float, Any]] = {}  # the time of reading, and the result


@contextmanager
def snapshot(seconds: float = 0) -> Iterator[None]:
    """Begin a snapshot that lasts to the end of the block; inside another snapshot, do nothing.

    Reads of other snapshots that are at most `seconds` old are used, too: a thousand manifests take long.
    """
    if _current.get() is not None:
        yield
        return
    beginning = _current.set(_Snapshot(seconds))
    try:
        yield
    finally:
        _current.reset(beginning)


def read_once(read: Callable[[Source], Found]) -> Callable[[Source], Found]:
    """Decorate a function that reads the files of a run, or of some folders: a snapshot calls it once for each.

    A snapshot belongs to its thread. The result is shared, so callers must not change it; errors are not kept.
    """

    @wraps(read)
    def kept(source: Source) -> Found:
        within = _current.get()
        if within is None:
            return read(source)
        key = read, source.path if isinstance(source, Run) else source
        if key not in within.found:
            within.found[key] = _read_again(key, source, within.seconds)
        return within.found[key]

    return kept


def _read_again(key: Key, source: Run | tuple[Path, ...], seconds: float) -> Any:
    """Return the result of at most `seconds` ago, or read again."""
    now = monotonic()
    if seconds and (known := _recent.get(key)) and now - known[0] <= seconds:
        return known[1]
    found = key[0](source)
    if seconds:
        if len(_recent) >= MAX_RECENT:
            _recent.clear()
        _recent[key] = now, found
    return found
