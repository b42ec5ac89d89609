"""Caches for reads of a run, invalidated when the files that a read depends on change."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.drawing import lock_released
from embryo_core import results, runs
from embryo_core.types import Run

# === The state of a run's files: a string that changes when they do ===


def results_state(run: Run) -> str:
    """Return a string that changes with any file of the run's results, pending evaluations included."""
    return repr((str(run.path), results.results_state(run)))


@runs.read_once
def log_state(run: Run) -> str:
    """Return a string that changes with the run's training log."""
    return files_state(run, run.path / "log.jsonl")


def run_state(run: Run) -> str:
    """Return a string that changes with any file that figures read: results, checkpoints, log, card, audit."""
    card = files_state(run, run.path / "run.json", run.path / runs.AUDIT_FILE, run.frequencies)
    return results_state(run) + runs.checkpoints_digest(run) + log_state(run) + card


def files_state(run: Run, *paths: Path) -> str:
    """Return a string that changes with the run's folder, and with any of these files."""
    return repr([str(run.path), *((str(path), runs.state_of(path)) for path in paths)])


# === Caches ===


def cached(state: Callable[[Run], str], max_entries: int, spinner: bool | str = False) -> Callable:
    """Decorate a function whose first argument is a run: cache its results while the run has the same `state`.

    Give slow functions a `spinner`: they run without the drawing lock, so that other pages are drawn meanwhile (see
    drawing.py). A function without a spinner must not call one with a spinner: it would wait for the drawing lock,
    which a page that waits for its result may hold.
    """
    cache = st.cache_data(max_entries=max_entries, show_spinner=spinner, hash_funcs={Run: state})
    return _spinning(cache, spinner)


def cached_resource(
    state: Callable[[Run], str],
    max_entries: int,
    spinner: bool | str = False,
    validate: Callable[..., bool] | None = None,
) -> Callable:
    """Cache like `cached`, but without copies: all pages get the same object, and must not modify it. For large tables.

    An object that `validate` rejects is computed again.
    """
    cache = st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs={Run: state}, validate=validate)
    return _spinning(cache, spinner)


def _spinning(cache: Callable, spinner: bool | str) -> Callable:
    """Return a cache that computes without the drawing lock if it has a spinner."""
    return (lambda read: lock_released()(cache(read))) if spinner else cache
