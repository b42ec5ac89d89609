"""Lines of a figure of curves: which columns of a table they show, and how the line of each run looks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from embryo_core.figures import style
from embryo_core.figures.axis import StepAxis

MAX_PANEL_LINES = 6  # largest number of lines of several runs in one panel


@dataclass(frozen=True)
class Curves:
    """How the rows of a table become curves: `by`, and `value` to `baseline`, name its columns."""

    by: str  # category
    y_title: str
    metric: str = ""  # the metric whose results the table has, if any
    value: str = "value"
    low: str = "low"  # lower end of the band, which is drawn if the table has both ends
    high: str = "high"
    baseline: str | None = None
    label: Callable[[Any], str] = str  # name of a category
    # colour and symbol of each category
    styles: Callable[[Sequence[Any]], Mapping[Any, tuple[str, str]]] = style.default_styles
    tickformat: str | None = None  # by default whole percents if `decimals` are percents
    decimals: str = ".1%"  # Python's format of values in hover texts
    unit: str = ""  # what n counts, such as "words"
    bands: bool = True
    band: str = "95 % band"
    baseline_name: str = "baseline"
    describe_baseline: Callable[[Any], str] | None = None  # hover text of a row's baseline
    panels_per_row: int = 2
    width: int | None = None  # pixels of a figure that always has panels; None: the width of the page
    height: int = 430  # pixels without panels
    from_zero: bool = True  # whether the vertical axis begins at zero
    emphasis: Mapping[Any, float] = field(default_factory=dict)  # size of a category's line and markers, 1 by default

    @property
    def column_names(self) -> dict[str, str | None]:
        """Return the column of a table behind each column of `rows`; step and n keep their names."""
        return {"curve": self.by, "value": self.value, "low": self.low, "high": self.high, "baseline": self.baseline}

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the columns curve, step, n, value, low, high, baseline (NaN for missing columns).

        If `describe_baseline` is set, the column of_baseline has the hover texts of baselines.
        """
        columns: dict[str, Any] = self.column_names | {"step": "step", "n": "n"}
        missing = pd.Series(np.nan, table.index)
        rows = pd.DataFrame({name: table.get(column, missing) for name, column in columns.items()})
        if self.describe_baseline:
            has_baseline = rows["baseline"].notna()
            rows.loc[has_baseline, "of_baseline"] = [*map(self.describe_baseline, table[has_baseline].itertuples())]
        return rows

    def restore_names(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return `rows` with the column names of the original table."""
        return rows.rename(columns={name: column for name, column in self.column_names.items() if column})


@dataclass(frozen=True, eq=False)
class Line:
    """One run, or the seeds of one design: its name, axis, `rows` (see `Curves.rows`) and table as exported."""

    name: str
    axis: StepAxis
    rows: pd.DataFrame
    table: pd.DataFrame
    seeds: int = 1  # seeds averaged in the rows


def categories(lines: Sequence[Line]) -> list[str]:
    """Return the categories of all lines; for a single line, the one with the highest last value first."""
    if len(lines) > 1:
        return list(dict.fromkeys(name for line in lines for name in line.rows["curve"]))
    last_values = lines[0].rows.groupby("curve", sort=False)["value"].last()
    return last_values.sort_values(ascending=False, kind="stable").index.tolist()


def in_panels(lines: Sequence[Line], curves: Curves) -> bool:
    """Return whether each category has a panel: always if the figure has a width, else if there are many lines."""
    category_count = len(categories(lines))
    return bool(curves.width) or (
        len(lines) > 1 and category_count > 1 and category_count * len(lines) > MAX_PANEL_LINES
    )


def any_baseline(lines: Sequence[Line]) -> bool:
    """Return whether any of the lines has a baseline."""
    return any(line.rows["baseline"].notna().any() for line in lines)


def same_changes(lines: Sequence[Line]) -> bool:
    """Return whether training changed in the same way at the same positions of the axis in all runs."""
    positions = [
        [*zip(line.axis.values([change.step for change in line.axis.changes]), line.axis.changes)] for line in lines
    ]
    return all(line_positions == positions[0] for line_positions in positions)


def look_of(i: int, lines: Sequence[Line], look: tuple[str, str], panels: bool) -> tuple[str, str, float]:
    """Return the colour, symbol and opacity of the i-th line; a single line has the look of its category.

    Several lines have the symbols of their runs: in panels with the runs' colours, else with the category's colour in
    the runs' opacities.
    """
    if len(lines) == 1:
        return *look, 1.0
    symbol, opacity = style.run_look(i)
    return (style.PALETTE[i % len(style.PALETTE)], symbol, 1.0) if panels else (look[0], symbol, opacity)
