"""The tables have a column for all that a row of findings holds, and no other but those that the store adds."""

from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from embryo_core.results.tables import ATTENTION, TABLES, Table
from embryo_core.types import Findings

ROWS = {name: get_args(hint)[0] for name, hint in get_type_hints(Findings).items()}


def test_every_list_of_findings_has_its_table():
    """With the same name."""
    assert sorted(table.name for table in TABLES) == sorted(ROWS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_are_the_fields_of_a_row(table: Table):
    """After `evaluation` and `step`, which the store adds; of a map its length too."""
    own = {field.name for field in fields(ROWS[table.name])} | ({"length"} if table is ATTENTION else set())
    assert set(table.columns) == own
    assert table.schema.names[:2] == ["evaluation", "step"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_keys_and_groups_are_columns(table: Table):
    """Rows are sorted by the key, so that rows of one group are neighbours."""
    assert set(table.key) <= set(table.schema.names)
    assert table.group == table.key[: len(table.group)]
