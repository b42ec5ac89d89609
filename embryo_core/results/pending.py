"""Pending results, which are not yet compacted: one folder per evaluation.

    results/<run>/parts/<metric>/step{N}/     findings of one metric at one step
    results/<run>/parts/<metric>/step{N}.tmp  being written, or left by a writer that was killed; never read

Folders are created and removed atomically, so a folder without the suffix is complete.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embryo_core.errors import ResultsError
from embryo_core.runs.atomic_files import UNFINISHED, locked, refuse_foreign_files, remove, replacing
from embryo_core.runs.trust import own_entries, own_folder
from embryo_core.types import Run

Pending = dict[tuple[str, int], Path]  # (metric, step) -> folder
STEP = re.compile(r"step(0|[1-9][0-9]{0,18})")
UNFINISHED_STEP = re.compile(STEP.pattern + r"(\.old)?\.tmp")
UNFINISHED_FILE = re.compile(r"(\w+\.parquet(\.sha256)?|(sources|examples)\.json)\.tmp")
MAX_STEP = 2**63 - 1


def list_pending(run: Run) -> Pending:
    """Return the folders of pending evaluations by (metric, step), sorted. Raises ResultsError, also for a link."""
    folders = {}
    for metric in own_entries(run.results / "parts", ResultsError):
        for entry in own_entries(Path(metric.path), ResultsError):
            match = STEP.fullmatch(entry.name)
            if match and int(match[1]) <= MAX_STEP and entry.is_dir():
                folders[metric.name, int(match[1])] = Path(entry.path)
    return dict(sorted(folders.items()))


@contextmanager
def writing_pending(run: Run, metric: str, step: int) -> Iterator[Path]:
    """Yield an empty folder; it becomes the pending evaluation when the block ends without an error.

    Raises ResultsError if a link leads to it, or if the folder that it replaces has files that Embryo did not write.
    """
    folder = own_folder(run.results / "parts" / metric, run.results, ResultsError) / f"step{step}"
    with replacing(folder, lambda each: refuse_foreign_files(each, ResultsError)) as temporary:
        temporary.mkdir()
        yield temporary


def check_removable(folders: Iterable[Path]) -> None:
    """Raise ResultsError if a folder that is about to be removed has files that Embryo did not write."""
    for folder in folders:
        refuse_foreign_files(folder, ResultsError)


def remove_pending(folder: Path) -> None:
    """Remove a pending evaluation, renaming it first so that no reader sees half of it.

    Raises ResultsError if it has files that Embryo did not write.
    """
    removed = folder.with_name(folder.name + ".old" + UNFINISHED)
    check_removable([removed, folder])
    remove(removed)
    os.rename(folder, removed)
    remove(removed)


def remove_unfinished(run: Run) -> None:
    """Remove tables that a killed writer left unfinished; the caller holds the lock."""
    for entry in own_entries(run.results, ResultsError):
        if entry.is_file() and UNFINISHED_FILE.fullmatch(entry.name):
            os.unlink(entry.path)


def remove_leftovers(run: Run) -> None:
    """Remove leftovers of killed writers, and empty folders, but no folder with files that Embryo did not write."""
    parts = run.results / "parts"
    for metric in own_entries(parts, ResultsError):
        for entry in own_entries(Path(metric.path), ResultsError):
            if UNFINISHED_STEP.fullmatch(entry.name) and entry.is_dir():
                with suppress(ResultsError):
                    check_removable([Path(entry.path)])
                    remove(Path(entry.path))
        with suppress(OSError):
            os.rmdir(metric.path)
    with suppress(OSError):
        parts.rmdir()


@contextmanager
def lock(run: Run) -> Iterator[None]:
    """Hold the writers' lock on a run's results, waiting if needed. Raises ResultsError if these have a link."""
    own_folder(run.results, run.results, ResultsError)
    with locked(run.results):
        yield
