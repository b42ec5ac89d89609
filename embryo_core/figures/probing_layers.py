"""Figures of one task layer by layer, of all peaks, and of a probe's training (Section 4, Figures 3, 10 and 11)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core import curves, results
from embryo_core.errors import FigureError
from embryo_core.figures import cells, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, by_layer, curves_figure
from embryo_core.figures.figure import Caption, Figure, describe_lines, make_figure, sentences
from embryo_core.figures.probing import plain, task_styles
from embryo_core.figures.probing_scores import (
    METRIC,
    describe_sizes,
    described_run,
    read_probe_scores,
    read_provenance,
    task_label,
)
from embryo_core.figures.rows import error_bar
from embryo_core.types import Run
from embryo_core.words import count_range, layer_name, name_step, sentence_case


@dataclass(frozen=True)
class LayerScore:
    """A score of a probe: its name, the title of its axis, and its definition."""

    label: str
    y_title: str
    definition: str


QUANTITIES = {
    "f1": LayerScore("F1", "F1", "micro-averaged F1 of the probe on the whole test set"),
    "selectivity": LayerScore(
        "Selectivity",
        "selectivity (F1 − control F1)",
        "F1 minus F1 on the control task: what the probe reads from the layer beyond what it could memorize word by "
        "word",
    ),
    "control": LayerScore(
        "Control F1",
        "F1 on the control task",
        "F1 of the same probe on the control task, where each word type (or span) has a random label: what it "
        "can memorize",
    ),
}


# === Tables ===


def layer_curves(frame: pd.DataFrame, task: str, quantity: str) -> pd.DataFrame:
    """Return one task of `probe_scores`: layer, step, n, value, low, high (95 %), and for F1 the majority baseline."""
    rows = frame[frame["task"] == task].dropna(subset=quantity).sort_values(["layer", "step"], ignore_index=True)
    if quantity == "selectivity":
        low, high = curves.difference_interval(rows["f1"], rows["control"], rows["n"])
    else:
        low, high = curves.interval(rows[quantity], rows["n"])
    table = rows[["layer", "step", "n"]].assign(value=rows[quantity], low=low, high=high)
    return table.assign(majority=rows["majority"]) if quantity == "f1" else table


def peak_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return peak and decay of each task and layer of `probe_scores`, as fractions.

    Columns: task, layer, step (of the highest F1), f1 (there), last (F1 at the last step), decay (the difference), low,
    high (its 95 % interval), n, earliest, latest (first and last step not significantly below; see `curves.peak`).
    """
    rows = []
    for (task, layer), curve in frame.groupby(["task", "layer"], sort=False):
        peak, n = curves.peak(curve["step"].to_numpy(), curve["f1"], curve["n"]), int(curve["n"].iloc[-1])
        low, high = curves.difference_interval(peak.value, peak.last, n)
        ends = float(low), float(high), n, peak.earliest, peak.latest
        rows.append((task, layer, peak.step, peak.value, peak.last, peak.decay, *ends))
    columns = ["task", "layer", "step", "f1", "last", "decay", "low", "high", "n", "earliest", "latest"]
    return pd.DataFrame(rows, columns=columns)


# === One task, layer by layer ===


def layers(
    runs: Sequence[Run], axis: AxisChoice, task: str, quantity: str, bold: int | None = None, bands: bool = True
) -> Figure:
    """Return the figure of a task's score, a curve for each layer; the layer `bold` is thick."""
    spec = QUANTITIES[quantity]

    def read(run: Run) -> pd.DataFrame:
        return layer_table(run, task, quantity)

    def caption(_: pd.DataFrame) -> Caption:
        run = described_run(runs, axis, read)
        table = read(run)
        emphasis_note = "" if bold is None else f"; thick: {layer_name(bold)}"
        return Caption(
            f"{sentence_case(task_label(task))}: {spec.definition}.",
            sentences(
                f"A line for each layer, embeddings included{emphasis_note}.",
                describe_lines(
                    "dashed: the F1 of always predicting the most frequent label" if "majority" in table else "",
                    "band: 95 % interval" if bands else "",
                ),
            ),
            f"n = {table['n'].iloc[-1]:,} targets{describe_sizes(run, task)}.",
            "Click a point for its layer and step.",
        )

    name, title = f"{task}-{quantity}-layers", f"{spec.label} on {task_label(task)}, layer by layer"
    return curves_figure(runs, axis, read, score_curves(quantity, bold, bands), name, title, caption)


def score_curves(quantity: str, bold: int | None = None, bands: bool = True) -> Curves:
    """Return the `Curves` of a score layer by layer; the layer `bold` is thick."""
    return by_layer(
        bold,
        y_title=QUANTITIES[quantity].y_title,
        metric=METRIC,
        tickformat=".3~p",
        unit="targets",
        baseline="majority" if quantity == "f1" else None,
        baseline_name="majority baseline",
        from_zero=False,
        bands=bands,
    )


def layer_table(run: Run, task: str, quantity: str) -> pd.DataFrame:
    """Return `layer_curves` of a run with the columns task and score. Raises ResultsError."""
    return layer_curves(read_probe_scores(run), task, quantity).assign(task=task, score=quantity)


def heat_map(runs: Sequence[Run], axis: AxisChoice, task: str, quantity: str, layer: int) -> Figure:
    """Return the heat map of a task's score in the first run, layer by step; `layer` at the chosen step is outlined."""
    run, spec = runs[0], QUANTITIES[quantity]
    table = layer_table(run, task, quantity)
    if table.empty:
        raise FigureError(f"Run '{run.name}' has no {spec.label} on {task_label(task)}.")
    name, title = f"{run.name}-{task}-{quantity}-map", f"{spec.label} on {task_label(task)}, layer by step"
    return cells.layer_map(runs, axis, table, layer, score_curves(quantity), name, title)


# === Peak and decay ===


def peaks(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of each layer's peak on each task in the first run, and its decay since."""
    run = runs[0]
    frame = read_probe_scores(run)
    if frame.empty:
        raise FigureError(f"The layers of run '{run.name}' have not been probed yet.")
    table = peak_table(frame)
    return make_figure(
        [run],
        f"{run.name}-probing-peaks",
        "Peak and decay of each layer",
        plot_peaks(table, sorted(set(frame["step"])), axis.for_run(run, runs)),
        table,
        Caption(
            "Left: the step at which each layer's F1 is highest; line: steps whose F1 is not significantly lower.",
            "Right: the drop in F1 from that step to the last, in points, with its 95 % interval "
            "(Newcombe). Hollow: the interval of the drop contains zero.",
            f"n = {count_range(table['n'])} targets of the test sets.",
            "Click a mark for its task, layer and step.",
        ),
        METRIC,
    )


def plot_peaks(table: pd.DataFrame, steps: Sequence[int], axis: StepAxis) -> go.Figure:
    """Return the plot of a `peak_table`: a row per layer with a mark per task; peaks on the left, decays on the right.

    `steps` are the probed steps of the run. A mark is hollow if the 95 % interval of its decay contains zero.
    """
    figure = make_subplots(1, 2, shared_yaxes=True, column_widths=[0.58, 0.42], horizontal_spacing=0.05)
    styles = task_styles(table["task"])
    for i, (task, (colour, symbol)) in enumerate(styles.items()):
        shift = 0.75 * ((i + 0.5) / len(styles) - 0.5)  # the first task on top
        _add_peaks(figure, table[table["task"] == task], (colour, symbol), shift, axis)
    first = min(table["earliest"] if axis.scale == "log" else steps)
    low, high = axis.counts([first, max(steps)])
    axis.set_ends(figure, low, high, margin=0.02)
    return _set_peak_axes(figure, sorted(set(table["layer"])), len(styles), axis)


def _add_peaks(figure: go.Figure, rows: pd.DataFrame, look: tuple[str, str], shift: float, axis: StepAxis) -> None:
    """Add the peaks of one task on the left and its decays on the right, `shift` below the middle of their rows."""
    (colour, symbol), task = look, rows["task"].iloc[0]
    common = {
        "y": rows["layer"] + shift,
        "legendgroup": task,
        "customdata": rows.assign(**100 * rows[["decay", "low", "high"]]).to_numpy(object),
        "hovertemplate": f"<b>{plain(task)}</b>, %{{text}}<br>peak at {axis.hover_step('customdata[2]')} "
        "(%{customdata[9]:,} to %{customdata[10]:,}): F1 %{customdata[3]:.1%}<br>"
        "last step: %{customdata[4]:.1%}<br>decay: %{customdata[5]:.1f} points "
        "(95 %: %{customdata[6]:.1f} to %{customdata[7]:.1f})<extra></extra>",
        "text": [layer_name(layer) for layer in rows["layer"]],
        "unselected_marker_opacity": 1,
        "mode": "markers",
        "showlegend": False,
    }
    symbols = [symbol if low > 0 else f"{symbol}-open" for low in rows["low"]]
    marker = {"color": colour, "size": 9, "symbol": symbols, "line": {"width": 1.5, "color": colour}}
    steps, first, last = (np.array(axis.values(rows[name])) for name in ("step", "earliest", "latest"))
    decay, low, high = (100 * rows[name] for name in ("decay", "low", "high"))
    for column, ends in enumerate(((steps, first, last), (decay, low, high)), 1):
        bar = error_bar(*ends, style.with_opacity(colour, 0.5))
        figure.add_scatter(x=ends[0], error_x=bar, marker=marker, **common, row=1, col=column)
    legend_marker = {**marker, "symbol": symbol}
    figure.add_scatter(x=[None], y=[None], name=plain(task), legendgroup=task, mode="markers", marker=legend_marker)


def _set_peak_axes(figure: go.Figure, layers: list[int], task_count: int, axis: StepAxis) -> go.Figure:
    """Set the axes of both panels, with `task_count` marks in a row."""
    style.finish(figure, "", height=min(110 + (24 + 13 * task_count) * len(layers), 760))
    figure.update_xaxes(title_text=axis.step_heading("peak at"), row=1, col=1)
    decay_axis = {"type": "linear", "tickvals": None, "ticktext": None, "range": None, "tickformat": None}
    zero = {"zeroline": True, "zerolinecolor": style.with_opacity(style.GREY, 0.6), "rangemode": "tozero"}
    figure.update_xaxes(**decay_axis, **zero, title_text="decay since (points of F1)", row=1, col=2)
    figure.update_yaxes(tickvals=layers, ticktext=[layer_name(layer) for layer in layers], showgrid=False)
    figure.update_yaxes(range=[layers[-1] + 0.5, layers[0] - 0.5])
    divider = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "layer": "below"}
    for layer_above in layers[:-1]:
        line = {"color": style.with_opacity(style.GREY, 0.35), "width": 1}
        figure.add_shape(**divider, y0=layer_above + 0.5, y1=layer_above + 0.5, line=line)
    return figure


# === The training of a probe ===


def training(runs: Sequence[Run], axis: AxisChoice, task: str, layer: int, step: int) -> Figure:
    """Return the figure of the training of one probe of the first run and of its control.

    Raises FigureError if the probe's training curve was not stored.
    """
    run = runs[0]
    table = results.read_probes(run, task, layer, step)
    if table.empty:
        raise FigureError("The training curve of this probe was not kept.")
    last = table.groupby("control")["iteration"].max()
    counts = ", ".join(f"{n:,} on the {'control task' if control else 'task'}" for control, n in last.items())
    protocol = read_provenance(run, task).get("protocol")
    return make_figure(
        [run],
        f"{run.name}-{task}-training",
        f"Training of a probe: {task_label(task)}, {layer_name(layer)}, {name_step(step, run.step_unit)}",
        plot_training(table),
        table,
        Caption(
            "F1 on the development set, and mean cross-entropy in training, over the iterations of the probe's own "
            "optimizer.",
            "The probe that is tested is the one with the best development F1.",
            f"Iterations: {counts}{f' by the {protocol} protocol' if protocol else ''}{describe_sizes(run, task)}.",
            "A click in the heat map chooses another probe.",
        ),
        METRIC,
        suffix=f"layer{layer}-step{step}",
    )


def plot_training(table: pd.DataFrame) -> go.Figure:
    """Return the plot of the training of a probe and its control: development F1 above, training loss below."""
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
