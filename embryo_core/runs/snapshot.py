"""Snapshots of runs: within a snapshot, reads of a run's files are cached."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from embryo_core.types import Run

Value = TypeVar("Value")
Source = TypeVar("Source", Run, tuple[Path, ...])
Key = tuple[Callable, Path | tuple[Path, ...]]

MAX_RECENT = 1024  # cached reads for later snapshots


@dataclass
class _Snapshot:
    """The reads within one snapshot, and the age in seconds up to which it reuses earlier reads."""

    seconds: float
    values: dict[Key, Any] = field(default_factory=dict)


_current: ContextVar[_Snapshot | None] = ContextVar("current", default=None)
_recent: dict[Key, tuple[float, Any]] = {}  # time of the read, result


@contextmanager
def snapshot(seconds: float = 0) -> Iterator[None]:
    """Take a snapshot that lasts until the end of the block; do nothing inside another snapshot.

    Reads of earlier snapshots are reused for `seconds`, since reading a thousand manifests takes long.
    """
    if _current.get() is not None:
        yield
        return
    beginning = _current.set(_Snapshot(seconds))
    try:
        yield
    finally:
        _current.reset(beginning)


def read_once(read: Callable[[Source], Value]) -> Callable[[Source], Value]:
    """Decorate a reader of the files of a run or of some folders, to read them only once in a snapshot.

    A snapshot belongs to its thread. The result is shared, so callers must not change it; errors are not cached.
    """

    @wraps(read)
    def kept(source: Source) -> Value:
        current = _current.get()
        if current is None:
            return read(source)
        key = read, source.path if isinstance(source, Run) else source
        if key not in current.values:
            current.values[key] = _read_again(key, source, current.seconds)
        return current.values[key]

    return kept


def _read_again(key: Key, source: Run | tuple[Path, ...], seconds: float) -> Any:
    """Return a read that is at most `seconds` old, or read again."""
    now = monotonic()
    if seconds and (recent := _recent.get(key)) and now - recent[0] <= seconds:
        return recent[1]
    value = key[0](source)
    if seconds:
        if len(_recent) >= MAX_RECENT:
            _recent.clear()
        _recent[key] = now, value
    return value
