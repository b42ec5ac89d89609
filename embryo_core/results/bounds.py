"""What the rows of a table may hold when they are read: the file may be a stranger's, whatever its checksum."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.results import weights
from embryo_core.results.tables import ATTENTION, Table

MOST_CELLS = 2**25  # of a table with a column for each step, unless it is well filled
SPARSE = 4  # cells for each row, in one that is not
TEXT = 4096  # characters, in bytes
OPTIONAL = ("layer", "group", "band")  # columns that may have no value
BOUNDS = {  # least and largest value of a column
    "step": (0, 2**63 - 1),
    "layer": (0, 1024),
    "head": (1, 1024),
    "n": (1, 2**63 - 1),
    "correct": (0, 2**63 - 1),
    "rank": (1, 2**63 - 1),
    "probability": (0, 1.001),  # rounded
    "prediction_probability": (0, 1.001),
    "sentences": (1, 2**63 - 1),
    "length": (1, 4096),
    "iteration": (0, 2**31 - 1),
    "dev_f1": (0, 1),
    "seed": (0, 2**31 - 1),
    "update": (1, 2**31 - 1),
    "dev_score": (-1, 1),
    "example": (0, 2**31 - 1),
    "start": (0, 2**31 - 1),
    "end": (0, 2**31 - 1),
    "exact": (0, 1),
    "f1": (0, 1),
}


def check_rows(table: Table, rows: pa.Table, columns: list[str] | None = None) -> None:
    """Raise ValueError for other columns than the table's, for no value where one is due, or one out of bounds.

    `columns` are those that were read, by default all.
    """
    if not rows.schema.equals(table.part_schema(columns)):
        raise ValueError(f"its columns are {', '.join(rows.schema.names)}")
    rows.validate(full=True)
    for name in rows.column_names:
        column, kind = rows[name], table.all_columns[name]
        if column.null_count and name not in OPTIONAL:
            raise ValueError(f"{name} has no value in {column.null_count} rows")
        if not _is_within(name, kind, column):
            raise ValueError(f"{name} has a value out of bounds")
    if table is ATTENTION and columns is None:
        squares = pc.multiply(pc.multiply(rows["length"], rows["length"]), weights.NUMBERS.itemsize)
        squares = pc.equal(pc.binary_length(rows[weights.COLUMN]), squares)
        if not pc.all(squares, min_count=0).as_py():
            raise ValueError("weights are no square matrix")


def check_keys(table: Table, rows: pa.Table) -> None:
    """Raise ValueError where two rows have one key, or a table by step of them would be large and mostly empty."""
    names = [name for name in table.key if name in rows.column_names]
    if "step" not in names:
        return
    others, _ = _codes(rows, [name for name in names if name != "step"])
    steps, count = _codes(rows, ["step"])
    codes = np.sort(others * count + steps, kind="stable")  # rows are sorted nearly always
    if (codes[1:] == codes[:-1]).any():
        raise ValueError(f"two rows have the same {', '.join(table.key)}")
    cells = count * len(np.unique(others)) if count > 1 else rows.num_rows
    if cells > max(MOST_CELLS, SPARSE * rows.num_rows):
        raise ValueError(f"its {rows.num_rows:,} rows would be a table of {cells:,} cells by step")


def _codes(rows: pa.Table, names: list[str]) -> tuple[np.ndarray, int]:
    """What each row has in these columns as one number, and how many numbers there may be."""
    codes, count = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        column = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
        count *= len(column.dictionary)
    return codes, count


def _is_within(name: str, kind: str, column: pa.ChunkedArray) -> bool:
    if kind == "string":
        return (pc.max(pc.binary_length(column)).as_py() or 0) <= TEXT
    if kind.startswith("float") and "bytes" not in kind and not pc.all(pc.is_finite(column), min_count=0).as_py():
        return False
    if name not in BOUNDS or column.null_count == len(column):
        return True
    found, (least, most) = pc.min_max(column).as_py(), BOUNDS[name]
    return least <= found["min"] and found["max"] <= most
