"""Checks of the rows of a table, the same before writing and after reading.

A file may be untrusted: its checksum shows that it is complete, not that its rows are results.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import convert

from embryo_core.results import attention_codec
from embryo_core.results.tables import BOUNDS, FLOAT, MAX_LENGTH, Bounds, Table
from embryo_core.runs.schema import Settings
from embryo_core.types import Run

MAX_ROWS = 2**26  # rows of a file
MAX_STEP_ROWS = 2**18  # rows of one step of an evaluation
MAX_VALUES = 2**31  # values in all columns of a file
MAX_CELLS = 2**25  # cells of a pivot table with a column per step, unless it is dense
MAX_CELLS_PER_ROW = 4  # cells of a dense pivot table per row of the table
MAX_TEXT_BYTES = 4096  # bytes of a text
MAX_LAYERS_OR_HEADS = 1024  # layers or heads of a model
SUMMARY_METADATA = (b"made_from", b"steps")  # metadata keys that summaries.py writes
# bytes column -> another column, and the function from its values to the count of numbers in each cell
NUMBER_COUNTS: dict[str, tuple[str, Callable[[pa.ChunkedArray], pa.ChunkedArray]]] = {
    "weights": ("length", lambda length: pc.power(length, 2)),
    "occurrences": ("n", lambda n: n),
    "products": ("n", lambda n: pc.divide(pc.multiply(n, pc.subtract(n, 1)), 2)),
}
AT_MOST = {"correct": "n", "start": "end", "earliest": "latest"}  # column -> column whose value is at least as large


def bounds_of(run: Run) -> Bounds:
    """Return the bounds of each column of a run's tables, by column, or by table and column."""
    sizes = convert(run.config, Settings)
    layers, heads = (
        min(size or MAX_LAYERS_OR_HEADS, MAX_LAYERS_OR_HEADS)
        for size in (sizes.num_hidden_layers, sizes.num_attention_heads)
    )
    positions = min(sizes.max_position_embeddings or MAX_LENGTH, MAX_LENGTH)
    return BOUNDS | {"layer": (0, layers), "head": (1, heads), "length": (1, positions)}


def check_size(footer: pq.FileMetaData, max_rows: int, max_values: int) -> None:
    """Raise ValueError if the footer of a file declares more rows or values than are read."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    values = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    if footer.num_rows > max_rows or values > max_values:
        found, most = f"{footer.num_rows:,} rows and {values:,} values", f"{max_rows:,} and {max_values:,}"
        raise ValueError(f"it has {found}; the maximum is {most}")


def check_rows(table: Table, rows: pa.Table, bounds: Bounds, columns: list[str] | None = None) -> pa.Table:
    """Return the rows with the table's schema; of a file's metadata, only the keys of summaries are kept.

    Raises ValueError if the columns differ from the table's, or if a value is missing or out of bounds. `columns` names
    the columns that were read, by default all.
    """
    schema = table.schema_of(columns)
    if not rows.schema.equals(schema):
        raise ValueError(f"its columns are {', '.join(rows.schema.names)}")
    rows.validate(full=True)
    for name in rows.column_names:
        if rows[name].null_count and name not in table.optional:
            raise ValueError(f"{name} has no value in {rows[name].null_count} rows")
        limits = bounds.get(f"{table.name}.{name}") or bounds.get(name) or (-FLOAT, FLOAT)
        if (odd := _out_of_bounds(rows[name], *limits)) is not None:
            raise ValueError(f"{name} {odd} is out of bounds")
        if (most := AT_MOST.get(name)) in rows.column_names and pc.any(pc.greater(rows[name], rows[most])).as_py():
            raise ValueError(f"{name} is more than {most}")
    for name, (length, count) in NUMBER_COUNTS.items():
        if {name, length} <= {*rows.column_names}:
            attention_codec.check_numbers(name, rows[name], count(rows[length]))
    noted = {name: value for name, value in (rows.schema.metadata or {}).items() if name in SUMMARY_METADATA}
    return pa.Table.from_arrays(rows.columns, schema=schema.with_metadata(noted))


def _out_of_bounds(column: pa.ChunkedArray, lowest: float, highest: float) -> Any:
    """Return a value that is out of bounds or not finite, or the bytes of such a text; None if all are valid."""
    extremes = []
    if pa.types.is_large_binary(column.type):
        return None
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        column, lowest, highest = pc.binary_length(column), 0, MAX_TEXT_BYTES
    elif pa.types.is_floating(column.type):
        extremes = column.filter(pc.invert(pc.is_finite(column))).slice(0, 1).to_pylist()
    extremes += [extreme for extreme in pc.min_max(column).as_py().values() if extreme is not None]
    return next((extreme for extreme in extremes if not lowest <= extreme <= highest), None)


def check_keys(table: Table, rows: pa.Table) -> None:
    """Raise ValueError if two rows have the same key, or if a pivot table by step would be large and sparse."""
    names = [name for name in table.key if name in rows.column_names]
    if not table.is_summary and "step" not in names:
        return
    others, _ = _codes(rows, [name for name in names if name != "step"])
    steps, count = _codes(rows, [name for name in names if name == "step"])
    codes = np.sort(others * count + steps, kind="stable")  # fast for sorted rows
    if (codes[1:] == codes[:-1]).any():
        raise ValueError(f"two rows have the same {', '.join(table.key)}")
    cells = count * len(np.unique(others)) if count > 1 else rows.num_rows
    if cells > max(MAX_CELLS, MAX_CELLS_PER_ROW * rows.num_rows):
        raise ValueError(f"its {rows.num_rows:,} rows would be a table of {cells:,} cells by step")


def _codes(rows: pa.Table, names: list[str]) -> tuple[np.ndarray, int]:
    """Return a code for each row's combination of values in these columns, and the number of possible codes."""
    codes, count = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        column = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
        count *= len(column.dictionary)
    return codes, count
