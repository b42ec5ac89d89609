"""Rows in the order of their key, by one number a row: rows are sorted nearly always, which a stable sort uses."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.results.tables import Table

MOST = 2**62  # different numbers that rows may have


def sort(table: Table, rows: pa.Table) -> pa.Table:
    """Rows sorted by those columns of the table's key that they have, ascending; no value comes last.

    The same as `pyarrow.Table.sort_by`, several times as fast where most rows are in order.
    """
    numbers, count = np.zeros(rows.num_rows, np.int64), 1
    for name in (name for name in table.key if name in rows.column_names):
        ranks, found = _ranks(rows[name].combine_chunks())
        if count * found > MOST:
            numbers, count = _close(numbers)
        numbers, count = numbers * found + ranks, count * found
    if (numbers[1:] >= numbers[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(numbers, kind="stable")))


def _ranks(column: pa.Array) -> tuple[np.ndarray, int]:
    """Numbers from 0 in the order of a column's values, and how many there may be."""
    if not pa.types.is_string(column.type):
        values = column.cast(pa.int64())
        ends = pc.min_max(values).as_py()
        least, most = ends["min"] or 0, ends["max"] or 0
        if most - least >= MOST:
            return _close(values.fill_null(np.iinfo(np.int64).max).to_numpy())
        return values.fill_null(most + 1).to_numpy() - least, most - least + 2
    codes = column.dictionary_encode()
    order = pc.sort_indices(codes.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order], ranks[-1] = np.arange(len(order)), len(order)
    return ranks[codes.indices.fill_null(len(order)).to_numpy()], len(ranks)


def _close(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each value among those that there are, and how many these are."""
    known, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64), max(len(known), 1)
