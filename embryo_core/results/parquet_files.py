"""Parquet files: a table with its checksum next to it, verified before pyarrow reads a byte, and files of other people.

    scores.parquet          the table
    scores.parquet.sha256   its checksum, which `sha256sum --check` understands

On damaged files pyarrow may hang, or silently lose rows. While a table is replaced or removed, the checksum file lists
both the old content and the new one (the checksum of nothing for no file). So if a writer is killed, one of the two is
there, and readers need not wait for writers.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core.errors import CorpusError, ResultsError, first_line
from embryo_core.results.checks import check_size
from embryo_core.runs import (
    Checksums,
    digest,
    locate,
    open_inside,
    read_checksums,
    replacing,
    sha256,
    shown,
    write_checksums,
)
from embryo_core.types import Run

if TYPE_CHECKING:
    from datasets import Dataset

MAX_BYTES = 2**31  # of a file
MAX_FOREIGN_BYTES = 2**30  # of a file of others
MAGIC = b"PAR1"  # at both ends of a parquet file
NOTHING = hashlib.sha256().hexdigest()
ANY_STEP = (0, np.iinfo(np.int64).max)

State = tuple[int, ...]


@dataclass(frozen=True)
class VerifiedFile:
    """A table's file, verified and open; equal to any other opening of the same file."""

    state: State
    opened: pa.NativeFile = field(compare=False)


# === Reading ===


def is_stored(path: Path) -> bool:
    """Return whether a table was stored here, even if its file or its checksum has been lost."""
    return os.path.lexists(path) or os.path.lexists(_checksum_file(path))


@contextmanager
def verified(run: Run, path: Path) -> Iterator[VerifiedFile | None]:
    """Open a table's file; None if a writer that was killed had just removed it.

    Raise FileNotFoundError if a writer replaced the file meanwhile, and ResultsError or ValueError if it is not what
    was written, or not a regular file of this run's results.
    """
    state = _verify(run, path)
    if state is None:
        yield None
        return
    try:
        with pa.OSFile(str(path)) as file:  # given a path, pyarrow would open footer and rows one after the other
            yield VerifiedFile(state, file)
    except Exception:
        if _state(os.stat(path)) == state:
            raise
        raise FileNotFoundError(path) from None  # the footer of the old file may have been read with the new one
    if _state(os.stat(path)) != state:
        raise FileNotFoundError(path)


def _verify(run: Run, path: Path) -> State | None:
    """Return the state of a file that has a listed checksum; None if there is no file, and that is listed.

    Raise as `verified` does.
    """
    listed = _listed(path, run.results)
    try:
        if not os.path.lexists(path):
            if (NOTHING, path.name) in listed:
                return None
            raise ValueError("it is missing")
        _, found = locate(path, run.results, ResultsError, MAX_BYTES)
        with open_inside(path, run.results, ResultsError, MAX_BYTES) as file:
            if _state(os.fstat(file.fileno())) != _state(found):
                raise FileNotFoundError(path)  # not the file whose size was checked
            file.seek(max(0, found.st_size - len(MAGIC)))
            if file.read() != MAGIC:  # faster than the checksum of a large file
                raise ValueError("it is no parquet file, or cut short")
        if (digest(path, run.results, ResultsError, MAX_BYTES), path.name) in listed:
            return _state(found)
        if listed:
            raise ValueError("it is not the file of its checksum")
        raise ResultsError(
            f"{shown(path)} has no checksum next to it, as files of earlier versions; if you trust it, run in its "
            f"folder: sha256sum {path.name} > {_checksum_file(path).name}, else delete it and run: "
            f"python -m embryo_core evaluate {run.name} --overwrite"
        )
    except (ResultsError, ValueError):
        if _listed(path, run.results) != listed:
            raise FileNotFoundError(path) from None
        raise


def _state(found: os.stat_result) -> State:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


@lru_cache(maxsize=16)  # the footer of a long series takes milliseconds
def footer_of(file: VerifiedFile) -> pq.FileMetaData:
    """Return the footer of a table's file. Raise ValueError as `check_size` does."""
    return check_size(file.opened)


def groups_with_steps(file: VerifiedFile, steps: Collection[int]) -> list[int]:
    """Return the row groups of a table's file that may hold rows of one of these steps."""
    first, last = _steps_of_groups(file)
    known = np.array(sorted(steps))
    return np.flatnonzero(np.searchsorted(known, first) < np.searchsorted(known, last, side="right")).tolist()


@lru_cache(maxsize=4)
def _steps_of_groups(file: VerifiedFile) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last step that each row group may hold, [groups] each."""
    footer = footer_of(file)
    column = footer.schema.names.index("step")
    statistics = [footer.row_group(i).column(column).statistics for i in range(footer.num_row_groups)]
    known = [(each.min, each.max) if each and each.has_min_max else ANY_STEP for each in statistics]
    first, last = np.array(known, object).reshape(-1, 2).T  # bounds in a stranger's file may exceed an int64
    return first, last


# === Writing ===


def write_checksum(path: Path) -> None:
    """Write the checksum of the file at this path next to it."""
    write_checksums(_checksum_file(path), {(sha256(path), path.name)})


@contextmanager
def replacing_table(path: Path) -> Iterator[Path]:
    """Yield a free path; the table written there replaces the one at `path`, with its checksum."""
    with replacing(path) as temporary:
        yield temporary
        write_checksums(_checksum_file(path), {*_listed(path, path.parent), (sha256(temporary), path.name)})
    write_checksum(path)


def remove(path: Path) -> None:
    """Remove a table and its checksum, if they exist."""
    if is_stored(path):
        write_checksums(_checksum_file(path), {*_listed(path, path.parent), (NOTHING, path.name)})
        path.unlink(missing_ok=True)
        _checksum_file(path).unlink()


def stored_checksum(path: Path, within: Path) -> str | None:
    """Return the checksum of the table at this path; None if there is no table, or if it is being replaced.

    Raise ResultsError if the checksum file is not one.
    """
    listed = {sha256 for sha256, _ in _listed(path, within)}
    return next(iter(listed)) if len(listed) == 1 and NOTHING not in listed else None


def _checksum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _listed(path: Path, within: Path) -> Checksums:
    """Return what the checksum file lists; without one, nothing for a file that exists, and no file for none."""
    found = read_checksums(_checksum_file(path), within, ResultsError)
    if found is None:
        return frozenset() if os.path.lexists(path) else frozenset({(NOTHING, path.name)})
    return found


# === Files of other people, such as the tasks of the Hugging Face Hub ===


def read_foreign(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the columns of files that are one table in parts, as lists of Python values.

    Raise CorpusError if a file is not a parquet file, or has other columns than the first.
    """
    columns: dict[str, list[Any]] = {}
    for path in paths:
        found = _read_foreign_file(path)
        if columns and found.keys() != columns.keys():
            raise CorpusError(
                f"{path} has the columns {', '.join(found)}, and {paths[0]} has {', '.join(columns)}; "
                "give parts of one table."
            )
        for name, values in found.items():
            columns.setdefault(name, []).extend(values)
    return columns


def write_foreign(rows: "Dataset", path: Path) -> None:
    """Write the rows of a data set of Hugging Face."""
    rows.to_parquet(path)


def _read_foreign_file(path: Path) -> dict[str, list[Any]]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_FOREIGN_BYTES:
            raise ValueError(f"it is no file of at most {MAX_FOREIGN_BYTES:,} bytes")
        with pa.OSFile(str(path)) as file:
            check_size(file)
            return pq.read_table(file).to_pydict()
    except (pa.ArrowException, OSError, ValueError) as reason:
        raise CorpusError(f"{path} cannot be read as a parquet file ({first_line(reason)}); fetch it again.") from None
