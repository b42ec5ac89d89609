"""Rows of a table: parts and the compacted file together, where a part replaces the rows of its evaluation.

Readers never wait for a writer: what is renamed or compacted while they read, they read again.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.json import Decoder

from embryo_core import runs
from embryo_core.errors import ResultsError, first_line
from embryo_core.results import order, weights
from embryo_core.results.bounds import check_keys, check_rows
from embryo_core.results.files import is_stored, verified
from embryo_core.results.footers import footer_of, groups_with_steps
from embryo_core.results.parts import Parts, list_parts
from embryo_core.results.tables import ATTENTION, CLOZE, TABLES, Table
from embryo_core.types import Run

EVERYTHING, NOTHING = pc.scalar(True), pc.scalar(False)
DONE = Decoder(dict[str, list[int]])  # steps by metric, in the metadata of a compacted table
Found = TypeVar("Found")
Steps = frozenset[int] | None  # None: all


def equals(column: str, value: str | int | None) -> pc.Expression:
    """That a column has this value; None asks for nothing."""
    return EVERYTHING if value is None else pc.field(column) == value


def begins(column: str, prefix: str) -> pc.Expression:
    """That a text has this prefix, as bounds, by which row groups are passed over."""
    if not prefix:
        return EVERYTHING
    return (pc.field(column) >= prefix) & (pc.field(column) < prefix + chr(sys.maxunicode))


def read_table(
    run: Run,
    table: Table,
    where: pc.Expression = EVERYTHING,
    step: int | Collection[int] | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    """Rows (of one step, or of some) of parts and of the compacted table, less those that a part replaces, sorted.

    Of fewer `columns`, those of the key that differ between the rows have to be among them.
    """
    steps = frozenset([step] if isinstance(step, Integral) else step) if step is not None else None
    if steps is not None:
        where &= pc.field("step").isin(pa.array(sorted(steps), pa.int64()))
    return settled(run, lambda: _read_once(run, table, where, steps, columns))


def read_parts(run: Run, table: Table, columns: list[str]) -> dict[tuple[str, int], pa.Table]:
    """Rows of each part that has some, by its metric and step; a compaction may have taken them in meanwhile."""
    return settled(run, lambda: dict(_parts_once(run, table, list_parts(run), EVERYTHING, None, columns)))


def read_values(run: Run, table: Table, column: str) -> list:
    """What a column of texts or whole numbers holds, each once, sorted."""
    tables = settled(run, lambda: _rows_of_files(run, table, EVERYTHING, None, [column]))
    return sorted({value for rows in tables for value in pc.unique(rows[column]).to_pylist()})


def steps_of_file(run: Run, table: Table) -> dict[str, list[int]]:
    """Steps of each evaluation that has rows in a compacted table. Raises ResultsError."""
    path = run.results / f"{table.name}.parquet"
    with _explaining(run, path), verified(run, path) as file:
        if file is None:
            return {}
        noted = (footer_of(file).metadata or {}).get(b"done")
        if noted is None:
            raise ValueError("it does not say which steps it holds")
        return DONE.decode(noted)


def settled(run: Run, read: Callable[[], Found]) -> Found:
    """What `read` returns; called again where a writer replaced or compacted something meanwhile."""
    for _ in range(10):
        try:
            return read()
        except FileNotFoundError:
            continue
    raise ResultsError(f"{run.results} keeps changing; wait until the evaluation of '{run.name}' has ended.")


def _read_once(run: Run, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None) -> pa.Table:
    tables = _rows_of_files(run, table, where, steps, columns)
    rows = pa.concat_tables(tables)
    with _explaining(run, run.results / f"{table.name}.parquet"):
        check_keys(table, rows)
    several = len(tables) > 1 or table is ATTENTION  # of which earlier files were sorted by head
    return order.sort(table, rows) if several else rows


def _rows_of_files(
    run: Run, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> list[pa.Table]:
    """Rows of the compacted table, less those that a part replaces, and of each part."""
    # Parts are listed before the compacted table is opened: one that goes in between is in that table.
    parts = {key: folder for key, folder in list_parts(run).items() if steps is None or key[1] in steps}
    compacted = _load(run, run.results / f"{table.name}.parquet", table, where & _outside(parts), steps, columns)
    tables = [table.part_schema(columns).empty_table() if compacted is None else compacted]
    return tables + [rows for _, rows in _parts_once(run, table, parts, where, steps, columns)]


def _parts_once(
    run: Run, table: Table, parts: Parts, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> Iterator[tuple[tuple[str, int], pa.Table]]:
    """Rows of each of these parts that has some. Raises FileNotFoundError where one has gone meanwhile."""
    for key, folder in parts.items():
        path = folder / f"{table.name}.parquet"
        found = _load(run, path, table, where, steps, columns) if is_stored(path) else None
        if found is not None:
            yield key, found
        elif is_stored(path) or not folder.is_dir():
            raise FileNotFoundError(folder)


def _outside(parts: Parts) -> pc.Expression:
    """The rows of evaluations that no part replaces."""
    where = EVERYTHING
    for metric in {name for name, _ in parts}:
        steps = pa.array([step for name, step in parts if name == metric], pa.int64())
        where &= ~(equals("evaluation", metric) & pc.field("step").isin(steps))
    return where


def _load(
    run: Run, path: Path, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> pa.Table | None:
    """Rows of one file, None where there is none; only row groups that may hold some are read. Raises ResultsError.

    Raises FileNotFoundError where a writer replaced the file meanwhile.
    """
    with _explaining(run, path), verified(run, path) as file:
        if file is None:
            return None
        footer = footer_of(file)
        if table is ATTENTION and columns is None:  # a filter of the whole file finds its rows slower
            stored = pq.ParquetFile(file.opened, metadata=footer, page_checksum_verification=True)
            groups = range(footer.num_row_groups) if steps is None else groups_with_steps(file, steps)
            found = [stored.read_row_group(i, use_threads=False).filter(where) for i in groups]  # one whole in memory
            rows = pa.concat_tables(found) if found else stored.schema_arrow.empty_table()
        else:
            ahead = table not in (ATTENTION, CLOZE)  # which are large: what threads read ahead would fill much memory
            how = {"use_threads": ahead, "pre_buffer": ahead, "page_checksum_verification": True}
            names = columns and weights.packed_columns(columns, footer.schema.names)
            rows = pq.read_table(file.opened, columns=names, filters=where, **how)
        rows = weights.unpack(rows) if table is ATTENTION else rows
        check_rows(table, rows, columns)
        return rows


@contextmanager
def _explaining(run: Run, path: Path) -> Iterator[None]:
    """Turn every error of reading a file into a ResultsError, but for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as reason:
        raise _unreadable(run, path, reason) from None


def _unreadable(run: Run, path: Path, reason: Exception) -> ResultsError:
    why = runs.shown(first_line(reason))
    command = next((table.command for table in TABLES if table.name == path.stem), "evaluate")
    what = "it with its .sha256" if path.exists() else "its .sha256"
    return ResultsError(
        f"{runs.shown(path)} cannot be read ({why}); delete {what} and run: "
        f"python -m embryo_core {command} {run.name} --overwrite"
    )
