"""Curves of several runs in one figure: symbol and lightness per run, a colour per category, small multiples of many.

Dashed lines are baselines. Every point has the numbers of all runs there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis

FEW = 6  # lines in one panel
ACROSS = 2  # small multiples in a row
MARKED = 100  # points of a curve whose markers are large
ROW = 190  # pixels of a small multiple


@dataclass(frozen=True)
class Curves:
    """How the curves of a page are drawn; the fields in the middle are columns of its table."""

    by: str  # the category of a row
    value: str
    low: str | None
    high: str | None
    label: Callable[[str], str]
    styles: Callable[[Sequence[str]], Mapping[str, tuple[str, str]]]  # colour, and symbol in a run alone, of categories
    y_title: str
    tickformat: str
    decimals: str  # of a value that is pointed at, as Python formats it
    baseline: str | None = None  # column of the baseline
    band: str = "95 % band"  # what goes from low to high
    across: int = ACROSS  # small multiples in a row
    kept: tuple[str, ...] = ()  # further columns of the table, which its file has
    width: int | None = None  # pixels of small multiples, however few lines there are; else as wide as the page

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """A page's table as `overlay` takes it: curve, step, n, value, low, high, baseline, then those `kept`.

        The last three of the named ones may be missing.
        """
        columns = {"curve": self.by, "step": "step", "n": "n", "value": self.value, "low": self.low, "high": self.high}
        columns |= {"baseline": self.baseline} | {name: name for name in self.kept}
        missing = pd.Series(np.nan, table.index)
        return pd.DataFrame({name: table.get(of, missing) for name, of in columns.items()})


@dataclass(frozen=True, eq=False)
class Line:
    """One run, or the seeds of one design: its name, its axis, and its `rows` (see `Curves.rows`)."""

    name: str
    axis: StepAxis
    rows: pd.DataFrame
    seeds: int = 1  # whose mean the rows are


def overlay(lines: Sequence[Line], curves: Curves, steps: Sequence[int], bands: bool = True) -> go.Figure:
    """The curves of all `lines`, at least one, the first being the run whose `steps` the time bar has.

    Every point has as customdata its category, and the step of the first run at which it lies, or the last before.
    """
    styles = curves.styles(list(dict.fromkeys(name for line in lines for name in line.rows["curve"])))
    in_one = not curves.width and (len(styles) == 1 or len(styles) * len(lines) <= FEW)
    across = 1 if in_one else min(curves.across, len(styles))
    down = 1 if in_one else -(-len(styles) // across)
    titles = None if in_one else [style.plain(curves.label(name)).replace("\n", "<br>") for name in styles]
    height = 430 if in_one else 90 + ROW * down
    room = 0 if in_one else 34 + 24 * max(title.count("<br>") for title in titles)
    gaps = {"vertical_spacing": room / height, "horizontal_spacing": 0.24 / across} if not in_one else {}
    figure = make_subplots(down, across, shared_xaxes="all", subplot_titles=titles, **gaps)
    for i, (name, own) in enumerate(styles.items()):
        panel = (1, 1) if in_one else (i // across + 1, i % across + 1)
        for line, drawn in _panel(lines, name, curves, own, bands, steps):
            if not in_one:
                drawn.update_traces(legendgroup=line.name, showlegend=False)
            figure.add_traces(drawn.data, rows=panel[0], cols=panel[1])
        figure.add_traces(_baselines(lines, name, curves, own[0]), rows=panel[0], cols=panel[1])
    if any(line.rows["baseline"].notna().any() for line in lines):
        style.explain_baselines(figure, "baseline")
    _finish(figure, lines, curves, height, steps, 1 if in_one else len(styles))
    if curves.width:
        figure.update_layout(width=curves.width, margin={"t": 30 + room}, legend={"y": 1 + room / height})
    return figure if in_one else _key(figure, lines)


def _panel(
    lines: Sequence[Line], category: str, curves: Curves, own: tuple[str, str], bands: bool, steps: Sequence[int]
) -> Iterator[tuple[Line, go.Figure]]:
    """Each run that has this category, with its curve, broken at its gaps."""
    there = {line: rows for line in lines if len(rows := line.rows[line.rows["curve"] == category])}
    texts = _hover(there, curves, category)
    along, (colour, symbol) = lines[0].axis.values(steps), own
    for line, rows in there.items():
        figure, x = go.Figure(), line.axis.values(rows["step"])
        of_run, opacity = style.run_look(lines.index(line))
        name = f"{style.plain(curves.label(category))}, {style.plain(line.name)}"
        banded = rows[rows["low"].notna()]
        if bands and len(banded):
            band = "seeds" if line.seeds > 1 else curves.band
            style.add_band(figure, line.axis.values(banded["step"]), banded["low"], banded["high"], colour, name, band)
        at = [steps[max(0, int(np.searchsorted(along, value, side="right")) - 1)] for value in x]
        smoothing.add_curve(
            figure,
            x,
            rows,
            "value",
            name,
            colour,
            marker={"symbol": of_run if len(lines) > 1 else symbol, "size": 6 if len(rows) <= MARKED else 3},
            customdata=np.array([[category, *point] for point in zip(at, texts[line], strict=True)], dtype=object),
            hovertemplate="%{customdata[2]}<extra></extra>",
        )
        line.axis.set_curves(figure)
        figure.update_traces(opacity=opacity)
        yield line, figure


def _baselines(lines: Sequence[Line], category: str, curves: Curves, colour: str) -> list[go.Scatter]:
    """A thin dashed line at the baseline of a category: one where all runs have the same, else one as light as each."""
    there = {line: line.rows[(line.rows["curve"] == category) & line.rows["baseline"].notna()] for line in lines}
    there = {line: rows for line, rows in there.items() if len(rows)}
    levels = np.concatenate([np.zeros(0), *(rows["baseline"] for rows in there.values())])
    shared = len(there) > 1 and np.ptp(levels) == 0
    traces = []
    for line, rows in there.items():
        of = "all runs" if shared else style.plain(line.name)
        texts = f"{style.plain(curves.label(category))}, baseline of {of}: %{{y:{curves.decimals}}}<extra></extra>"
        group = f"{style.plain(curves.label(category))}, {of}"
        traces.append(
            go.Scatter(
                x=line.axis.values(rows["step"]),
                y=rows["baseline"],
                mode="lines",
                line={"color": colour, "width": 1, "dash": "dash"},
                opacity=1 if shared else style.run_look(lines.index(line))[1],
                name=f"{group}, baseline",
                legendgroup=group,
                showlegend=False,
                hovertemplate=texts,
            )
        )
    return [max(traces, key=lambda trace: max(trace.x))] if shared else traces


def _hover(there: Mapping[Line, pd.DataFrame], curves: Curves, category: str) -> dict[Line, list[str]]:
    """What the pointer shows at each point: each run's measure nearest to it on the axis, the point's own in bold."""
    scaled = np.log if next(iter(there)).axis.scale == "log" else np.asarray
    positions = {line: scaled(line.axis.values(rows["step"])) for line, rows in there.items()}
    words = {line: [_measure(row, curves, line.axis) for row in rows.itertuples()] for line, rows in there.items()}
    names = {line: style.plain(line.name) for line in there}
    texts = {}
    for line in there:
        near = {one: [int(np.abs(positions[one] - place).argmin()) for place in positions[line]] for one in there}
        shown = {one: f"<b>{name}</b>" if one is line else name for one, name in names.items()}
        texts[line] = [
            f"<b>{style.plain(curves.label(category))}</b><br>"
            + "<br>".join(f"{shown[one]}, {words[one][near[one][point]]}" for one in there)
            for point in range(len(positions[line]))
        ]
    return texts


def _measure(row: tuple, curves: Curves, axis: StepAxis) -> str:
    """A row in words: its step, value, interval and n."""
    value, low, high = (f"{one:{curves.decimals}}".replace("%", " %") for one in (row.value, row.low, row.high))
    between = "" if pd.isna(row.low) else f" ({low} to {high})"
    n = "" if pd.isna(row.n) else f", n = {int(row.n):,}"
    return f"{axis.point(int(row.step))}: {value}{between}{n}"


def _key(figure: go.Figure, lines: Sequence[Line]) -> go.Figure:
    """A legend of the runs, by which each comes and goes in all panels."""
    for i, line in enumerate(lines):
        symbol, opacity = style.run_look(i)
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="lines+markers",
            line={"color": style.GREY, "width": 2.2},
            marker={"symbol": symbol, "size": 8},
            opacity=opacity,
            name=style.plain(line.name),
            legendgroup=line.name,
        )
    return figure


def changes_alike(lines: Sequence[Line]) -> bool:
    """Whether training changed in the same way at the same places of the axis in all runs."""
    places = [[*zip(line.axis.values([one.step for one in line.axis.changes]), line.axis.changes)] for line in lines]
    return all(own == places[0] for own in places)


def _mark_changes(figure: go.Figure, lines: Sequence[Line], panels: Sequence[str]) -> None:
    """Mark changes in training: once where all runs have the same at the same places, else each as light as its run."""
    shared = changes_alike(lines)
    for i, line in enumerate(lines[:1] if shared else lines):
        _, opacity = style.run_look(i)
        line.axis.mark_changes(figure, line.rows["step"], "" if shared else line.name, opacity, panels)


def _finish(
    figure: go.Figure, lines: Sequence[Line], curves: Curves, height: int, steps: Sequence[int], panels: int
) -> None:
    style.finish(figure, "" if panels > 1 else curves.y_title, height=height)
    first = lines[0].axis
    counts = [count for line in lines for count in line.axis.counts([line.rows["step"].min(), line.rows["step"].max()])]
    first.set_ends(figure, min(counts), max(counts))
    numbers = [str(panel + 1) if panel else "" for panel in range(panels)]
    _mark_changes(figure, lines, numbers)
    for number in numbers:
        first.mark_step(figure, max(steps), number)
    tickformat = ".3~p" if panels > 1 and curves.tickformat.endswith("%") else curves.tickformat
    style.set_axes(figure, "y", tickformat=tickformat, rangemode="tozero" if tickformat else "normal")
    if panels > 1:
        style.set_axes(figure, "x", title={"text": ""}, nticks=5, tickangle=0)
        figure.update_layout(margin={"t": 64}, legend={"y": 1 + 30 / height})
        figure.update_annotations(font={"size": style.FONT})
        figure.update_xaxes(title_text=first.title, row=-(-panels // curves.across), col=1)
