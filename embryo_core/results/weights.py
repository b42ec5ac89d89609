"""Attention maps as a column of a table: the bytes of each, which are read faster than lists of numbers."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from embryo_core.results.tables import TYPES

NUMBERS = np.dtype("<f2")
EARLIER = pa.list_(pa.field("item", pa.float16(), nullable=False))  # what earlier files have
COLUMN = "weights"


def to_column(maps: Iterable[np.ndarray]) -> pa.Array:
    """A column of maps [L, L], each row by row in half precision."""
    return pa.array([each.astype(NUMBERS).tobytes() for each in maps], TYPES["float16 bytes"])


def to_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """All weights of a column [maps * L * L], float32."""
    array = column.combine_chunks()
    if not len(array):
        return np.zeros(0, np.float32)
    _, ends, held = array.buffers()
    ends = np.frombuffer(ends, np.int64)[array.offset :][: len(array) + 1]
    return np.frombuffer(held, np.uint8)[ends[0] : ends[-1]].view(NUMBERS).astype(np.float32)


def with_bytes(rows: pa.Table) -> pa.Table:
    """Rows as they are read from an earlier file, with its lists as bytes; others as they are."""
    if COLUMN not in rows.column_names or rows[COLUMN].type != EARLIER or rows[COLUMN].null_count:
        return rows
    chunks = [_bytes_of(chunk) for chunk in rows[COLUMN].chunks]
    kind = TYPES["float16 bytes"]
    return rows.set_column(rows.schema.get_field_index(COLUMN), pa.field(COLUMN, kind), pa.chunked_array(chunks, kind))


def _bytes_of(lists: pa.ListArray) -> pa.Array:
    lengths = lists.value_lengths().to_numpy()
    ends = np.cumsum([0, *lengths], dtype=np.int64) * NUMBERS.itemsize
    numbers = lists.flatten().to_numpy(zero_copy_only=False).astype(NUMBERS, copy=False)
    return pa.Array.from_buffers(
        TYPES["float16 bytes"], len(lists), [None, pa.py_buffer(ends), pa.py_buffer(numbers)]
    )
