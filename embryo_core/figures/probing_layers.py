"""One task layer by layer, the peaks of all, and how a probe was trained (Section 4, Figures 3, 10 and 11)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core import curves
from embryo_core.figures import cells, smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.figures.probing import plain, task_styles
from embryo_core.figures.style import layer_colours
from embryo_core.words import headed, layer_name, percent

CHOSEN = style.VERMILION  # of outlines; no colour of the heat map


@dataclass(frozen=True)
class Quantity:
    """A score of a probe: how it is named and written, and what it means."""

    label: str
    axis: str
    means: str


QUANTITIES = {
    "f1": Quantity("F1", "F1", "micro-averaged F1 of the probe on the whole test set"),
    "selectivity": Quantity(
        "Selectivity",
        "selectivity (F1 − control F1)",
        "F1 minus F1 on the control task: what the probe reads from the layer beyond what it could memorize word by "
        "word",
    ),
    "control": Quantity(
        "Control F1",
        "F1 on the control task",
        "F1 of the same probe on the control task, where each word (or span) has a random label of its own: what it "
        "can memorize",
    ),
}


# === Tables ===


def layer_curves(frame: pd.DataFrame, task: str, quantity: str) -> pd.DataFrame:
    """One task of `probe_scores`: layer, step, n, value, low, high (95 %), and of F1 the majority baseline."""
    rows = frame[frame["task"] == task].dropna(subset=quantity).sort_values(["layer", "step"], ignore_index=True)
    if quantity == "selectivity":
        low, high = curves.difference_interval(rows["f1"], rows["control"], rows["n"])
    else:
        low, high = curves.interval(rows[quantity], rows["n"])
    found = rows[["layer", "step", "n"]].assign(value=rows[quantity], low=low, high=high)
    return found.assign(majority=rows["majority"]) if quantity == "f1" else found


def peaks(frame: pd.DataFrame) -> pd.DataFrame:
    """Peak and decay of each task and layer: task, layer, step, f1, last, decay, low, high, n, earliest, latest.

    `step` is that of the highest F1, `f1`, which may lie from `earliest` to `latest` (see `curves.peak`); `last` is F1
    at the last step; `decay` is the difference, from `low` to `high` with 95 % confidence. Shares of 1, not points.
    """
    rows = []
    for (task, layer), curve in frame.groupby(["task", "layer"], sort=False):
        found, n = curves.peak(curve["step"].to_numpy(), curve["f1"], curve["n"]), int(curve["n"].iloc[-1])
        low, high = curves.difference_interval(found.value, found.last, n)
        ends = float(low), float(high), n, found.earliest, found.latest
        rows.append((task, layer, found.step, found.value, found.last, found.decay, *ends))
    columns = ["task", "layer", "step", "f1", "last", "decay", "low", "high", "n", "earliest", "latest"]
    return pd.DataFrame(rows, columns=columns)


# === Over the steps ===


def overlay_curves(quantity: str) -> Curves:
    """How rows of `layer_curves` are drawn for several runs."""
    return Curves(
        by="layer",
        value="value",
        low="low",
        high="high",
        label=layer_name,
        styles=lambda layers: {layer: (colour, "circle") for layer, colour in layer_colours(sorted(layers)).items()},
        y_title=QUANTITIES[quantity].axis,
        tickformat=".3~p",
        decimals=".1%",
        baseline="majority" if quantity == "f1" else None,
        kept=("task", "score"),
    )


def layers_figure(
    data: pd.DataFrame, quantity: str, bold: int | None, axis: StepAxis, bands: bool
) -> go.Figure:
    """`layer_curves` as a line per layer, the highest on top of the legend; the layer `bold` is drawn thick.

    The majority baseline, one for all layers, is dashed.

    Every point carries its layer and step as customdata.
    """
    figure = go.Figure()
    colour = layer_colours(sorted(set(data["layer"])))
    by_layer = dict(list(data.groupby("layer")))
    for layer, rows in by_layer.items() if bands else ():
        x = axis.values(rows["step"])
        style.add_band(figure, x, rows["low"], rows["high"], colour[layer], layer_name(layer))
    for layer, rows in reversed(by_layer.items()):
        smoothing.add_curve(
            figure,
            axis.values(rows["step"]),
            rows,
            "value",
            layer_name(layer),
            colour[layer],
            line={"width": 4 if layer == bold else 2},
            marker={"size": 8 if layer == bold else 6, "symbol": "circle" if layer else "circle-open"},
            customdata=style.told(rows[["layer", "step", "value", "low", "high", "n"]]),
            hovertemplate=f"<b>{layer_name(layer)}</b>, {axis.hover('customdata[1]')}<br>{QUANTITIES[quantity].label} "
            "%{customdata[2]} (95 %: %{customdata[3]} to %{customdata[4]})<br>"
            "n = %{customdata[5]:,} targets<extra></extra>",
        )
    steps = sorted(set(data["step"]))
    if "majority" in data and data["majority"].notna().any():
        ends = list(axis.values(sorted({steps[0], steps[-1]})))
        majority = float(data["majority"].dropna().iloc[-1])
        style.add_baseline(figure, ends, majority, style.GREY, "majority", f"majority baseline: {percent(majority)}")
        style.explain_baselines(figure, "majority baseline")
    axis.draw(figure, steps)
    figure.update_yaxes(tickformat=".3~p")
    return style.finish(figure, QUANTITIES[quantity].axis, height=420)


# === Layer by step ===


def heat_map(data: pd.DataFrame, quantity: str, layer: int, axis: StepAxis) -> go.Figure:
    """`layer_curves` as measured, layer by step, with its points of F1 in each cell; a column for each checkpoint.

    A line goes round the column of the chosen step, and its cell of the `layer`. Every cell is a point with its
    layer and step as customdata.
    """
    values = data.pivot(index="layer", columns="step", values="value")
    steps, layers = list(values.columns), list(values.index)
    numbers = [["" if np.isnan(value) else f"{100 * value:.0f}" for value in row] for row in values.to_numpy(float)]
    figure = go.Figure()
    figure.add_heatmap(
        z=values.to_numpy(float),
        text=cells.written(numbers, values.to_numpy(float), "Viridis"),
        texttemplate="%{text}",
        textfont={"size": style.FONT - 2, "color": cells.BLACK},
        colorscale="Viridis",
        xgap=1,
        ygap=1,
        hoverinfo="skip",
        colorbar=style.colour_bar(QUANTITIES[quantity].axis, tickformat=".3~p"),
    )
    cells.add_points(
        figure,
        data["step"].map(steps.index),
        data["layer"].map(layers.index),
        data[["layer", "step", "value", "n"]].to_numpy(object),
        f"%{{text}}, {axis.hover('customdata[1]')}: %{{customdata[2]:.1%}}<br>n = %{{customdata[3]:,}} targets",
        data["layer"].map(layer_name),
    )
    columns = {step: column for column, step in enumerate(steps)}
    cells.outline_step(figure, columns, (0, len(layers) - 1), color=CHOSEN, width=1.5, dash="dot")
    if layer in layers:
        cells.outline_step(figure, columns, (layers.index(layer),) * 2, color=CHOSEN, width=3)
    names = [layer_name(layer) for layer in layers]
    height = min(100 + 42 * len(layers), 560)
    return cells.finish_by_step(figure, axis, [*map(style.short, steps)], names, "", height=height)


# === Peak and decay ===


def peaks_figure(table: pd.DataFrame, steps: Sequence[int], axis: StepAxis) -> go.Figure:
    """`peaks` within the run's `steps`, a row per layer, the highest on top: each peak, and beside it the decay since.

    A mark is hollow where the decay is within its 95 % interval of nothing. Tasks lie side by side within a row.
    """
    figure = make_subplots(1, 2, shared_yaxes=True, column_widths=[0.58, 0.42], horizontal_spacing=0.05)
    known = task_styles(table["task"])
    for i, (task, (colour, symbol)) in enumerate(known.items()):
        shift = 0.75 * ((i + 0.5) / len(known) - 0.5)  # the first task on top
        _add_peaks(figure, table[table["task"] == task], (colour, symbol), shift, axis)
    axis.set_range(figure, steps)
    ends = axis.values([min(table["earliest"]), max(steps)])
    return _peak_axes(figure, sorted(set(table["layer"])), len(known), ends, axis)


def _add_peaks(
    figure: go.Figure, rows: pd.DataFrame, own_style: tuple[str, str], shift: float, axis: StepAxis
) -> None:
    """The peaks of one task on the left, its decays on the right, lowered by a shift within the rows."""
    (colour, symbol), task = own_style, rows["task"].iloc[0]
    shared = {
        "y": rows["layer"] - shift,
        "legendgroup": task,
        "customdata": rows.assign(**100 * rows[["decay", "low", "high"]]).to_numpy(object),
        "hovertemplate": f"<b>{plain(task)}</b>, %{{text}}<br>peak at {axis.hover('customdata[2]')} "
        "(%{customdata[9]:,} to %{customdata[10]:,}): F1 %{customdata[3]:.1%}<br>"
        "last step: %{customdata[4]:.1%}<br>decay: %{customdata[5]:.1f} points "
        "(95 %: %{customdata[6]:.1f} to %{customdata[7]:.1f})<extra></extra>",
        "text": [layer_name(layer) for layer in rows["layer"]],
        "unselected_marker_opacity": 1,
        "mode": "markers",
        "showlegend": False,
    }
    filled = [symbol if low > 0 else f"{symbol}-open" for low in rows["low"]]
    marker = {"color": colour, "size": 9, "symbol": filled, "line": {"width": 1.5, "color": colour}}
    steps, first, last = (np.array(axis.values(rows[name])) for name in ("step", "earliest", "latest"))
    reach = _reach(last - steps, steps - first, colour)
    figure.add_scatter(x=steps, error_x=reach, marker=marker, **shared, row=1, col=1)
    decay = 100 * rows[["decay", "low", "high"]]
    reach = _reach(decay["high"] - decay["decay"], decay["decay"] - decay["low"], colour)
    figure.add_scatter(x=decay["decay"], error_x=reach, marker=marker, **shared, row=1, col=2)
    named = {**marker, "symbol": symbol}
    figure.add_scatter(x=[None], y=[None], name=plain(task), legendgroup=task, mode="markers", marker=named)


def _reach(above: Sequence[float], below: Sequence[float], colour: str) -> dict[str, object]:
    """Plotly's bar from so far below each mark to so far above it."""
    bar = {"type": "data", "symmetric": False, "width": 0, "color": style.faint(colour, 0.5)}
    return bar | {"array": above, "arrayminus": below}


def _peak_axes(figure: go.Figure, layers: list[int], tasks: int, ends: list[float], axis: StepAxis) -> go.Figure:
    """Both panels' axes for so many tasks within a row; a log step axis runs from the first peak to the last step."""
    style.finish(figure, "", height=min(110 + (24 + 13 * tasks) * len(layers), 760))
    title = f"{axis.title} at the peak" if axis.progress else headed("peak at", axis.step_unit)
    figure.update_xaxes(title_text=title, row=1, col=1)
    if figure.layout.xaxis.type == "log":
        low, high = np.log10(ends)
        if high - low < 2:
            factors = (1, 2, 5) if high - low > 0.5 else (1, *np.arange(1.2, 2, 0.2), *range(2, 10))
            ticks = [round(factor * 10**power) for power in range(10) for factor in factors]
            figure.update_xaxes(tickvals=ticks, ticktext=[style.short(tick) for tick in ticks], row=1, col=1)
        figure.update_xaxes(range=[low - 0.1, high + 0.1], row=1, col=1)
    decay_axis = {"type": "linear", "tickvals": None, "ticktext": None, "range": None, "tickformat": None}
    zero = {"zeroline": True, "zerolinecolor": style.faint(style.GREY, 0.6), "rangemode": "tozero"}
    figure.update_xaxes(**decay_axis, **zero, title_text="decay since (points of F1)", row=1, col=2)
    figure.update_yaxes(tickvals=layers, ticktext=[layer_name(layer) for layer in layers], showgrid=False)
    figure.update_yaxes(range=[layers[0] - 0.5, layers[-1] + 0.5])
    between = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "layer": "below"}
    for edge in layers[:-1]:
        line = {"color": style.faint(style.GREY, 0.35), "width": 1}
        figure.add_shape(**between, y0=edge + 0.5, y1=edge + 0.5, line=line)
    return figure


# === The training of a probe ===


def training_figure(table: pd.DataFrame) -> go.Figure:
    """How a probe and its control (column `control`) were trained: F1 in development, and loss, by iteration."""
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
    for control, name, colour, dash in (
        (False, "the task", style.BLUE, "solid"),
        (True, "control", style.GREY, "dash"),
    ):
        rows = table[table["control"] == control]
        for row, (quantity, form) in enumerate((("dev_f1", ".1%"), ("train_loss", ".3f")), 1):
            figure.add_scatter(
                x=rows["iteration"],
                y=rows[quantity],
                name=name,
                legendgroup=name,
                showlegend=row == 1 and len(rows) > 0,
                mode="lines+markers",
                line={"color": colour, "width": 2.2, "dash": dash},
                marker_size=5,
                hovertemplate=f"{name}, iteration %{{x:,}}: %{{y:{form}}}<extra></extra>",
                row=row,
                col=1,
            )
    style.finish(figure, "", height=440)
    figure.update_xaxes(title_text="iteration of the probe's optimizer", row=2, col=1)
    figure.update_yaxes(title_text="F1 on the development set", tickformat=".0%", rangemode="tozero", row=1, col=1)
    return figure.update_yaxes(title_text="training loss (nats)", rangemode="tozero", row=2, col=1)
