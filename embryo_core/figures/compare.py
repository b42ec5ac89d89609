"""Figures of the Compare page: acquisition run beside run, and what a choice of design changed."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import style, tags
from embryo_core.figures.step_axis import StepAxis
from embryo_core.figures.tokens import steepness
from embryo_core.words import percent, point

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


def acquisitions_figure(table: pd.DataFrame, axes: Sequence[tuple[str, StepAxis]], steps: Sequence[int]) -> go.Figure:
    """Rows of `compare.acquisitions`: a row per category, in it a mark with its interval per run.

    `axes` has the runs by name with their axes, the first being the run whose `steps` the time bar has; categories
    stand in its order.
    """
    there, figure = table.dropna(subset="onset"), go.Figure()
    names = [name for name, _ in axes]
    of_runs = [there[there["run"] == name] for name in names]
    order = list(dict.fromkeys(group for rows in of_runs for group in rows["group"]))
    for i, (rows, (_, axis)) in enumerate(zip(of_runs, axes, strict=True)):
        heights = [len(order) - 1 - order.index(group) - _shift(i, len(axes)) for group in rows["group"]]
        _add_intervals(figure, rows, heights, axis, style.run_look(i)[0])
    first = axes[0][1]
    _set_ends(figure, of_runs, [axis for _, axis in axes], steps)
    first.mark_step(figure, max(steps))
    style.finish(figure, "", height=110 + (16 + 14 * len(axes)) * max(1, len(order)))
    labels = [style.plain(tags.named(group)) for group in order]
    ticks = {"tickvals": [len(order) - 1 - i for i in range(len(order))], "ticktext": labels}
    return style.set_axes(figure, "y", **ticks, showgrid=False, range=[-0.6, len(order) - 0.4])


def _set_ends(
    figure: go.Figure, of_runs: Sequence[pd.DataFrame], axes: Sequence[StepAxis], steps: Sequence[int]
) -> None:
    """From the first of the steps to the last, or to a later end of an interval in a run that goes on."""
    first = axes[0]
    ends = [(axis, int(rows["latest"].fillna(rows["onset"]).max())) for rows, axis in zip(of_runs, axes) if len(rows)]
    counts = [*first.counts([min(steps), max(steps)]), *(count for axis, end in ends for count in axis.counts([end]))]
    first.set_ends(figure, min(counts), max(counts))
    if first.scale == "log":
        reach = np.log10([first.values([min(steps)])[0], max(counts)])
        margin = 0.02 * (reach[1] - reach[0])
        style.set_axes(figure, "x", range=[reach[0] - margin, reach[1] + margin])


def _shift(i: int, runs: int) -> float:
    """How far below the middle of a row the i-th of so many runs lies."""
    return SPREAD * (i / (runs - 1) - 0.5) if runs > 1 else 0.0


def _add_intervals(
    figure: go.Figure, rows: pd.DataFrame, heights: Sequence[float], axis: StepAxis, symbol: str
) -> None:
    """The categories of one run; the marks of a run have one symbol, the colours are those of the categories."""
    if rows.empty:
        return
    name = style.plain(rows["run"].iloc[0])
    for row, height in zip(rows.itertuples(), heights, strict=True):
        ends = [row.earliest, row.onset if pd.isna(row.latest) else row.latest]
        line = {"color": style.faint(style.colour(row.group), 0.45), "width": 3}
        quiet = {"legendgroup": name, "showlegend": False, "hoverinfo": "skip"}
        figure.add_scatter(x=axis.values(ends), y=[height] * 2, mode="lines", line=line, **quiet)
    texts = [
        f"<b>{style.plain(tags.named(row.group))}</b>, {name}: {axis.point(int(row.onset))} ({row.earliest:,} "
        + ("or later" if pd.isna(row.latest) else f"to {row.latest:,}")
        + f")<br>last accuracy {percent(row.last)}, n = {row.n:,} words{steepness(row, axis.counted_in)}"
        for row in rows.itertuples()
    ]
    figure.add_scatter(
        x=axis.values(rows["onset"]),
        y=list(heights),
        mode="markers",
        name=name,
        legendgroup=name,
        marker={"symbol": symbol, "size": 10, "color": [style.colour(group) for group in rows["group"]]},
        text=texts,
        hovertemplate="%{text}<extra></extra>",
    )


def differences_figure(table: pd.DataFrame, counted_in: Mapping[str, str]) -> go.Figure:
    """Rows of `compare.differences` with the column run: a row per measure, in it an interval per run.

    `counted_in` has what the steps of each run count.
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
            text=[point(step, counted_in[run]) for step in rows["step_second"].astype(int)],
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
