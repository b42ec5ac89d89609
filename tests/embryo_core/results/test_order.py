"""Rows come in the order of their key, as pyarrow sorts them."""

import numpy as np
import pyarrow as pa
import pytest

from embryo_core.results import order
from embryo_core.results.tables import ANSWERS, CLOZE, PROBES, SCORES, Table

TEXTS = ["", "a", "B", "z", "é", "zz", "\U0001f600", "Ω"]


def shuffled(table: Table, rows: int, columns: list[str]) -> pa.Table:
    """Rows drawn at random, layers and groups missing at times; their numbers tell them apart."""
    drawn = np.random.default_rng(len(columns))
    found = {}
    for name in columns:
        kind = table.all_columns[name]
        some = drawn.integers(-3 if kind == "int64" else 0, len(TEXTS), rows)
        values = {"string": [TEXTS[i] for i in some], "bool": (some > 3).tolist()}.get(kind, (some * 10**9).tolist())
        empty = drawn.random(rows) < (0.3 if name in ("layer", "group") else 0)
        found[name] = pa.array([None if gone else value for gone, value in zip(empty, values, strict=True)])
    return pa.table(found | {"number": np.arange(rows)})


@pytest.mark.parametrize("table", [SCORES, CLOZE, PROBES, ANSWERS], ids=lambda table: table.name)
@pytest.mark.parametrize("most", [2, order.MOST])
def test_rows_are_sorted_as_pyarrow_sorts_them(table, most, monkeypatch):
    """Texts by their bytes, negative numbers first, no value last; whatever a number of a row has room for."""
    monkeypatch.setattr(order, "MOST", most)
    for columns in (list(table.key), list(table.key[1:])):
        rows = shuffled(table, 300, columns)
        expected = rows.sort_by([(name, "ascending") for name in (*columns, "number")])
        assert order.sort(table, rows).equals(expected)


def test_rows_in_order_are_left_alone():
    """No row and sorted rows come back as they are."""
    rows = pa.table({"metric": ["a", "a", "b"], "step": [1, 2, 0]})
    assert order.sort(SCORES, rows) is rows
    assert order.sort(SCORES, rows.slice(0, 0)).num_rows == 0
