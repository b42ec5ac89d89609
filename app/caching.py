"""Reads that are kept while the files that they depend on stay as they are."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.drawing import aside
from embryo_core import runs
from embryo_core.types import Run

# === The state of a run's files: a text that changes when they do ===


@runs.read_once
def results_state(run: Run) -> str:
    """Path, time and size of every file of results and folder of parts."""
    return files_state(run, *sorted([*run.results.glob("*"), *run.results.glob("parts/*/*")]))


def checkpoints_state(run: Run) -> str:
    """The folder of each checkpoint, and when it was written."""
    return runs.checkpoints_digest(run)


@runs.read_once
def log_state(run: Run) -> str:
    """Path, time and size of the training log."""
    return files_state(run, run.path / "log.jsonl")


def run_state(run: Run) -> str:
    """Return a text that changes whenever a file that figures read does: results, checkpoints, log, card, audit."""
    card = files_state(run, run.path / "run.json", run.path / runs.AUDIT, run.frequencies)
    return results_state(run) + checkpoints_state(run) + log_state(run) + card


def files_state(run: Run, *paths: Path) -> str:
    """The folder of a run, and path, time and size of some files."""
    return repr([str(run.path), *map(_file, paths)])


def _file(path: Path) -> tuple[str | int, ...]:
    """Path, time and size; a file that is gone by now, or a link in a circle, has no more than its path."""
    try:
        found = path.stat()
    except OSError:
        return (str(path),)
    return str(path), found.st_mtime_ns, found.st_size


# === Kept ===


def cached(state: Callable[[Run], str], entries: int, spinner: bool | str = False) -> Callable:
    """Decorates a function of a run and more: its last results are kept as long as this state of the run lasts.

    One that may take long has a spinner, and its page steps aside for others (see drawing.py). One without a spinner
    never calls one with: its page would wait for its turn to draw while the pages that draw wait for its result.
    """
    kept = st.cache_data(max_entries=entries, show_spinner=spinner, hash_funcs={Run: state})
    return (lambda read: aside()(kept(read))) if spinner else kept


def kept_whole(
    state: Callable[[Run], str], entries: int, spinner: bool | str = False, valid: Callable[..., bool] | None = None
) -> Callable:
    """As `cached`, but every page gets the same object, which nobody may change: for what takes long to copy.

    What is `valid` no more is read again too.
    """
    kept = st.cache_resource(max_entries=entries, show_spinner=spinner, hash_funcs={Run: state}, validate=valid)
    return (lambda read: aside()(kept(read))) if spinner else kept
