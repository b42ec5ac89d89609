"""Plots of curves over the steps: colours and symbols for categories, or for runs; panels, bands, baselines, legend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.file_panels import on_phone
from embryo_core.figures.lines import Curves, Line, any_baseline, categories, in_panels, look_of, same_changes
from embryo_core.words import quantity

MAX_BASELINES = 3  # baselines of one run drawn across the figure; more are strokes at the right end
LARGE_MARKERS = 100  # largest number of points of a curve with large markers
PANEL_HEIGHT = 190  # pixels


def plot_curves(lines: Sequence[Line], curves: Curves, bands: bool = True) -> go.Figure:
    """Return the plot of `lines` (at least one); the time bar has the steps of the first line.

    The customdata of a point are its category, the step of the first line at or before it, and its hover text.
    """
    steps = sorted(set(lines[0].rows["step"]))
    styles = curves.styles(categories(lines))
    panels = in_panels(lines, curves)
    figure, titles_height, height = _grid(styles, curves, panels)
    across = min(curves.panels_per_row, len(styles)) if panels else 1
    shared = _shared_baseline(lines, curves)
    for i, (category, look) in enumerate(styles.items()):
        place = {"rows": i // across + 1 if panels else 1, "cols": i % across + 1 if panels else 1}
        for line, drawn in _plot_category(lines, category, curves, look, bands, steps, panels):
            if panels:
                drawn.update_traces(legendgroup=line.name, showlegend=False)
            figure.add_traces(drawn.data, **place)
        if not shared:
            baselines = _plot_baselines(lines, category, curves, look, 1 if panels else len(styles), panels)
            figure.add_traces(baselines, **place)
    if shared:
        figure.add_trace(shared)
    elif any_baseline(lines):
        many = len(lines) == 1 and not panels and len(styles) > MAX_BASELINES
        strokes = many or lines[0].rows["step"].nunique() == 1
        marker = {"mode": "markers", "marker": _stroke(style.GREY)}
        entry = marker if strokes else {"mode": "lines", "line": style.DASHED}
        figure.add_scatter(x=[None], y=[None], name=curves.baseline_name, **entry)  # the legend's entry of baselines
    _finish(figure, lines, curves, height, steps, len(styles) if panels else 1)
    if curves.width:
        top = 30 + titles_height
        size = {"width": curves.width, "autosize": True}
        figure.update_layout(**size, margin={"t": top}, legend={"y": 1 + titles_height / height})
        figure.update_layout(meta={"phone": on_phone(figure)})
    return _add_run_legend(figure, lines) if panels and len(lines) > 1 else figure


def _grid(styles: Mapping[str, Any], curves: Curves, panels: bool) -> tuple[go.Figure, int, int]:
    """Return an empty figure, the height of panel titles, and the height of the figure, both in pixels."""
    if not panels:
        return go.Figure(make_subplots(1, 1)), 0, curves.height
    across = min(curves.panels_per_row, len(styles))
    down = -(-len(styles) // across)
    titles = [style.escape_text(curves.label(name)).replace("\n", "<br>") for name in styles]
    height = 90 + PANEL_HEIGHT * down
    room = 34 + 24 * max(title.count("<br>") for title in titles)
    gaps = {"vertical_spacing": room / height, "horizontal_spacing": 0.24 / across}
    filled: list[list[dict | None]] = [
        [{} if row * across + i < len(styles) else None for i in range(across)] for row in range(down)
    ]
    figure = make_subplots(down, across, specs=filled, shared_xaxes="all", subplot_titles=titles, **gaps)
    return figure, room, height


def _plot_category(
    lines: Sequence[Line],
    category: str,
    curves: Curves,
    look: tuple[str, str],
    bands: bool,
    steps: Sequence[int],
    panels: bool,
) -> Iterator[tuple[Line, go.Figure]]:
    """Yield each line that has this category, with a figure of its curve and band, broken at its gaps."""
    drawn = {line: rows for line in lines if len(rows := line.rows[line.rows["curve"] == category])}
    texts = _hover_texts(drawn, curves, category)
    along = lines[0].axis.values(steps)
    size, label = curves.emphasis.get(category, 1.0), style.escape_text(curves.label(category))
    for line, rows in drawn.items():
        figure, x = go.Figure(), line.axis.values(rows["step"])
        colour, symbol, opacity = look_of(lines.index(line), lines, look, panels)
        name = label if len(lines) == 1 else f"{label}, {style.escape_text(line.name)}"
        marker = 3 if len(rows) > LARGE_MARKERS else 6 if len(lines) > 1 else 8
        banded = rows[rows["low"].notna()]
        if bands and len(banded):
            band = "± standard error of seeds" if line.seeds > 1 else curves.band
            style.add_band(figure, line.axis.values(banded["step"]), banded["low"], banded["high"], colour, name, band)
        before = np.searchsorted(np.asarray(along), np.asarray(x), side="right") - 1
        previous = np.asarray(steps)[np.maximum(before, 0)].tolist()
        smoothing.add_curve(
            figure,
            x,
            rows,
            "value",
            name,
            colour,
            line={"width": 2.2 * size},
            marker={"symbol": symbol, "size": size * marker},
            customdata=np.array([[category, *pair] for pair in zip(previous, texts[line], strict=True)], dtype=object),
            hovertemplate="%{customdata[2]}<extra></extra>",
        )
        line.axis.set_curves(figure)
        figure.update_traces(opacity=opacity)
        yield line, figure


def _shared_baseline(lines: Sequence[Line], curves: Curves) -> go.Scatter | None:
    """Return one grey line if all categories of a single run have the same baseline at several steps; else None."""
    rows = lines[0].rows
    levels = rows["baseline"].unique()
    if len(lines) > 1 or curves.width or len(levels) > 1 or pd.isna(levels[0]):
        return None
    if rows["curve"].nunique() < 2 or rows["step"].nunique() < 2:  # at a single step the line would have no length
        return None
    hover = f"{curves.baseline_name}: {levels[0]:{curves.decimals}}".replace("%", " %")
    return go.Scatter(
        x=lines[0].axis.values([rows["step"].min(), rows["step"].max()]),
        y=np.repeat(levels, 2),
        mode="lines",
        line=style.DASHED,
        name=curves.baseline_name,
        hovertemplate=f"{hover}<extra></extra>",
    )


def _plot_baselines(
    lines: Sequence[Line], category: str, curves: Curves, look: tuple[str, str], categories: int, panels: bool
) -> list[go.Scatter]:
    """Return the dashed baselines of a category: one line if all runs share it, else a line in each run's style.

    Baselines of a single run with many categories, or of a single step, are strokes at the right end.
    """
    drawn = {line: line.rows[(line.rows["curve"] == category) & line.rows["baseline"].notna()] for line in lines}
    drawn = {line: rows for line, rows in drawn.items() if len(rows)}
    levels = np.concatenate([np.zeros(0), *(rows["baseline"] for rows in drawn.values())])
    shared = len(drawn) > 1 and np.ptp(levels) == 0
    traces = []
    for line, rows in drawn.items():
        stroke = len(rows) == 1 or (len(lines) == 1 and categories > MAX_BASELINES)
        shown = rows.iloc[-1:] if stroke else rows
        colour, _, opacity = (look[0], "", 1.0) if shared else look_of(lines.index(line), lines, look, panels)
        label, of = style.escape_text(curves.label(category)), "all runs" if shared else style.escape_text(line.name)
        group = label if len(lines) == 1 else f"{label}, {of}"
        described = f"{curves.baseline_name} %{{y:{curves.decimals}}}"
        if "of_baseline" in rows:
            described = rows["of_baseline"].iloc[-1]
        traces.append(
            go.Scatter(
                x=line.axis.values(shown["step"]),
                y=shown["baseline"],
                mode="markers" if stroke else "lines",
                marker=_stroke(colour),
                line={"color": colour, "width": 1.5 if len(lines) == 1 else 1, "dash": "dash"},
                opacity=opacity,
                name=f"{group}, baseline",
                legendgroup=group,
                showlegend=False,
                hovertemplate=f"{group}: {described}<extra></extra>",
            )
        )
    return [max(traces, key=lambda trace: max(trace.x))] if shared else traces


def _stroke(colour: str) -> dict[str, Any]:
    """Return the marker of a baseline at the right end."""
    return {"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}}


# === Hover texts ===


def _hover_texts(drawn: Mapping[Line, pd.DataFrame], curves: Curves, category: str) -> dict[Line, list[str]]:
    """Return the hover text of each point: every run's value nearest to it on the axis, the point's run in bold."""
    label = f"<b>{style.escape_text(curves.label(category))}</b>"
    words = {line: [_describe_row(row, curves, line.axis) for row in rows.itertuples()] for line, rows in drawn.items()}
    if len(drawn) == 1:
        return {line: [f"{label}<br>{text}" for text in texts_of_line] for line, texts_of_line in words.items()}
    scaled = np.log if next(iter(drawn)).axis.scale == "log" else np.asarray
    positions = {line: scaled(line.axis.values(rows["step"])) for line, rows in drawn.items()}
    names = {line: style.escape_text(line.name) for line in drawn}
    texts = {}
    for line in drawn:
        nearest = {one: [int(np.abs(positions[one] - place).argmin()) for place in positions[line]] for one in drawn}
        shown = {one: f"<b>{name}</b>" if one is line else name for one, name in names.items()}
        texts[line] = [
            f"{label}<br>" + "<br>".join(f"{shown[one]}, {words[one][nearest[one][point]]}" for one in drawn)
            for point in range(len(positions[line]))
        ]
    return texts


def _describe_row(row: Any, curves: Curves, axis: StepAxis) -> str:
    value, low, high = (f"{one:{curves.decimals}}".replace("%", " %") for one in (row.value, row.low, row.high))
    interval = "" if pd.isna(row.low) else f" ({low} to {high})"
    unit = f" {curves.unit}" if curves.unit else ""
    n = "" if pd.isna(row.n) else f", n = {int(row.n):,}{unit}"
    if seeds := int(getattr(row, "seeds", 0)):
        n += f", mean of {quantity(seeds, 'seed')}"
    return f"{axis.name_step(int(row.step))}: {value}{interval}{n}"


# === Legend, axes, marks ===


def _add_run_legend(figure: go.Figure, lines: Sequence[Line]) -> go.Figure:
    """Add a legend of several runs, whose entries hide and show a run in all panels."""
    for i, line in enumerate(lines):
        colour, symbol, opacity = look_of(i, lines, (style.GREY, "circle"), panels=True)
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="lines+markers",
            line={"color": colour, "width": 2.2},
            marker={"symbol": symbol, "size": 8},
            opacity=opacity,
            name=style.escape_text(line.name),
            legendgroup=line.name,
        )
    return figure


def _finish(
    figure: go.Figure, lines: Sequence[Line], curves: Curves, height: int, steps: Sequence[int], panels: int
) -> None:
    """Set the axes, and mark the last step and changes in training; `panels` is 1 for a figure without panels."""
    style.finish(figure, "" if panels > 1 else curves.y_title, height=height)
    first = lines[0].axis
    counts = [count for line in lines for count in line.axis.counts([line.rows["step"].min(), line.rows["step"].max()])]
    first.set_ends(figure, min(counts), max(counts))
    numbers = [str(panel + 1) if panel else "" for panel in range(panels)]
    shared = same_changes(lines)
    for i, line in enumerate(lines[:1] if shared else lines):  # each with the lightness of its run
        _, opacity = style.run_look(i)
        line.axis.mark_changes(figure, line.rows["step"], "" if shared else line.name, opacity, numbers)
    first.mark_step(figure, max(steps), numbers)
    default = ".0%" if curves.decimals.endswith("%") else ""
    tickformat = default if curves.tickformat is None else curves.tickformat
    tickformat = ".3~p" if panels > 1 and tickformat.endswith("%") else tickformat
    mode = "tozero" if tickformat and curves.from_zero else "normal"
    style.set_axes(figure, "y", tickformat=tickformat, rangemode=mode)
    if panels > 1:
        style.set_axes(figure, "x", title={"text": ""}, nticks=5, tickangle=0)
        figure.update_layout(margin={"t": 64}, legend={"y": 1 + 30 / height})
        figure.update_annotations(font={"size": style.FONT})
        figure.update_xaxes(title_text=first.title, row=-(-panels // curves.panels_per_row), col=1)
        for number in numbers[-curves.panels_per_row :]:
            figure.layout[f"xaxis{number}"].showticklabels = True
