"""The column of attention maps, stored as the bytes of each map and so read several times as fast as lists.

In a file, the low bytes of all weights of a map precede their high bytes. The high bytes have sign, exponent and the
first two bits of the fraction, which are similar in neighbouring weights, so that zstd compresses them well. Parquet's
BYTE_STREAM_SPLIT does the same for a column of plain numbers, but pyarrow reads a column of lists number by number.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WEIGHT = np.dtype("<f2")
EXPONENT = np.uint16(0x7C00)  # bits of a float16 that are all set if it is not finite
MAP = pa.large_binary()
# the column's type in files of earlier versions
LIST_OF_WEIGHTS = pa.list_(pa.field("item", pa.float16(), nullable=False))
WEIGHTS_COLUMN = "weights"
STORED_COLUMN = "halves"  # the column's name in a file


def to_column(maps: Iterable[np.ndarray]) -> pa.Array:
    """Return a column of maps [L, L], row by row in float16; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return pa.array([weights.astype(WEIGHT).tobytes() for weights in maps], MAP)


def check_numbers(name: str, column: pa.ChunkedArray, counts: pa.ChunkedArray) -> None:
    """Raise ValueError unless each row of a float16 column has the given count of numbers, all finite."""
    if not pc.all(pc.equal(pc.binary_length(column), pc.multiply(counts, WEIGHT.itemsize)), min_count=0).as_py():
        raise ValueError(f"{name} have another length than declared")
    if any((_bytes(chunk)[1].view("<u2") & EXPONENT == EXPONENT).any() for chunk in column.chunks):
        raise ValueError(f"{name} are not finite")


def to_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Return all weights of a column as float32 [maps * L * L]."""
    _, content = _bytes(column.combine_chunks())
    return content.view(WEIGHT).astype(np.float32)


# === In a file ===


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table in a file."""
    return pa.schema([field.with_name(STORED_COLUMN) if field.name == WEIGHTS_COLUMN else field for field in schema])


def stored_names(columns: list[str], in_file: Iterable[str]) -> list[str]:
    """Return the names of a table's columns in a file with the columns `in_file`."""
    return [STORED_COLUMN if name == WEIGHTS_COLUMN and STORED_COLUMN in in_file else name for name in columns]


def encode(rows: pa.Table) -> pa.Table:
    """Return rows of a table as a file stores them; rows without maps are unchanged."""
    return _convert(rows, WEIGHTS_COLUMN, STORED_COLUMN, lambda maps: _reorder(maps, _split_bytes))


def decode(rows: pa.Table) -> pa.Table:
    """Return stored rows as rows of a table; earlier versions stored the bytes in order, or lists of weights.

    Raises ValueError if a map ends within a number.
    """
    if WEIGHTS_COLUMN in rows.column_names and rows[WEIGHTS_COLUMN].type == LIST_OF_WEIGHTS:
        return _convert(rows, WEIGHTS_COLUMN, WEIGHTS_COLUMN, _bytes_of_lists)
    return _convert(rows, STORED_COLUMN, WEIGHTS_COLUMN, lambda maps: _reorder(maps, _join_bytes))


def _convert(rows: pa.Table, name: str, new_name: str, convert: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """Return rows with every chunk of a column converted; rows without the column, or without a map, are unchanged."""
    if name not in rows.column_names or rows[name].null_count:
        return rows
    column = pa.chunked_array([convert(chunk) for chunk in rows[name].chunks], MAP)
    return rows.set_column(rows.schema.get_field_index(name), pa.field(new_name, MAP), column)


def _reorder(maps: pa.Array, reorder: Callable[[np.ndarray, np.ndarray], None]) -> pa.Array:
    """Return maps after `reorder` has changed the order of the bytes of each."""
    ends, content = _bytes(maps)
    reordered = np.empty_like(content)
    for start, end in pairwise((ends - ends[0]).tolist()):
        reorder(content[start:end], reordered[start:end])
    return _array(ends - ends[0], reordered)


def _split_bytes(source: np.ndarray, target: np.ndarray) -> None:
    half = len(source) // 2
    target[:half], target[half:] = source[::2], source[1::2]


def _join_bytes(source: np.ndarray, target: np.ndarray) -> None:
    half = len(source) // 2
    target[::2], target[1::2] = source[:half], source[half:]  # faster than transposing a matrix of two rows


def _bytes(maps: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of the maps in their buffer [maps + 1], and the bytes of the maps."""
    if not len(maps):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, offsets, content = maps.buffers()
    ends = np.frombuffer(offsets, np.int64)[maps.offset :][: len(maps) + 1]
    return ends, np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]


def _array(ends: np.ndarray, content: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(MAP, len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(content)])


def _bytes_of_lists(lists: pa.ListArray) -> pa.Array:
    lengths = lists.value_lengths().to_numpy()
    ends = np.cumsum([0, *lengths], dtype=np.int64) * WEIGHT.itemsize
    return _array(ends, lists.flatten().to_numpy(zero_copy_only=False).astype(WEIGHT, copy=False))
