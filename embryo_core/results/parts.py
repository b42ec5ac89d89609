"""Folders of results not yet compacted: each appears and goes as a whole, whenever the process is killed.

    results/<run>/parts/<metric>/step{N}/     what one metric found at one step; being there is its mark of being done
    results/<run>/parts/<metric>/step{N}.tmp  being written, or left by a writer that was killed; never read
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embryo_core.errors import ResultsError
from embryo_core.results.tables import TABLES
from embryo_core.runs import locked, replacing
from embryo_core.runs.files import UNFINISHED
from embryo_core.runs.reading import refusal
from embryo_core.runs.trust import own_folder, refuse_foreign, remove_own
from embryo_core.types import Run

Parts = dict[tuple[str, int], Path]
STEP = re.compile(r"step(0|[1-9][0-9]{0,18})")
UNFINISHED_PART = re.compile(STEP.pattern + r"(\.old)?\.tmp")
LAST_STEP = 2**63 - 1
ENDS = ("", UNFINISHED, ".sha256", ".sha256" + UNFINISHED)
FILES = frozenset(f"{table.name}.parquet{end}" for table in TABLES for end in ENDS)  # that a part may hold


def list_parts(run: Run) -> Parts:
    """Folders of the complete parts by (metric, step), sorted. Raises ResultsError where they cannot be listed.

    A link is refused: compaction removes the parts that it has merged, and another's folders are none of them.
    """
    found = {}
    for metric in _folders(run.results / "parts"):
        for path in _folders(metric):
            match = STEP.fullmatch(path.name)
            if match and int(match[1]) <= LAST_STEP:
                found[metric.name, int(match[1])] = path
    return dict(sorted(found.items()))


def _folders(path: Path) -> list[Path]:
    """The folders in a folder, none where it is absent. Raises ResultsError where it or one of them is a link."""
    try:
        inside = [path / name for name in os.listdir(path)]
    except (FileNotFoundError, NotADirectoryError):
        inside = []
    except OSError as reason:
        raise refusal(path, f"cannot be read: {reason.strerror}", ResultsError) from None
    for one in (path, *inside):
        if one.is_symlink():
            raise refusal(one, "is a link", ResultsError)
    return [one for one in inside if one.is_dir()]


@contextmanager
def new_part(run: Run, metric: str, step: int) -> Iterator[Path]:
    """Yield an empty folder to write to; it becomes the part of this metric and step if the block ends without error.

    Raise ResultsError if a link leads to where it would be written, or if the part that it replaces holds other files.
    """
    folder = own_folder(run.results / "parts" / metric, run.results, ResultsError)
    part = folder / f"step{step}"
    for each in (part, _unfinished(part), _going(part)):
        refuse_foreign(each, FILES, ResultsError)
    with replacing(part) as temporary:
        temporary.mkdir()
        yield temporary


def refuse_foreign_files(parts: Parts) -> None:
    """Raise ResultsError if a part that is about to be removed holds files that Embryo did not write."""
    for part in parts.values():
        refuse_foreign(part, FILES, ResultsError)


def remove_part(part: Path) -> None:
    """Remove a part, renamed first so that no reader meets half of it. Raise ResultsError if it holds other files."""
    going = _going(part)
    remove_own(going, FILES, ResultsError)
    refuse_foreign(part, FILES, ResultsError)
    os.rename(part, going)
    remove_own(going, FILES, ResultsError)


def remove_leftovers(run: Run) -> None:
    """Remove what killed writers left among the parts, and the folders that are empty by now.

    Files that Embryo did not write stay, with their folders.
    """
    parts = run.results / "parts"
    for metric in _folders(parts):
        for folder in _folders(metric):
            if UNFINISHED_PART.fullmatch(folder.name):
                with suppress(ResultsError):
                    remove_own(folder, FILES, ResultsError)
        _remove_if_empty(metric)
    _remove_if_empty(parts)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _unfinished(part: Path) -> Path:
    return part.with_name(part.name + UNFINISHED)


def _going(part: Path) -> Path:
    return part.with_name(part.name + ".old" + UNFINISHED)


@contextmanager
def lock(run: Run) -> Iterator[None]:
    """Let one writer in at a time; the others wait. Raise ResultsError if the run's results are a link or hold one."""
    own_folder(run.results, run.results, ResultsError)
    with locked(run.results):
        yield
