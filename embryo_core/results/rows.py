"""The rows of a table, in its compacted file and in pending evaluations, which replace compacted ones.

Readers never wait for a writer: they read again if files were renamed or compacted in the meantime.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.errors import ResultsError
from embryo_core.results.checks import check_keys
from embryo_core.results.parquet_files import EVERYTHING, is_stored, open_table, read_errors
from embryo_core.results.pending import Pending, list_pending
from embryo_core.results.tables import ATTENTION, Table
from embryo_core.types import Run

NOTHING = pc.scalar(False)
ATTEMPTS = 10  # attempts to read while writers keep replacing files
Result = TypeVar("Result")
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
    """Return the rows of a table, of one step or several, sorted by its key. Raises ResultsError.

    If only some `columns` are read, they must include the columns of the key in which the rows differ.
    """
    steps = None
    if step is not None:
        steps = frozenset(step) if isinstance(step, Collection) else frozenset([step])
        where &= pc.field("step").isin(pa.array(sorted(steps), pa.int64()))

    def read() -> pa.Table:
        tables = _read_files(run, table, where, steps, columns)
        rows = pa.concat_tables(tables)
        with read_errors(run, run.results / f"{table.name}.parquet"):
            check_keys(table, rows)
        return sort_rows(table, rows) if len(tables) > 1 or table is ATTENTION else rows  # already sorted

    return retry_until_stable(run, read)


def read_pending(run: Run, table: Table, columns: list[str]) -> dict[tuple[str, int], pa.Table]:
    """Return the rows of a table in each pending evaluation that has some, by (metric, step). Raises ResultsError."""
    return retry_until_stable(run, lambda: dict(_load_pending(run, table, list_pending(run), EVERYTHING, columns)))


def read_values(run: Run, table: Table, column: str) -> list:
    """Return the distinct values of a column of texts or whole numbers, sorted. Raises ResultsError."""
    tables = retry_until_stable(run, lambda: _read_files(run, table, EVERYTHING, None, [column]))
    return sorted({value for rows in tables for value in pc.unique(rows[column]).to_pylist()})


def steps_of_file(run: Run, table: Table) -> dict[str, list[int]]:
    """Return the steps of each evaluation that has rows in a compacted table. Raises ResultsError."""
    with open_table(run, run.results / f"{table.name}.parquet", table) as stored:
        return {metric: [*steps] for metric, steps in stored.done.items()} if stored else {}


def retry_until_stable(run: Run, read: Callable[[], Result]) -> Result:
    """Return the result of `read`, calling it again while writers replace files. Raises ResultsError in the end."""
    for _ in range(ATTEMPTS):
        try:
            return read()
        except FileNotFoundError:
            continue
    raise ResultsError(f"{run.results} keeps changing; wait until the evaluation of '{run.name}' has ended.")


def _read_files(
    run: Run, table: Table, where: pc.Expression, steps: Steps, columns: list[str] | None
) -> list[pa.Table]:
    """Return the compacted rows that no pending evaluation replaces, then the rows of each pending evaluation."""
    # Pending folders are listed before the table is opened: the rows of a folder compacted meanwhile are in the table.
    pending = {key: folder for key, folder in list_pending(run).items() if steps is None or key[1] in steps}
    kept = where
    for metric in {name for name, _ in pending}:
        replaced = pa.array([step for name, step in pending if name == metric], pa.int64())
        kept &= ~((pc.field("evaluation") == metric) & pc.field("step").isin(replaced))
    with open_table(run, run.results / f"{table.name}.parquet", table) as stored:
        compacted = stored.read(columns, kept) if stored else table.schema_of(columns).empty_table()
    return [compacted, *(rows for _, rows in _load_pending(run, table, pending, where, columns))]


def _load_pending(
    run: Run, table: Table, pending: Pending, where: pc.Expression, columns: list[str] | None
) -> Iterator[tuple[tuple[str, int], pa.Table]]:
    """Yield the rows of each pending evaluation that has some. Raises FileNotFoundError if one disappeared."""
    for (metric, step), folder in pending.items():
        path, rows = folder / f"{table.name}.parquet", None
        if is_stored(path):
            with open_table(run, path, table) as stored:
                if stored and stored.done != {metric: [step]}:
                    raise ValueError("it belongs to another evaluation")
                rows = stored.read(columns, where) if stored else None
        if rows is not None:
            yield (metric, step), rows
        elif is_stored(path) or not folder.is_dir():
            raise FileNotFoundError(folder)
