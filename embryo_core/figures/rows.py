"""Plots of rows: a row for each name, with a mark and its interval for each run."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import style

RUN_SPREAD = 0.5  # fraction of a row's height over which its runs are spread


def shift(i: int, run_count: int) -> float:
    """Return the distance of the i-th run's mark below the middle of its row, as a fraction of the row's height."""
    return RUN_SPREAD * (i / (run_count - 1) - 0.5) if run_count > 1 else 0.0


def error_bar(value: Any, low: Any, high: Any, colour: str) -> dict[str, Any]:
    """Return Plotly's error bar from `low` to `high` around each `value`, arrays or columns."""
    bar = {"type": "data", "symmetric": False, "color": colour, "thickness": 2, "width": 0}
    return bar | {"array": high - value, "arrayminus": value - low}


def set_rows(figure: go.Figure, names: Sequence[str]) -> go.Figure:
    """Give a figure a row for each name, the first on top; the lowest has its middle at 0."""
    last = len(names) - 1
    ticks = {"tickvals": [*range(last, -1, -1)], "ticktext": [*map(style.escape_text, names)]}
    return style.set_axes(figure, "y", **ticks, showgrid=False, range=[-0.6, last + 0.6])


def places(table: pd.DataFrame) -> pd.Series:
    """Return the y of the mark of each `row` and `run` of a table; runs are spread over the height of a row."""
    rows, runs = list(dict.fromkeys(table["row"])), list(dict.fromkeys(table["run"]))
    offsets = {run: shift(i, len(runs)) for i, run in enumerate(runs)}
    return len(rows) - 1 - table["row"].map(rows.index) - table["run"].map(offsets)


def plot_rows(table: pd.DataFrame, title: str) -> go.Figure:
    """Plot marks with their intervals, and a line at 0.

    `table` has the columns row, run, value, low, high, n and optionally text, which replaces the default hover texts.
    """
    names, heights, plot = list(dict.fromkeys(table["row"])), places(table), go.Figure()
    if "text" not in table:
        table = table.assign(text=[*map(_hover_text, table.itertuples())])
    for i, (run, rows) in enumerate(table.groupby("run", sort=False)):
        colour = style.PALETTE[i % len(style.PALETTE)]
        plot.add_scatter(
            x=rows["value"],
            y=heights[rows.index],
            error_x=error_bar(rows["value"], rows["low"], rows["high"], colour),
            mode="markers",
            name=style.escape_text(str(run)),
            marker={"size": 10, "symbol": style.run_look(i)[0], "color": colour},
            text=rows["text"],
            hovertemplate="%{text}<extra></extra>",
        )
    plot.add_vline(x=0, line=style.DASHED)
    style.finish(plot, "", height=110 + (28 + 12 * len(plot.data)) * len(names))
    style.set_axes(plot, "x", title={"text": title})
    return set_rows(plot, names)


def _hover_text(row: Any) -> str:
    interval = "" if pd.isna(row.low) else f" ({row.low:.2f} to {row.high:.2f})"
    return (
        f"<b>{style.escape_text(row.row)}</b>, {style.escape_text(row.run)}<br>{row.value:.2f}{interval}, n = {row.n}"
    )
