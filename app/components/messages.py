"""Checks of messages from the browser, which may be forged: only what the page itself can send is accepted."""

from collections.abc import Callable, Container, Sequence
from inspect import signature
from typing import Any

import streamlit as st


def message_of(key: str, name: str = "") -> Any:
    """Return the message of the widget `key`, or its field `name`; None if another page has been opened meanwhile."""
    message = st.session_state.get(key)
    return field(message, name) if name else message


def member(message: Any, allowed: Container[Any], kind: type = int) -> Any:
    """Return the message if it is an allowed value of exactly this type (True is not an int), else None."""
    return message if type(message) is kind and message in allowed else None


def field(message: Any, name: str) -> Any:
    """Return a field of a message; None if the message is not an object or lacks the field."""
    return message.get(name) if isinstance(message, dict) else None


def clicked_values(state: Any, handler: Callable[..., None]) -> list[Any]:
    """Return the first values of the clicked point's customdata, one for each parameter of the handler.

    Empty if no point was clicked, or if a value is not exactly of its parameter's annotated type; `object` accepts any.
    """
    kinds = [parameter.annotation for parameter in signature(handler).parameters.values()]
    points = field(field(state, "selection"), "points")
    values = field(points[0], "customdata") if isinstance(points, list) and points else None
    taken = values[: len(kinds)] if isinstance(values, list) else []
    fits = [kind is object or type(value) is kind for kind, value in zip(kinds, taken)]
    return taken if len(fits) == len(kinds) and all(fits) else []


def clicked_row(state: Any, count: int) -> int | None:
    """Return the clicked row of a table of `count` rows, from 0; None if no valid row was clicked."""
    cell = _clicked_cell(state)
    return member(cell[0], range(count)) if cell else None


def clicked_column(state: Any, allowed: Container[str]) -> str | None:
    """Return the clicked column of a table if it is one of the allowed ones, else None."""
    cell = _clicked_cell(state)
    return member(cell[1], allowed, str) if len(cell) > 1 else None


def _clicked_cell(state: Any) -> Sequence[Any]:
    """Return (row, column) of the clicked cell, unchecked; empty if no cell was clicked."""
    cells = field(field(state, "selection"), "cells")
    first = cells[0] if isinstance(cells, list) and cells else None
    return first if isinstance(first, (list, tuple)) else ()
