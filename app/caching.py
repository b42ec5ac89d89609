"""Cached reads, kept while the files that they depend on stay the same."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.drawing import lock_released
from embryo_core import results, runs
from embryo_core.types import Run

# === The state of a run's files: a string that changes when they do ===


def results_state(run: Run) -> str:
    """Return path, time and size of every file of results and folder of pending parts."""
    return repr((str(run.path), results.results_state(run)))


def checkpoints_state(run: Run) -> str:
    """Return the folder of each checkpoint and when it was written."""
    return runs.checkpoints_digest(run)


@runs.read_once
def log_state(run: Run) -> str:
    """Return path, time and size of the training log."""
    return files_state(run, run.path / "log.jsonl")


def run_state(run: Run) -> str:
    """Return a string that changes with any file that figures read: results, checkpoints, log, card, audit."""
    card = files_state(run, run.path / "run.json", run.path / runs.AUDIT, run.frequencies)
    return results_state(run) + checkpoints_state(run) + log_state(run) + card


def files_state(run: Run, *paths: Path) -> str:
    """Return the folder of a run, and path, time and size of some of its files."""
    return repr([str(run.path), *map(_file, paths)])


def _file(path: Path) -> tuple[str | int, ...]:
    """Return path, time and size of a file; the path alone if it is gone or cannot be followed."""
    try:
        status = path.stat()
    except OSError:
        return (str(path),)
    return str(path), status.st_mtime_ns, status.st_size


# === Caches ===


def cached(state: Callable[[Run], str], max_entries: int, spinner: bool | str = False) -> Callable:
    """Decorate a function whose first argument is a run: cache its results while the run has the same `state`.

    Give a slow function a spinner: other pages are drawn meanwhile (see drawing.py). A function without a spinner must
    not call one with a spinner: its page would wait for its turn while other pages wait for its result.
    """
    cache = st.cache_data(max_entries=max_entries, show_spinner=spinner, hash_funcs={Run: state})
    return (lambda read: lock_released()(cache(read))) if spinner else cache


def cached_resource(
    state: Callable[[Run], str],
    max_entries: int,
    spinner: bool | str = False,
    validate: Callable[..., bool] | None = None,
) -> Callable:
    """Cache like `cached`, without copies: all pages get the same object and must not modify it; for large tables.

    An object that `validate` rejects is read again.
    """
    cache = st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs={Run: state}, validate=validate)
    return (lambda read: lock_released()(cache(read))) if spinner else cache
