"""Attention maps as a column of a table: the bytes of each, which are read faster than lists of numbers.

Files have the lower bytes of all weights of a map before the upper ones. These are sign, exponent and the first two
bits of the fraction, in which neighbours are alike, so that a codec finds something to leave out.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from embryo_core.results.tables import TYPES

NUMBERS = np.dtype("<f2")
MAP = TYPES["float16 bytes"]
EARLIER = pa.list_(pa.field("item", pa.float16(), nullable=False))  # what earlier files have
COLUMN = "weights"
PACKED = "halves"  # the column of a file


def to_column(maps: Iterable[np.ndarray]) -> pa.Array:
    """A column of maps [L, L], each row by row in half precision."""
    return pa.array([each.astype(NUMBERS).tobytes() for each in maps], MAP)


def to_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """All weights of a column [maps * L * L], float32."""
    _, held = _bytes(column.combine_chunks())
    return held.view(NUMBERS).astype(np.float32)


# === In a file ===


def packed_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a file, of that of a table; without such a column the same."""
    return pa.schema([field.with_name(PACKED) if field.name == COLUMN else field for field in schema])


def packed_columns(columns: list[str], stored: Iterable[str]) -> list[str]:
    """The names that columns of a table have in a file with the columns `stored`, which may be an earlier one."""
    return [PACKED if name == COLUMN and PACKED in stored else name for name in columns]


def pack(rows: pa.Table) -> pa.Table:
    """Rows as a file has them; rows without such a column as they are."""
    return _changed(rows, COLUMN, PACKED, lambda maps: _each(maps, _in_halves))


def unpack(rows: pa.Table) -> pa.Table:
    """Rows of a file; earlier ones have bytes in order, or lists of numbers. Raises ValueError for half a number."""
    if COLUMN in rows.column_names and rows[COLUMN].type == EARLIER:
        return _changed(rows, COLUMN, COLUMN, _bytes_of)
    return _changed(rows, PACKED, COLUMN, lambda maps: _each(maps, _in_order))


def _changed(rows: pa.Table, name: str, into: str, change: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """Rows with every chunk of a column changed, into bytes under another name; as they are where a map is missing."""
    if name not in rows.column_names or rows[name].null_count:
        return rows
    column = pa.chunked_array([change(chunk) for chunk in rows[name].chunks], MAP)
    return rows.set_column(rows.schema.get_field_index(name), pa.field(into, MAP), column)


def _each(maps: pa.Array, change: Callable[[np.ndarray, np.ndarray], None]) -> pa.Array:
    """Maps with the bytes of each in another order, which `change` writes."""
    ends, held = _bytes(maps)
    changed = np.empty_like(held)
    for start, end in pairwise((ends - ends[0]).tolist()):
        change(held[start:end], changed[start:end])
    return _array(ends - ends[0], changed)


def _in_halves(found: np.ndarray, made: np.ndarray) -> None:
    half = len(found) // 2
    made[:half], made[half:] = found[::2], found[1::2]


def _in_order(found: np.ndarray, made: np.ndarray) -> None:
    half = len(found) // 2
    made[::2], made[1::2] = found[:half], found[half:]  # several times as fast as turning a matrix of two rows


def _bytes(maps: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each map ends, and before them where the first begins, [maps + 1]; and the bytes from there on."""
    if not len(maps):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, ends, held = maps.buffers()
    ends = np.frombuffer(ends, np.int64)[maps.offset :][: len(maps) + 1]
    return ends, np.frombuffer(held, np.uint8)[ends[0] : ends[-1]]


def _array(ends: np.ndarray, held: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(MAP, len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(held)])


def _bytes_of(lists: pa.ListArray) -> pa.Array:
    lengths = lists.value_lengths().to_numpy()
    ends = np.cumsum([0, *lengths], dtype=np.int64) * NUMBERS.itemsize
    return _array(ends, lists.flatten().to_numpy(zero_copy_only=False).astype(NUMBERS, copy=False))
