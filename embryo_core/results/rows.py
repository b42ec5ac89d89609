"""Rows of a table: those of the compacted file and of pending evaluations, which replace compacted ones.

Readers never wait for a writer: what is renamed or compacted while they read, they read again.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.json import Decoder

from embryo_core import runs
from embryo_core.errors import ResultsError, first_line
from embryo_core.results import attention_codec
from embryo_core.results.checks import check_keys, check_rows
from embryo_core.results.parquet_files import VerifiedFile, footer_of, groups_with_steps, is_stored, verified
from embryo_core.results.pending import Pending, list_pending
from embryo_core.results.tables import ATTENTION, CLOZE, TABLES, Table
from embryo_core.types import Run

EVERYTHING, NOTHING = pc.scalar(True), pc.scalar(False)
DONE = Decoder(dict[str, list[int]])  # the steps of each metric, in the metadata of a compacted table
ATTEMPTS = 10  # of a read while writers keep replacing files
Found = TypeVar("Found")
Steps = frozenset[int] | None  # None: all


def sort_rows(table: Table, rows: pa.Table) -> pa.Table:
    """Return rows sorted by those columns of the table's key that they have; missing values come last."""
    return rows.sort_by([(name, "ascending") for name in table.key if name in rows.column_names])


def read_table(
    run: Run,
    table: Table,
    where: pc.Expression = EVERYTHING,
    step: int | Collection[int] | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    """Return the rows of a table, of one step or several, sorted by its key. Raise ResultsError.

    If only some `columns` are read, they must include those of the key that differ between the rows.
    """
    steps = None
    if step is not None:
        steps = frozenset(step) if isinstance(step, Collection) else frozenset([step])
        where &= pc.field("step").isin(pa.array(sorted(steps), pa.int64()))

    def read() -> pa.Table:
        tables = _read_files(run, table, where, steps, columns)
        rows = pa.concat_tables(tables)
        with _explained(run, run.results / f"{table.name}.parquet"):
            check_keys(table, rows)
        return sort_rows(table, rows) if len(tables) > 1 or table is ATTENTION else rows  # once sorted by head

    return retry_until_stable(run, read)


def read_pending(run: Run, table: Table, columns: list[str]) -> dict[tuple[str, int], pa.Table]:
    """Return the rows of each pending evaluation that has some, by its metric and step."""
    return retry_until_stable(
        run, lambda: dict(_load_pending(run, table, list_pending(run), EVERYTHING, None, columns))
    )


def read_values(run: Run, table: Table, column: str) -> list:
    """Return the distinct values of a column of texts or whole numbers, sorted."""
    tables = retry_until_stable(run, lambda: _read_files(run, table, EVERYTHING, None, [column]))
    return sorted({value for rows in tables for value in pc.unique(rows[column]).to_pylist()})


def steps_of_file(run: Run, table: Table) -> dict[str, list[int]]:
    """Return the steps of each evaluation that has rows in a compacted table. Raise ResultsError."""
    path = run.results / f"{table.name}.parquet"
    with _explained(run, path), verified(run, path) as file:
        if file is None:
            return {}
        noted = (footer_of(file).metadata or {}).get(b"done")
        if noted is None:
            raise ValueError("it does not say which steps it holds")
        return DONE.decode(noted)


def retry_until_stable(run: Run, read: Callable[[], Found]) -> Found:
    """Return what `read` returns; call it again if a writer replaced or compacted a file meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            return read()
        except FileNotFoundError:
            continue
    raise ResultsError(f"{run.results} keeps changing; wait until the evaluation of '{run.name}' has ended.")


def _read_files(
    run: Run, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> list[pa.Table]:
    """Return the rows of the compacted table that no pending evaluation replaces, and of each pending one."""
    # Pending folders are listed before the compacted table is opened: one that is compacted meanwhile is in that table.
    pending = {key: folder for key, folder in list_pending(run).items() if steps is None or key[1] in steps}
    kept = where
    for metric in {name for name, _ in pending}:
        replaced = pa.array([step for name, step in pending if name == metric], pa.int64())
        kept &= ~((pc.field("evaluation") == metric) & pc.field("step").isin(replaced))
    compacted = _load(run, run.results / f"{table.name}.parquet", table, kept, steps, columns)
    tables = [table.schema_of(columns).empty_table() if compacted is None else compacted]
    return tables + [rows for _, rows in _load_pending(run, table, pending, where, steps, columns)]


def _load_pending(
    run: Run, table: Table, pending: Pending, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> Iterator[tuple[tuple[str, int], pa.Table]]:
    """Yield the rows of each pending evaluation that has some. Raise FileNotFoundError if one is gone meanwhile."""
    for key, folder in pending.items():
        path = folder / f"{table.name}.parquet"
        found = _load(run, path, table, where, steps, columns) if is_stored(path) else None
        if found is not None:
            yield key, found
        elif is_stored(path) or not folder.is_dir():
            raise FileNotFoundError(folder)


def _load(
    run: Run, path: Path, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> pa.Table | None:
    """Return the rows of one file, or None if there is no file. Raise ResultsError.

    Raise FileNotFoundError if a writer replaced the file meanwhile.
    """
    with _explained(run, path), verified(run, path) as file:
        if file is None:
            return None
        footer = footer_of(file)  # of which the size is checked before any rows are read
        if table is ATTENTION and columns is None and steps is not None:
            rows = _read_attention_steps(file, footer, where, steps)
        else:
            ahead = table not in (ATTENTION, CLOZE)  # these are large: reading ahead would take much memory
            rows = pq.read_table(
                file.opened,
                columns=columns and attention_codec.stored_names(columns, footer.schema.names),
                filters=where,
                use_threads=ahead,
                pre_buffer=ahead,
                page_checksum_verification=True,
            )
        rows = attention_codec.decode(rows) if table is ATTENTION else rows
        check_rows(table, rows, columns)
        return rows


def _read_attention_steps(
    file: VerifiedFile, footer: pq.FileMetaData, where: pc.Expression, steps: frozenset[int]
) -> pa.Table:
    """Return the maps of some steps: with the footer at hand, twice as fast as a filter of the whole file."""
    stored = pq.ParquetFile(file.opened, metadata=footer, page_checksum_verification=True)
    found = [stored.read_row_group(i, use_threads=False).filter(where) for i in groups_with_steps(file, steps)]
    return pa.concat_tables(found) if found else stored.schema_arrow.empty_table()


@contextmanager
def _explained(run: Run, path: Path) -> Iterator[None]:
    """Turn every error of reading a file into a ResultsError, except for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as reason:
        why = runs.shown(first_line(reason))
        command = next((table.command for table in TABLES if table.name == path.stem), "evaluate")
        what = "it with its .sha256" if path.exists() else "its .sha256"
        raise ResultsError(
            f"{runs.shown(path)} cannot be read ({why}); delete {what} and run: "
            f"python -m embryo_core {command} {run.name} --overwrite"
        ) from None
