"""What a browser sends, taken only where it is what the page would send: anybody can send anything."""

from collections.abc import Callable, Container, Sequence
from inspect import signature
from typing import Any


def member(message: Any, allowed: Container[Any], kind: type = int) -> Any:
    """The message where it is one of the allowed values, else None; `kind` is their type, which True and 1.0 lack."""
    return message if type(message) is kind and message in allowed else None


def field(message: Any, name: str) -> Any:
    """A field of a message that is an object; None where it is none, or lacks the field."""
    return message.get(name) if isinstance(message, dict) else None


def clicked_values(state: Any, handler: Callable[..., None]) -> list[Any]:
    """The first of the customdata of the point that was clicked in a figure, as many as the handler has parameters.

    Empty where there is no point, or where they are not of the types by which the parameters are annotated.
    """
    kinds = [parameter.annotation for parameter in signature(handler).parameters.values()]
    points = field(field(state, "selection"), "points")
    values = field(points[0], "customdata") if isinstance(points, list) and points else None
    taken = values[: len(kinds)] if isinstance(values, list) else []
    return taken if [type(value) for value in taken] == kinds else []


def clicked_row(state: Any, count: int) -> int | None:
    """The row whose cell was clicked in a table of so many rows, from 0; None where there is none."""
    cell = _clicked_cell(state)
    return member(cell[0], range(count)) if cell else None


def clicked_column(state: Any, allowed: Container[str]) -> str | None:
    """The column whose cell was clicked in a table, where it is one of the allowed ones, else None."""
    cell = _clicked_cell(state)
    return member(cell[1], allowed, str) if len(cell) > 1 else None


def _clicked_cell(state: Any) -> Sequence[Any]:
    """Row and column of the cell that was clicked, as they were sent; empty where there is none."""
    cells = field(field(state, "selection"), "cells")
    first = cells[0] if isinstance(cells, list) and cells else None
    return first if isinstance(first, (list, tuple)) else ()
