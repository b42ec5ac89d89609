"""Lines of the Markdown tables of data/demo/tables.md, and the steps that are their columns."""

from collections.abc import Iterable, Iterator

import pandas as pd

from embryo_core.curves import interval
from embryo_core.curves.step_scales import log_spaced

DOUBLINGS = 4  # a table's steps are from the last DOUBLINGS doublings of the step
MAX_STEPS = 7  # largest number of a table's steps from these doublings


def table_steps(steps: Iterable[int]) -> list[int]:
    """Return the steps that a table shows: the first, and at most MAX_STEPS of the last doublings."""
    ascending = sorted(int(step) for step in steps)
    late = [step for step in ascending if step * 2**DOUBLINGS >= ascending[-1] > 0]
    return sorted({*ascending[:1], *log_spaced(late, MAX_STEPS)})


def header(name: str, steps: Iterable[int], *columns: str) -> list[str]:
    """Return the two header lines of a table with a column for each step."""
    cells = [name, *(f"{step:,}" for step in steps), *columns]
    return [line(*cells), line(*["---"] * len(cells))]


def row(name: str, values: pd.Series, *numbers: float | None) -> str:
    """Return a line of a table: a name, and numbers as `cell` formats them."""
    return line(name, *map(cell, values), *map(cell, numbers))


def cell(value: float | None) -> str:
    """Format a number: an integer with thousands separators, a float with three decimals; "" if it is missing."""
    if value is None or pd.isna(value):
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def line(*cells: object) -> str:
    """Join cells to a line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def interval_header(name: str, *columns: str) -> Iterator[str]:
    """Yield the two header lines of a table of accuracies with their intervals."""
    yield line(name, "length", *columns, "accuracy", "95 % interval", "n")
    yield line(*["---"] * (5 + len(columns)))


def interval_row(masking: str, length: int, cells: Iterable[str], accuracy: float, n: int) -> str:
    """Return a row of a table with `interval_header`: an accuracy over `n`, with its 95 % interval."""
    low, high = interval(accuracy, n)
    return line(masking, length, *cells, f"{accuracy:.3f}", f"{low:.3f} to {high:.3f}", f"{n:,}")
