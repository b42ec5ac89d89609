"""Tables in parquet files with a checksum, which is verified before pyarrow reads a byte.

    scores.parquet          the table
    scores.parquet.sha256   its checksum, which `sha256sum --check` understands

On damaged files pyarrow may hang, or silently lose rows. While a table is replaced or removed, the checksum file lists
both the old and the new content; the checksum of an empty file means that the table is missing. So if a writer is
killed, one of the two matches, and readers need not wait for writers.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.dataset import ParquetFileFormat, ParquetFileFragment

from embryo_core.errors import ResultsError, first_line
from embryo_core.results import attention_codec, checks
from embryo_core.results.tables import ATTENTION, BOUNDS, TABLES, Bounds, Table
from embryo_core.runs import replacing, sha256, trust
from embryo_core.runs.manifests import MAX_CHECKPOINTS
from embryo_core.types import Run

MAX_TABLE_BYTES = 2**31  # bytes of a table's file
MAX_TEXTS = 2**28  # bytes of a column in a row group
UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError)
EMPTY_SHA256 = hashlib.sha256().hexdigest()  # checksum of an empty file: the table is missing
EVERYTHING = pc.scalar(True)


@dataclass(frozen=True)
class VerifiedFile:
    """A table's file, verified and open; two openings of the same file are equal."""

    state: trust.State
    opened: pa.NativeFile = field(compare=False)


# === Reading ===


def is_stored(path: Path) -> bool:
    """Return whether a table was stored here, even if its file or its checksum is now missing."""
    return os.path.lexists(path) or os.path.lexists(_checksum_file(path))


def _verify(run: Run, path: Path) -> VerifiedFile | None:
    """Open a table's file; return None if a writer was killed while it removed the file.

    Raises FileNotFoundError if a writer replaced the file meanwhile, and ResultsError or ValueError if its content does
    not match its checksum, or it is not a regular file of this run's results.
    """
    listed = _listed(path, run.results)
    if not os.path.lexists(path) and (EMPTY_SHA256, path.name) in listed:
        return None
    try:
        if not os.path.lexists(path):
            raise ValueError("it is missing")
        _, now = trust.locate(path, run.results, ResultsError, MAX_TABLE_BYTES)
        if (trust.digest(path, run.results, ResultsError, MAX_TABLE_BYTES), path.name) in listed:
            file = trust.open_inside(path, run.results, ResultsError, MAX_TABLE_BYTES)
            if (state := trust.state_from(os.fstat(file.fileno()))) == trust.state_from(now):
                return VerifiedFile(state, pa.PythonFile(file, "r"))
            file.close()
            raise FileNotFoundError(path)  # replaced after it was hashed
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


@dataclass(frozen=True)
class OpenTable:
    """A table's file, verified and open, with no more rows than the limits allow."""

    table: Table
    bounds: Bounds
    file: pa.NativeFile
    fragment: ParquetFileFragment  # with the footer, to skip row groups
    done: dict[str, list[int]]  # evaluation -> its steps with rows, sorted

    @property
    def footer(self) -> pq.FileMetaData:
        """Return the footer of the file."""
        return self.fragment.metadata

    def read(self, columns: list[str] | None = None, where: pc.Expression = EVERYTHING) -> pa.Table:
        """Return the rows for which `where` holds. Raises ValueError as `check_rows` does, and errors of pyarrow."""
        groups = [group.id for group in self.fragment.subset(filter=where).row_groups]
        names = columns
        if columns is not None:
            filter_columns = [name for name in self.table.schema.names if name in str(where) and name not in columns]
            names = attention_codec.stored_names([*columns, *filter_columns], self.footer.schema.names)
        types = {
            field.name: field.type for field in (*self.table.schema, *attention_codec.stored_schema(self.table.schema))
        }
        table = read_groups(self.file, self.footer, groups, names, types)
        rows = pa.concat_tables(rows.filter(where) for rows in table)
        rows = attention_codec.decode(rows) if self.table is ATTENTION else rows
        return checks.check_rows(self.table, rows if columns is None else rows.select(columns), self.bounds, columns)


@contextmanager
def open_table(run: Run, path: Path, table: Table) -> Iterator[OpenTable | None]:
    """Open a table of a run's results; yield None if a killed writer had just removed it.

    Raises ResultsError for every fault of the file, and FileNotFoundError if a writer replaced it meanwhile.
    """
    with read_errors(run, path), ExitStack() as opened:
        if file := _verify(run, path):
            opened.enter_context(file.opened)
            examined = _examine(file, table)
        yield OpenTable(table, checks.bounds_of(run), file.opened, *examined) if file else None


@contextmanager
def read_errors(run: Run, path: Path) -> Iterator[None]:
    """Raise ResultsError for any error of reading a table in the block, except FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except UNREADABLE as reason:
        why = first_line(reason)
        command = next((table.command for table in TABLES if table.name == path.stem), "evaluate")
        files = "it with its .sha256" if path.exists() else "its .sha256"
        raise ResultsError(
            f"{path} cannot be read ({why}); delete {files} and run: "
            f"python -m embryo_core {command} {run.name} --overwrite"
        ) from None


@lru_cache(maxsize=256)  # cached, so that the rows of a file are counted once
def _examine(file: VerifiedFile, table: Table) -> tuple[ParquetFileFragment, dict[str, list[int]]]:
    """Return `fragment` and `done` of an `OpenTable`. Raises ValueError if a step has more than `MAX_STEP_ROWS`."""
    fragment = ParquetFileFormat().make_fragment(file.opened)
    fragment.ensure_complete_metadata()
    footer, done = fragment.metadata, dict[str, list[int]]()
    if footer.num_columns != len(table.schema):
        raise ValueError(f"it has {footer.num_columns} columns")
    checks.check_size(footer, checks.MAX_ROWS, checks.MAX_VALUES)
    if table.is_summary:
        return fragment, done
    names = ["evaluation", "step"]
    groups = _read_coded(file.opened, footer, range(footer.num_row_groups), names)
    counts = pa.concat_tables(_with_texts(_count(rows.unify_dictionaries(), ([], "count_all"))) for rows in groups)
    checks.check_rows(table, counts.select(names), BOUNDS, names)
    for metric, step, rows in sorted(zip(*_count(counts, ("count_all", "sum")).to_pydict().values(), strict=True)):
        if rows > checks.MAX_STEP_ROWS:
            raise ValueError(f"step {step} has {rows:,} rows; the maximum is {checks.MAX_STEP_ROWS:,}")
        done.setdefault(metric, []).append(step)
    if len(set().union(*done.values())) > MAX_CHECKPOINTS:
        raise ValueError(f"it has more than {MAX_CHECKPOINTS:,} steps")
    return fragment, done


def _count(rows: pa.Table, how: tuple) -> pa.Table:
    return rows.group_by(["evaluation", "step"], use_threads=False).aggregate([how])


def read_groups(
    file: pa.NativeFile,
    footer: pq.FileMetaData,
    groups: Iterable[int],
    columns: list[str] | None = None,
    types: Mapping[str, pa.DataType] = MappingProxyType({}),
) -> Iterator[pa.Table]:
    """Yield row groups, or an empty table for none; texts get these `types` or the file's.

    Raises ValueError if a column of texts in a row group has more than `MAX_TEXTS` bytes.
    """
    return (_with_texts(rows, types) for rows in _read_coded(file, footer, groups, columns))


def _read_coded(
    file: pa.NativeFile, footer: pq.FileMetaData, groups: Iterable[int], columns: list[str] | None
) -> Iterator[pa.Table]:
    """Yield row groups with texts as dictionaries, after checking their sizes, as many rows may share a long text."""
    leaves = [footer.schema.column(i) for i in range(len(footer.schema))]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.path == leaf.name]
    stored = pq.ParquetFile(file, metadata=footer, read_dictionary=texts, page_checksum_verification=True)
    for group in [[i] for i in groups] or [[]]:
        rows = stored.read_row_groups(group, columns, use_threads=False)
        for column in (column for column in rows.columns if pa.types.is_dictionary(column.type)):
            lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
            if (size := sum(pc.sum(chunk_lengths).as_py() or 0 for chunk_lengths in lengths)) > MAX_TEXTS:
                raise ValueError(f"a column has {size:,} bytes in a row group; the maximum is {MAX_TEXTS:,}")
        yield rows


def _with_texts(rows: pa.Table, types: Mapping[str, pa.DataType] = MappingProxyType({})) -> pa.Table:
    for i, coded in enumerate(rows.schema):
        if pa.types.is_dictionary(coded.type):
            kind = types.get(coded.name, coded.type.value_type)
            rows = rows.set_column(i, coded.with_type(kind), rows[i].cast(kind))
    return rows


# === Writing ===


def write_checksum(path: Path) -> None:
    """Write the checksum of the file at this path next to it."""
    trust.write_checksums(_checksum_file(path), {(sha256(path), path.name)})


@contextmanager
def replacing_table(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the table written there replaces the one at `path`, with its checksum."""
    with replacing(path) as temporary:
        yield temporary
        trust.write_checksums(_checksum_file(path), {*_listed(path, path.parent), (sha256(temporary), path.name)})
    write_checksum(path)


def remove_table(path: Path) -> None:
    """Remove a table and its checksum, if they exist."""
    if is_stored(path):
        trust.write_checksums(_checksum_file(path), {*_listed(path, path.parent), (EMPTY_SHA256, path.name)})
        path.unlink(missing_ok=True)
        _checksum_file(path).unlink()


def stored_checksum(path: Path, root: Path) -> str | None:
    """Return the checksum of a table; None without a table, or while it is being replaced. Raises ResultsError."""
    listed = {sha256 for sha256, _ in _listed(path, root)}
    return next(iter(listed)) if len(listed) == 1 and EMPTY_SHA256 not in listed else None


def _checksum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _listed(path: Path, root: Path) -> trust.Checksums:
    """Return the content of the checksum file; without one, an empty set for an existing table, else `EMPTY_SHA256`."""
    checksums = trust.read_checksums(_checksum_file(path), root, ResultsError)
    if checksums is None:
        return frozenset() if os.path.lexists(path) else frozenset({(EMPTY_SHA256, path.name)})
    return checksums
