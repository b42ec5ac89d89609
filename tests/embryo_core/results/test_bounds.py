"""Rows that can be no results are refused when they are read: values out of bounds, missing ones, tables of holes."""

from typing import Any

import pyarrow as pa
import pytest

from embryo_core.results.bounds import check_keys, check_rows
from embryo_core.results.tables import ATTENTION, CLOZE, PROBES, SCORES, SPANS, TASK_SCORES, TUNING, WORDS, Table

VALUES = {"string": "a", "bool": True, "float16 bytes": b"\0\0"}  # of other types 1


def rows(table: Table, column: str, *values: Any) -> pa.Table:
    """Rows that may be read, but for one column."""
    plain = {name: [VALUES.get(kind, 1)] * len(values) for name, kind in table.all_columns.items()}
    return pa.table(plain | {column: values}, schema=table.schema)


@pytest.mark.parametrize(
    ("table", "column", "within", "beyond"),
    [
        (SCORES, "n", [1, 2**40], [0, -1]),
        (SCORES, "step", [0, 2**40], [-1]),
        (SCORES, "layer", [0, None, 1024], [-1, 1025]),
        (SCORES, "value", [-5.0, 1e9], [float("nan"), float("inf")]),
        (WORDS, "correct", [0, 7], [-1]),
        (CLOZE, "rank", [1, 30_000], [0]),
        (CLOZE, "probability", [0.0, 1.0], [-0.01, 1.01, float("nan")]),
        (CLOZE, "prediction", ["", "a" * 4096], ["a" * 4097]),
        (ATTENTION, "head", [1, 1024], [0, 1025]),
        (ATTENTION, "weights", [b"\0\0"], [b"", b"\0" * 8]),
        (PROBES, "dev_f1", [0.0, 1.0], [-0.01, 1.01]),
        (PROBES, "train_loss", [0.0, 99.0], [float("nan")]),
        (TASK_SCORES, "seed", [0, 1], [-1]),
        (TUNING, "update", [1, 9], [0]),
        (TUNING, "dev_score", [-1.0, 1.0], [-1.01, 1.01]),
        (SPANS, "exact", [0.0, 1.0], [-0.01, 1.01]),
        (SPANS, "f1", [0.0, 1.0], [-0.01, 1.01, float("nan")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_are_within_their_bounds(table: Table, column: str, within: list, beyond: list):
    """One beyond them is enough, on either side."""
    check_rows(table, rows(table, column, *within))
    for value in beyond:
        with pytest.raises(ValueError, match=f"{column} has a value out of bounds|no square matrix"):
            check_rows(table, rows(table, column, *within, value))


@pytest.mark.parametrize(("table", "column", "value"), [(SCORES, "n", 3), (SCORES, "value", 0.5), (WORDS, "word", "a")])
def test_no_value_is_missing(table: Table, column: str, value: Any):
    """Every row has a number, and what it is counted on."""
    with pytest.raises(ValueError, match=f"{column} has no value in 1 rows"):
        check_rows(table, rows(table, column, value, None))


def test_a_large_table_may_have_some_holes(monkeypatch: pytest.MonkeyPatch):
    """Four cells by step and group for each row, and not five."""
    monkeypatch.setattr("embryo_core.results.bounds.MOST_CELLS", 8)

    def scores(groups: str, steps: str) -> pa.Table:
        return rows(SCORES, "group", *groups).set_column(1, "step", pa.array(map(int, steps), pa.int64()))

    check_keys(SCORES, scores("abcda", "11223"))
    with pytest.raises(ValueError, match="5 rows would be a table of 25 cells"):
        check_keys(SCORES, scores("abcde", "12345"))
