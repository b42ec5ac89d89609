"""Tests that tables have the columns of their rows in Findings, plus those that the store adds."""

from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from embryo_core.measurements import Findings
from embryo_core.results.tables import ATTENTION, TABLES, Table

ROWS = {name: get_args(hint)[0] for name, hint in get_type_hints(Findings).items()}


def test_every_list_of_findings_has_a_table():
    """The table has the name of the list."""
    assert sorted(table.name for table in TABLES) == sorted(ROWS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_are_the_fields_of_a_row(table: Table):
    """The store adds `evaluation` and `step` in front, and the length of a map."""
    own = {field.name for field in fields(ROWS[table.name])} | ({"length"} if table is ATTENTION else set())
    assert set(table.columns) == own
    assert table.schema.names[:2] == ["evaluation", "step"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_keys_are_columns(table: Table):
    """Rows are sorted by key."""
    assert set(table.key) <= set(table.schema.names)
