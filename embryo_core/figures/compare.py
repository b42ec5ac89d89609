"""Figures of the Compare page: acquisition run beside run, and what a choice of design changed."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import style
from embryo_core.types import StepUnit
from embryo_core.words import point

HOVERED = ("measure", "first", "second", "low", "high", "n_first", "n_second")
POINTS = 100  # percentage points of a difference of 1
UNKNOWN = "–"
LEAST = 1  # percentage point, to which a figure of differences reaches on both sides
SPREAD = 0.5  # of a row's height, over which its runs lie


def design_table(designs: pd.DataFrame, seeds: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Rows of `compare.designs` as people read them, each value as text: differs ("≠" or nothing), row, the `seeds`.

    These are the names of the runs of each design. Where they differ, numbers are a mean with its range, but those of
    the seed and texts are listed.
    """
    shown = designs[["row"]].assign(
        **{
            name: [_of_seeds(row, designs.loc[i, list(runs)].tolist()) for i, row in designs["row"].items()]
            for name, runs in seeds.items()
        }
    )
    shown.insert(0, "differs", ["≠" if len(set(row)) > 1 else "" for row in shown[list(seeds)].to_numpy().tolist()])
    return shown


def _of_seeds(row: str, values: Sequence[str | float | None]) -> str:
    """The value of one row in all runs of a design."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return _written(distinct[0])
    if row == "seed" or not all(isinstance(value, int | float) for value in distinct):
        return ", ".join(map(_written, distinct))
    return f"{_written(sum(values) / len(values))} ({_written(min(values))} to {_written(max(values))})"


def _written(value: str | float | None) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value
    whole = float(value).is_integer()
    return f"{round(value):,}" if 1e12 > value >= 1000 or whole and value < 1e12 else f"{value:.3g}"


def _shift(i: int, runs: int) -> float:
    """How far below the middle of a row the i-th of so many runs lies."""
    return SPREAD * (i / (runs - 1) - 0.5) if runs > 1 else 0.0


def differences_figure(table: pd.DataFrame, units: Mapping[str, StepUnit]) -> go.Figure:
    """Rows of `compare.differences` with the column run: a row per measure, in it an interval per run.

    `units` has what the steps of each run count.
    """
    table = table.dropna(subset="difference")
    figure, measures = go.Figure(), list(dict.fromkeys(table["measure"]))
    runs = list(dict.fromkeys(table["run"]))
    for i, run in enumerate(runs):
        rows = table[table["run"] == run]
        colour = style.PALETTE[i % len(style.PALETTE)]
        figure.add_scatter(
            x=POINTS * rows["difference"],
            y=[len(measures) - 1 - measures.index(measure) - _shift(i, len(runs)) for measure in rows["measure"]],
            error_x={
                "type": "data",
                "array": POINTS * (rows["high"] - rows["difference"]),
                "arrayminus": POINTS * (rows["difference"] - rows["low"]),
                "color": colour,
                "thickness": 2,
                "width": 0,
            },
            mode="markers",
            name=style.plain(run),
            marker={"color": colour, "symbol": style.SYMBOLS[i % len(style.SYMBOLS)], "size": 9},
            customdata=rows.assign(low=POINTS * rows["low"], high=POINTS * rows["high"])[[*HOVERED]].to_numpy(object),
            text=[point(step, units[run]) for step in rows["step_second"].astype(int)],
            hovertemplate="<b>%{customdata[0]}</b>, %{text}: %{x:+.1f} points (%{customdata[3]:+.1f} to "
            "%{customdata[4]:+.1f})<br>%{customdata[1]:.1%} (n = %{customdata[5]:,}), then %{customdata[2]:.1%} "
            "(n = %{customdata[6]:,})<extra></extra>",
        )
    style.finish(figure, "", height=130 + (18 + 12 * len(runs)) * len(measures))
    figure.add_vline(0, line={"color": style.GREY, "width": 1.5, "dash": "dot"})
    style.set_axes(figure, "x", title={"text": "difference of accuracy, percentage points"}, tickformat=".3~g")
    if POINTS * table[["low", "high"]].abs().to_numpy().max() < LEAST:  # Plotly would show from -1 to 1
        style.set_axes(figure, "x", range=[-LEAST, LEAST])
    ticks = {"tickvals": [len(measures) - 1 - i for i in range(len(measures))], "ticktext": measures}
    return style.set_axes(figure, "y", **ticks, showgrid=False, range=[-0.6, len(measures) - 0.4])
