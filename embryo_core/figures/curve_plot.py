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
MAX_LARGE_MARKERS = 100  # largest number of points of a curve with large markers
PANEL_HEIGHT = 190  # pixels


def plot_curves(lines: Sequence[Line], curves: Curves) -> go.Figure:
    """Return the plot of `lines` (at least one); the time bar has the steps of the first line.

    The customdata of a point are its category, the step of the first line at or before it, and its hover text.
    """
    steps = sorted(set(lines[0].rows["step"]))
    styles = curves.styles(categories(lines))
    panels = in_panels(lines, curves)
    figure, titles_height, height = _make_grid(styles, curves, panels)
    column_count = min(curves.panels_per_row, len(styles)) if panels else 1
    shared_baseline = _shared_baseline(lines, curves)
    for i, (category, look) in enumerate(styles.items()):
        grid_cell = {"rows": i // column_count + 1 if panels else 1, "cols": i % column_count + 1 if panels else 1}
        for line, curve_figure in _plot_category(lines, category, curves, look, steps, panels):
            if panels:
                curve_figure.update_traces(legendgroup=line.name, showlegend=False)
            figure.add_traces(curve_figure.data, **grid_cell)
        if not shared_baseline:
            baselines = _plot_baselines(lines, category, curves, look, 1 if panels else len(styles), panels)
            figure.add_traces(baselines, **grid_cell)
    if shared_baseline:
        figure.add_trace(shared_baseline)
    elif any_baseline(lines):
        has_many = len(lines) == 1 and not panels and len(styles) > MAX_BASELINES
        are_strokes = has_many or lines[0].rows["step"].nunique() == 1
        marker = {"mode": "markers", "marker": _stroke(style.GREY)}
        legend_style = marker if are_strokes else {"mode": "lines", "line": style.DASHED}
        # the legend's entry of baselines
        figure.add_scatter(x=[None], y=[None], name=curves.baseline_name, **legend_style)
    _finish_axes(figure, lines, curves, height, steps, len(styles) if panels else 1)
    if curves.width:
        top = 30 + titles_height
        size = {"width": curves.width, "autosize": True}
        figure.update_layout(**size, margin={"t": top}, legend={"y": 1 + titles_height / height})
        figure.update_layout(meta={"phone": on_phone(figure)})
    return _add_run_legend(figure, lines) if panels and len(lines) > 1 else figure


def _make_grid(styles: Mapping[str, Any], curves: Curves, panels: bool) -> tuple[go.Figure, int, int]:
    """Return an empty figure, the height of panel titles, and the height of the figure, both in pixels."""
    if not panels:
        return go.Figure(make_subplots(1, 1)), 0, curves.height
    column_count = min(curves.panels_per_row, len(styles))
    row_count = -(-len(styles) // column_count)
    titles = [style.escape_text(curves.label(name)).replace("\n", "<br>") for name in styles]
    height = 90 + PANEL_HEIGHT * row_count
    title_height = 34 + 24 * max(title.count("<br>") for title in titles)
    gaps = {"vertical_spacing": title_height / height, "horizontal_spacing": 0.24 / column_count}
    specs: list[list[dict | None]] = [
        [{} if row * column_count + i < len(styles) else None for i in range(column_count)] for row in range(row_count)
    ]
    figure = make_subplots(row_count, column_count, specs=specs, shared_xaxes="all", subplot_titles=titles, **gaps)
    return figure, title_height, height


def _plot_category(
    lines: Sequence[Line],
    category: str,
    curves: Curves,
    look: tuple[str, str],
    steps: Sequence[int],
    panels: bool,
) -> Iterator[tuple[Line, go.Figure]]:
    """Yield each line that has this category, with a figure of its curve and band, broken at its gaps."""
    rows_by_line = {line: rows for line in lines if len(rows := line.rows[line.rows["curve"] == category])}
    texts = _hover_texts(rows_by_line, curves, category)
    positions = lines[0].axis.values(steps)
    emphasis, label = curves.emphasis.get(category, 1.0), style.escape_text(curves.label(category))
    for line, rows in rows_by_line.items():
        figure, x = go.Figure(), line.axis.values(rows["step"])
        colour, symbol, opacity = look_of(lines.index(line), lines, look, panels)
        name = label if len(lines) == 1 else f"{label}, {style.escape_text(line.name)}"
        marker_size = 3 if len(rows) > MAX_LARGE_MARKERS else 6 if len(lines) > 1 else 8
        banded = rows[rows["low"].notna()]
        if curves.bands and len(banded):
            band = "± standard error of seeds" if line.seeds > 1 else curves.band
            style.add_band(figure, line.axis.values(banded["step"]), banded["low"], banded["high"], colour, name, band)
        indices = np.searchsorted(np.asarray(positions), np.asarray(x), side="right") - 1
        previous = np.asarray(steps)[np.maximum(indices, 0)].tolist()
        smoothing.add_curve(
            figure,
            x,
            rows,
            "value",
            name,
            colour,
            line={"width": 2.2 * emphasis},
            marker={"symbol": symbol, "size": emphasis * marker_size},
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
    lines: Sequence[Line], category: str, curves: Curves, look: tuple[str, str], category_count: int, panels: bool
) -> list[go.Scatter]:
    """Return the dashed baselines of a category: one line if all runs share it, else a line in each run's style.

    Baselines of a single run with many categories, or of a single step, are strokes at the right end.
    """
    rows_by_line = {line: line.rows[(line.rows["curve"] == category) & line.rows["baseline"].notna()] for line in lines}
    rows_by_line = {line: rows for line, rows in rows_by_line.items() if len(rows)}
    levels = np.concatenate([np.zeros(0), *(rows["baseline"] for rows in rows_by_line.values())])
    shared = len(rows_by_line) > 1 and np.ptp(levels) == 0
    traces = []
    for line, rows in rows_by_line.items():
        is_stroke = len(rows) == 1 or (len(lines) == 1 and category_count > MAX_BASELINES)
        plotted_rows = rows.iloc[-1:] if is_stroke else rows
        colour, _, opacity = (look[0], "", 1.0) if shared else look_of(lines.index(line), lines, look, panels)
        label, owner = style.escape_text(curves.label(category)), "all runs" if shared else style.escape_text(line.name)
        group = label if len(lines) == 1 else f"{label}, {owner}"
        hover = f"{curves.baseline_name} %{{y:{curves.decimals}}}"
        if "of_baseline" in rows:
            hover = rows["of_baseline"].iloc[-1]
        traces.append(
            go.Scatter(
                x=line.axis.values(plotted_rows["step"]),
                y=plotted_rows["baseline"],
                mode="markers" if is_stroke else "lines",
                marker=_stroke(colour),
                line={"color": colour, "width": 1.5 if len(lines) == 1 else 1, "dash": "dash"},
                opacity=opacity,
                name=f"{group}, baseline",
                legendgroup=group,
                showlegend=False,
                hovertemplate=f"{group}: {hover}<extra></extra>",
            )
        )
    return [max(traces, key=lambda trace: max(trace.x))] if shared else traces


def _stroke(colour: str) -> dict[str, Any]:
    """Return the marker of a baseline at the right end."""
    return {"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}}


# === Hover texts ===


def _hover_texts(rows_by_line: Mapping[Line, pd.DataFrame], curves: Curves, category: str) -> dict[Line, list[str]]:
    """Return the hover text of each point: every run's value nearest to it on the axis, the point's run in bold."""
    label = f"<b>{style.escape_text(curves.label(category))}</b>"
    row_texts = {
        line: [_describe_row(row, curves, line.axis) for row in rows.itertuples()]
        for line, rows in rows_by_line.items()
    }
    if len(rows_by_line) == 1:
        return {line: [f"{label}<br>{text}" for text in line_texts] for line, line_texts in row_texts.items()}
    transform = np.log if next(iter(rows_by_line)).axis.scale == "log" else np.asarray
    positions = {line: transform(line.axis.values(rows["step"])) for line, rows in rows_by_line.items()}
    names = {line: style.escape_text(line.name) for line in rows_by_line}
    texts = {}
    for line in rows_by_line:
        nearest = {
            other: [int(np.abs(positions[other] - x).argmin()) for x in positions[line]] for other in rows_by_line
        }
        labels = {other: f"<b>{name}</b>" if other is line else name for other, name in names.items()}
        texts[line] = [
            f"{label}<br>"
            + "<br>".join(f"{labels[other]}, {row_texts[other][nearest[other][i]]}" for other in rows_by_line)
            for i in range(len(positions[line]))
        ]
    return texts


def _describe_row(row: Any, curves: Curves, axis: StepAxis) -> str:
    value, low, high = (f"{number:{curves.decimals}}".replace("%", " %") for number in (row.value, row.low, row.high))
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


def _finish_axes(
    figure: go.Figure, lines: Sequence[Line], curves: Curves, height: int, steps: Sequence[int], panel_count: int
) -> None:
    """Set the axes, and mark the last step and changes in training; `panel_count` is 1 for a figure without panels."""
    style.finish(figure, "" if panel_count > 1 else curves.y_title, height=height)
    first = lines[0].axis
    counts = [count for line in lines for count in line.axis.counts([line.rows["step"].min(), line.rows["step"].max()])]
    first.set_ends(figure, min(counts), max(counts))
    axis_suffixes = [str(panel + 1) if panel else "" for panel in range(panel_count)]
    is_shared = same_changes(lines)
    for i, line in enumerate(lines[:1] if is_shared else lines):  # each with the lightness of its run
        _, opacity = style.run_look(i)
        line.axis.mark_changes(figure, line.rows["step"], "" if is_shared else line.name, opacity, axis_suffixes)
    first.mark_step(figure, max(steps), axis_suffixes)
    default_format = ".0%" if curves.decimals.endswith("%") else ""
    tickformat = default_format if curves.tickformat is None else curves.tickformat
    tickformat = ".3~p" if panel_count > 1 and tickformat.endswith("%") else tickformat
    range_mode = "tozero" if tickformat and curves.from_zero else "normal"
    style.set_axes(figure, "y", tickformat=tickformat, rangemode=range_mode)
    if panel_count > 1:
        style.set_axes(figure, "x", title={"text": ""}, nticks=5, tickangle=0)
        figure.update_layout(margin={"t": 64}, legend={"y": 1 + 30 / height})
        figure.update_annotations(font={"size": style.FONT_SIZE})
        figure.update_xaxes(title_text=first.title, row=-(-panel_count // curves.panels_per_row), col=1)
        for suffix in axis_suffixes[-curves.panels_per_row :]:
            figure.layout[f"xaxis{suffix}"].showticklabels = True
