"""A cache of recently read frames, valid until a file of the run's results changes.

Figures may therefore call the readers repeatedly. Callers get shallow copies: pandas copies a column that is changed.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd

from embryo_core.runs import read_once
from embryo_core.runs.trust import state_from
from embryo_core.types import Run

MAX_CACHE_BYTES = 32 * 2**20  # bytes of all cached frames
MAX_FRAME_BYTES = MAX_CACHE_BYTES // 8  # bytes of one frame
MAX_COPIES = 50  # copies of one frame: each leaves weak references, which pandas removes only by the hundred

_frames: OrderedDict[Hashable, "_CachedFrame"] = OrderedDict()
_lock = Lock()


@read_once
def results_state(run: Run) -> tuple[Hashable, ...]:
    """Return a value that changes whenever a file of the run's results changes, pending evaluations included."""
    return tuple(_walk(run.results, 0))


def memoized(read: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Decorate a reader of a run's frames: cache the most recent frames until the run's results change."""

    @wraps(read)
    def reading(run: Run, *args: Any, **options: Any) -> pd.DataFrame:
        arguments = [_hashable(argument) for argument in args]
        keyword_arguments = {name: _hashable(argument) for name, argument in options.items()}
        key = read, run.path, run.name, results_state(run), tuple(arguments), tuple(sorted(keyword_arguments.items()))
        with _lock:
            if (kept := _frames.get(key)) and kept.copies < MAX_COPIES:
                _frames.move_to_end(key)
                kept.copies += 1
                return kept.frame.copy(deep=False)
        frame = read(run, *arguments, **keyword_arguments)
        size = int(frame.memory_usage(deep=True).sum())
        if size <= MAX_FRAME_BYTES:
            with _lock:
                _frames[key] = _CachedFrame(frame, size)
                while sum(kept.size for kept in _frames.values()) > MAX_CACHE_BYTES:
                    _frames.popitem(last=False)
        return frame.copy(deep=False)

    return reading


@dataclass
class _CachedFrame:
    frame: pd.DataFrame
    size: int  # bytes
    copies: int = 1


def _hashable(argument: Any) -> Any:
    """Return an argument, as a tuple if it is a collection of values."""
    return tuple(argument) if isinstance(argument, Iterable) and not isinstance(argument, str) else argument


def _walk(folder: str | Path, depth: int) -> Iterator[Hashable]:
    """Yield path and state of each entry in a folder, and in the folders of pending evaluations."""
    try:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            yield entry.path, state_from(entry.stat())
            # links are not followed: no reader follows a link to a pending evaluation
            if entry.is_dir(follow_symlinks=False) and (depth or entry.name == "parts") and depth < 3:
                yield from _walk(entry.path, depth + 1)
    except FileNotFoundError:
        if depth or os.path.lexists(folder):
            yield object()  # a writer is active: this state equals no other
    except OSError:
        return
