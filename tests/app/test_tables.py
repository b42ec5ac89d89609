"""Tests of the tables of pages: their search, and their columns of steps."""

import pandas as pd
import pytest

from app.tables import search, steps_in_unit
from embryo_core.comparison import StepCounts
from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit

TABLE = pd.DataFrame(
    {
        "word": ["Dog", "cat", "zoo", "<b>a</b>"],
        "category": ["nouns", "nouns", None, None],
        "why": [None, None, "never in the text", None],
    }
)
COLUMNS = ("word", "category", "why")


def test_search_ignores_case_in_all_given_columns():
    assert [*search(TABLE, COLUMNS, "NOUNS")["word"]] == ["Dog", "cat"]
    assert [*search(TABLE, COLUMNS, " never in ")["word"]] == ["zoo"]
    assert [*search(TABLE, ["word"], "DO")["word"]] == ["Dog"]


def test_search_is_literal_and_empty_search_finds_all_rows():
    assert [*search(TABLE, COLUMNS, "<b>")["word"]] == ["<b>a</b>"]
    assert search(TABLE, COLUMNS, "(.*").empty
    assert search(TABLE, COLUMNS, "nan").empty
    assert len(search(TABLE, COLUMNS, "  ")) == len(search(TABLE.astype("category"), COLUMNS, "")) == 4
    assert search(TABLE[:0], COLUMNS, "a").empty


@pytest.mark.parametrize(
    ("unit", "numbers", "form"),
    [("step", [0, 10], "localized"), ("tokens", [0, 2_000], "compact"), ("share", [0, 0.5], "percent")],
)
def test_columns_of_steps_are_in_unit_of_axis(unit: str, numbers: list[float], form: str):
    """Steps are converted and written in that unit; a missing step stays missing, and other columns are unchanged."""
    counts = (0.0, numbers[1], 2.0 * numbers[1])
    progress = None if unit == "step" else StepCounts((0, 10, 20), counts)
    axis = StepAxis("log", unit=unit, progress=progress, step_unit=StepUnit.UPDATES)
    table = pd.DataFrame({"age": pd.array([0, None, 10], "Int64"), "n": [1, 2, 3]})
    converted, columns = steps_in_unit(table, axis, {"age": {"label": "age", "help": "when"}}, 63)
    assert converted["age"].dropna().tolist() == numbers and converted["age"].isna().tolist() == [False, True, False]
    assert converted["n"].tolist() == [1, 2, 3] and set(columns) == {"age"}
    assert (columns["age"]["label"], columns["age"]["type_config"]["format"]) == ("age", form)
