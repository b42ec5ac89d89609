"""Tests of the search in the tables of pages."""

import pandas as pd

from app.tables import search

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
