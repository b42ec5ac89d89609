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
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Meta
from msgspec.json import Decoder

from embryo_core.errors import CorpusError, ResultsError, first_line
from embryo_core.results import attention_codec
from embryo_core.results.checks import MAX_ROWS, Bounds, bounds_of, check_rows, check_size
from embryo_core.results.tables import ATTENTION, CLOZE, TABLES, Table
from embryo_core.runs import (
    Checksums,
    digest,
    locate,
    open_inside,
    read_checksums,
    replacing,
    sha256,
    write_checksums,
)
from embryo_core.types import Run

if TYPE_CHECKING:
    import pandas as pd
    from datasets import Dataset

MAX_BYTES = 2**31  # of a file
MAX_FOREIGN_BYTES = 2**30  # of a file of others
MAGIC = b"PAR1"  # at both ends of a parquet file
NOTHING = hashlib.sha256().hexdigest()
ANY_STEP = (0, 2**63 - 1)
EVERYTHING = pc.scalar(True)
MAX_CHECKPOINTS = 16_384  # steps of a table
FEW_ROWS = 2**17  # whose steps are compared with those in the footer one by one
DONE = Decoder(dict[str, list[Annotated[int, Meta(ge=0, le=ANY_STEP[1])]]])  # the steps of each evaluation

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
            f"{path} has no checksum next to it, as files of earlier versions; if you trust it, run in its "
            f"folder: sha256sum {path.name} > {_checksum_file(path).name}, else delete it and run: "
            f"python -m embryo_core evaluate {run.name} --overwrite"
        )
    except (ResultsError, ValueError):
        if _listed(path, run.results) != listed:
            raise FileNotFoundError(path) from None
        raise


def _state(found: os.stat_result) -> State:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


@dataclass(frozen=True)
class OpenTable:
    """A table's file, verified and open, whose footer announces no more than the table of a run may hold."""

    table: Table
    bounds: Bounds
    file: pa.NativeFile
    footer: pq.FileMetaData
    done: dict[str, list[int]]  # the steps of each evaluation that has rows
    first: np.ndarray  # the first and the last step that each row group may hold, [groups] each
    last: np.ndarray

    def read(
        self, columns: list[str] | None = None, where: pc.Expression = EVERYTHING, steps: Collection[int] | None = None
    ) -> pa.Table:
        """Return the rows for which `where` holds. Raise ValueError as `check_rows` does, and errors of pyarrow.

        Maps of some `steps` are read by row group: with the footer already read, twice as fast as a filter of the file.
        """
        if self.table is ATTENTION and columns is None and steps is not None:
            stored = pq.ParquetFile(self.file, metadata=self.footer, page_checksum_verification=True)
            found = [stored.read_row_group(i, use_threads=False).filter(where) for i in self._groups_with(steps)]
            rows = pa.concat_tables(found) if found else stored.schema_arrow.empty_table()
        else:
            ahead = self.table not in (ATTENTION, CLOZE)  # these are large: reading ahead would take much memory
            rows = pq.read_table(
                self.file,
                columns=columns and attention_codec.stored_names(columns, self.footer.schema.names),
                filters=where,
                use_threads=ahead,
                pre_buffer=ahead,
                page_checksum_verification=True,
            )
        rows = attention_codec.decode(rows) if self.table is ATTENTION else rows
        return check_rows(self.table, rows, self.bounds, columns)

    def _groups_with(self, steps: Collection[int]) -> list[int]:
        """Return the row groups that may hold rows of one of these steps."""
        known = np.array(sorted(steps))
        found = np.searchsorted(known, self.first) < np.searchsorted(known, self.last, side="right")
        return np.flatnonzero(found).tolist()


@contextmanager
def open_table(run: Run, path: Path, table: Table) -> Iterator[OpenTable | None]:
    """Open a table of a run's results; None if a writer that was killed had just removed it.

    Raise ResultsError for every fault of the file, and FileNotFoundError if a writer replaced it meanwhile.
    """
    bounds = bounds_of(run)
    with explained(run, path), verified(run, path) as file:
        heads = int(bounds["layer"][1] * bounds["head"][1]) if table is ATTENTION else table.max_rows
        yield (
            None
            if file is None
            else OpenTable(table, bounds, file.opened, *_examine(file, table, min(heads, table.max_rows)))
        )


@contextmanager
def explained(run: Run, path: Path) -> Iterator[None]:
    """Turn every error of reading a table into a ResultsError, except for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError) as reason:
        why = first_line(reason)
        command = next((table.command for table in TABLES if table.name == path.stem), "evaluate")
        what = "it with its .sha256" if path.exists() else "its .sha256"
        raise ResultsError(
            f"{path} cannot be read ({why}); delete {what} and run: "
            f"python -m embryo_core {command} {run.name} --overwrite"
        ) from None


@lru_cache(maxsize=16)  # the footer of a long series takes milliseconds
def _examine(
    file: VerifiedFile, table: Table, max_rows: int
) -> tuple[pq.FileMetaData, dict[str, list[int]], np.ndarray, np.ndarray]:
    """Return footer, done, first and last of an `OpenTable`. Raise ValueError if they contradict one another."""
    footer = pq.read_metadata(file.opened)
    file.opened.seek(0)
    if footer.num_columns != len(table.all_columns):
        raise ValueError(f"it has {footer.num_columns} columns")
    if table.is_summary:
        check_size(footer, max_rows)
        return footer, {}, np.zeros(0), np.zeros(0)
    metadata = footer.metadata or {}
    if b"done" not in metadata:
        raise ValueError("it does not say which steps it holds")
    done = DONE.decode(metadata[b"done"])
    check_size(footer, min(MAX_ROWS, max_rows * sum(map(len, done.values()))))
    column = footer.schema.names.index("step")
    statistics = [footer.row_group(i).column(column).statistics for i in range(footer.num_row_groups)]
    known = [(each.min, each.max) if each and each.has_min_max else ANY_STEP for each in statistics]
    first, last = np.array(known, np.int64).reshape(-1, 2).T
    steps = np.array(sorted(set().union(*done.values())), np.int64)
    if len(steps) > MAX_CHECKPOINTS or not all(((first <= step) & (step <= last)).any() for step in steps):
        raise ValueError("it names steps that it does not hold")
    if footer.num_rows <= FEW_ROWS:
        held = pq.read_table(file.opened, columns=["evaluation", "step"], use_threads=False)
        file.opened.seek(0)
        held = held.group_by(held.column_names, use_threads=False).aggregate([]).to_pydict()
        if {*zip(*held.values())} != {(name, step) for name in done for step in done[name]}:
            raise ValueError("it names steps that it does not hold")
    return footer, done, first, last


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


def write_foreign(rows: "Dataset | pd.DataFrame", path: Path) -> None:
    """Write rows for other tools to read: those of a frame, or of a data set of Hugging Face."""
    rows.to_parquet(path)


def _read_foreign_file(path: Path) -> dict[str, list[Any]]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_FOREIGN_BYTES:
            raise ValueError(f"it is no file of at most {MAX_FOREIGN_BYTES:,} bytes")
        with pa.OSFile(str(path)) as file:
            check_size(pq.read_metadata(file))
            file.seek(0)
            return pq.read_table(file).to_pydict()
    except (pa.ArrowException, OSError, ValueError) as reason:
        raise CorpusError(f"{path} cannot be read as a parquet file ({first_line(reason)}); fetch it again.") from None
