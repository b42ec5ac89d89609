"""Tables of every page: rows to search, to filter and to click, and ranked words."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn, ProgressColumn, TextColumn

from app.components import messages
from app.pickers import pick_one
from embryo_core.curves import HISTORIES
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.markdown import literal

MIN_PERCENT = 5e-5  # probability: a smaller one would be shown as 0.00 %
ANY = "any"  # in a picker of histories: every history
PERCENT: dict[str, Any] = {"format": "percent", "step": 0.001}  # options of a column of shares


def steps_in_unit(
    table: pd.DataFrame, axis: StepAxis, columns: Mapping[str, Mapping[str, Any]], width: int | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Convert columns of steps to the unit of the axis; return the table, and the settings of these columns.

    `columns` maps each of them to its label and help; `width` is that of each, in pixels.
    """
    form: Any = "localized" if axis.progress is None else "percent" if axis.unit == "share" else "compact"
    converted = table.assign(**{name: axis.column(table[name]) for name in columns})
    return converted, {name: NumberColumn(**texts, format=form, width=width) for name, texts in columns.items()}


def correlation_columns(value: str, width: int | None = None) -> dict[str, Any]:
    """Return the settings of the columns of a rank correlation, `value`, and of its interval, low and high."""
    form: dict[str, Any] = {"format": "%.2f", "width": width}
    return {
        value: NumberColumn("rho", help="Spearman's correlation", **form),
        "low": NumberColumn("from", **form),
        "high": NumberColumn("to", **form),
    }


def search(table: pd.DataFrame, columns: Sequence[str], text: str) -> pd.DataFrame:
    """Return the rows in which one of these columns contains a text literally, ignoring case."""
    query = text.strip().casefold()
    texts = [table[name].astype(object).fillna("").str.casefold() for name in columns]
    return table[np.logical_or.reduce([column.str.contains(query, regex=False) for column in texts])]


def pick_history(name: str) -> str:
    """Pick and return one of the histories of facts, pairs or examples, or ANY."""
    return pick_one(name, "History", (ANY, *HISTORIES))


def filter_history(table: pd.DataFrame, history: str) -> pd.DataFrame:
    """Return the rows with a history, or all rows for ANY."""
    return table if history == ANY else table[table["history"] == history]


def show_rows(
    table: pd.DataFrame,
    name: str,
    key: str,
    on_row: Callable[[int], None],
    columns: dict[str, Any],
    height: int | Literal["auto", "content"] = "auto",
    on_cell: Mapping[str, Callable[[int], None]] = MappingProxyType({}),
) -> None:
    """Draw a table whose rows can be clicked in any cell; its `name` is for screen readers.

    `on_row` is called with the number of the clicked row, from 0, before the page is drawn again; `on_cell` has
    handlers that replace it in single columns.
    """

    def clicked() -> None:
        state = messages.message_of(key)
        if (row := messages.clicked_row(state, len(table))) is not None:
            column = messages.clicked_column(state, on_cell)
            on_cell.get(column or "", on_row)(row)

    st.dataframe(
        table,
        alt=name,
        hide_index=True,
        key=key,
        on_select=clicked,
        selection_mode="single-cell",
        placeholder="–",
        column_config=columns,
        height=height,
    )


def show_wrapped(table: pd.DataFrame, name: str, key: str) -> None:
    """Draw a small table whose cells wrap, unlike those of `st.dataframe`; every cell must be text."""
    with st.container(key=f"wrapped_{key}"):
        st.table(table.map(literal).rename(columns=literal), hide_index=True, width="content", alt=name)


def show_ranking(table: pd.DataFrame, title: str, key: str, bars: bool = True) -> None:
    """Draw ranked words (columns rank, token, probability) as plain text; `title` is the heading of the words' column.

    Without `bars` for the probabilities, the table is narrow. Answers of several words ("words") are the last column,
    since they can be wider than the table.
    """
    small = len(table) > 0 and table["probability"].min() < MIN_PERCENT
    number = "%.1e" if small else "percent"
    bar = ProgressColumn("probability", format=number, min_value=0, max_value=1)
    columns = {
        "rank": TextColumn("rank", width=44, alignment="right"),
        "token": TextColumn(title, width=None if bars else 84),
        "probability": bar if bars else NumberColumn("probability", format=number, width=72),
    }
    order = ["rank", "probability", "token"] if title == "words" else list(columns)
    name = f"Answers: {title}" if bars else f"Answers of a cell: {title}"
    st.dataframe(table, alt=name, column_config=columns, column_order=order, hide_index=True, key=key)
