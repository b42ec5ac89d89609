"""Linear probes: all tasks over the steps, their expected layers, pairs of tasks (Section 4, Figure 2b)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import results
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import STEP_MARK, AxisChoice, StepAxis, follow_step
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, describe_lines, make_figure, sentences
from embryo_core.figures.probing_scores import (
    BEST,
    MASKED_ACCURACY,
    METRIC,
    describe_layer,
    described_run,
    expected_layers,
    path,
    read_probe_scores,
    select_layer,
    task_label,
    task_table,
)
from embryo_core.types import Run
from embryo_core.words import count_range, percent, step_unit_name

STYLES = {  # task -> colour and marker
    "pos": (style.BLUE, "circle"),
    "constituent": (style.GREEN, "square"),
    "coref": (style.VERMILION, "diamond"),
    "srl": (style.PURPLE, "triangle-up"),
    MASKED_ACCURACY: (style.GREY, "cross"),
}
RING_RADIUS = 9  # pixels: radius of the ring at the chosen step
OWN_STYLES = ((style.ORANGE, "star"), (style.PINK, "x"), (style.OLIVE, "triangle-down"), (style.SKY, "hexagon"))


# === Colours and symbols of tasks ===


def plain(task: str) -> str:
    """Return the name of a task with markup escaped for Plotly."""
    return style.escape_text(task_label(task))


def task_styles(tasks: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return colour and marker of each task: fixed for the paper's tasks and masked accuracy, in turn for the rest."""
    tasks = list(dict.fromkeys(tasks))
    own_tasks = sorted(task for task in tasks if task not in STYLES)
    own_styles = {task: OWN_STYLES[i % len(OWN_STYLES)] for i, task in enumerate(own_tasks)}
    return {task: STYLES.get(task) or own_styles[task] for task in tasks}


# === All tasks ===


def tasks(
    runs: Sequence[Run], axis: AxisChoice, layer: str | int, rescaled: bool = False, bands: bool = True
) -> Figure:
    """Return the figure of all tasks' F1 in a layer (BEST, LAST or a number), with intervals and majority baselines."""

    def read(run: Run) -> pd.DataFrame:
        return task_table(run, layer, rescaled)

    run = described_run(runs, axis, read)
    curves = Curves(
        by="task",
        metric=METRIC,
        value="shown",
        low="shown_low",
        high="shown_high",
        baseline="shown_majority",
        baseline_name="majority baseline",
        label=task_label,
        styles=task_styles,
        y_title="relative to the last step" if rescaled else "F1 or accuracy",
        tickformat=".1f" if rescaled else ".3~p",
        decimals=".2f" if rescaled else ".1%",
        height=450,
        bands=bands,
    )
    figure = curves_figure(
        runs,
        axis,
        read,
        curves,
        "probing",
        "F1 of the probes over the steps",
        lambda _: _describe_tasks(run, layer, rescaled, bands),
    )
    best = select_layer(read_probe_scores(run), BEST)
    return replace(figure, headline=headline(best, axis.for_run(run, runs)))


def _describe_tasks(run: Run, layer: str | int, rescaled: bool, bands: bool) -> Caption:
    frame, table = read_probe_scores(run), task_table(run, layer, rescaled)
    n = table.loc[table["task"] == MASKED_ACCURACY, "n"]
    masked_note = (
        "The run's log lacks masked accuracy on held-out text, or its number of pieces."
        if n.empty
        else f"Masked accuracy: fraction of {count_range(n)} masked pieces of held-out text that the model predicts."
    )
    sources = results.read_sources(run).items()
    notes = [entry["note"] for name, entry in sources if name.split(":")[0] == METRIC and "note" in entry]
    return Caption(
        f"A linear probe learns each task from the frozen hidden states of one layer: {describe_layer(layer, frame)}.",
        sentences(
            "F1 is micro-averaged over the test set.",
            masked_note,
            describe_lines(
                "dashed, or a stroke at the right: the F1 of always predicting the most frequent label",
                "band: 95 % interval (Wilson)" if bands else "",
                "all divided by the curve's own last value" if rescaled else "",
            ),
        ),
        f"Data: {'; '.join(notes) or 'the probing sets given to the evaluation'}; "
        f"n = {count_range(frame['n'])} targets.",
        "Click a point to open its task at that step.",
    )


def headline(best: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on the tasks that gain most and least between the first and last step.

    `best` are `probe_scores` in the best layer at each step. With a single step, the sentence is on the tasks with the
    best and the worst F1. Otherwise it leaves out tasks with one step, and is empty if all are.
    """
    has_one_step = best["step"].nunique() == 1
    if not has_one_step:
        best = best[best.groupby("task")["step"].transform("nunique") > 1]
    if best.empty:
        return ""
    ends = best.sort_values("step").groupby("task", sort=False)["f1"].agg(["first", "last"])
    begin, end = (axis.step_in_unit(int(step)) for step in (best["step"].min(), best["step"].max()))
    if has_one_step:
        last = {task: f"{task_label(task)} ({percent(f1, 0)})" for task, f1 in ends["last"].sort_values().items()}
        lowest, highest = next(iter(last.values())), [*last.values()][-1]
        return f"At {end}, probes read {highest} best" + (f" and {lowest} worst." if len(last) > 1 else ".")
    gains = (ends["last"] - ends["first"]).sort_values()
    f1_texts = ends.map(lambda f1: percent(f1, 0))
    gain_texts = [f"{task_label(task)} ({f1_texts['first'][task]} to {f1_texts['last'][task]})" for task in gains.index]
    if len(gain_texts) == 1:
        return f"From {begin} to {end}, the best layer's F1 changes: {gain_texts[0]}."
    return (
        f"Pretraining helps probes most with {gain_texts[-1]} and least with {gain_texts[0]}, in F1 of the best layer."
    )


# === Expected layer ===

EXPECTED_CURVES = Curves(
    by="task",
    metric=METRIC,
    value="expected",
    label=task_label,
    styles=task_styles,
    y_title="expected layer",
    tickformat=".1f",
    decimals=".2f",
    unit="targets",
    height=420,
    from_zero=False,
)


def expected(runs: Sequence[Run], axis: AxisChoice, bands: bool = True) -> Figure:
    """Return the figure of each task's expected layer; for one run with a dashed line at half of its layers."""

    def read(run: Run) -> pd.DataFrame:
        return expected_layers(read_probe_scores(run))

    run = described_run(runs, axis, read)
    frame = read_probe_scores(run)
    highest = int(frame["layer"].max()) if len(frame) else 0

    def caption(_: pd.DataFrame) -> Caption:
        return Caption(
            f"Expected layer: the mean of the layers 0 (embeddings) to {highest}, each weighted by how far its F1 is "
            "above the majority baseline.",
            sentences(
                "Above the dashed line, most of this weight is in the upper layers." if len(runs) == 1 else "",
                describe_lines("band: 95 % interval, with independent layers" if bands else ""),
                "A step without a layer above the baseline is left out.",
            ),
            f"n = {count_range(read(run)['n'])} targets.",
            "Click a point to open its task at that step.",
        )

    figure = curves_figure(
        runs,
        axis,
        read,
        replace(EXPECTED_CURVES, bands=bands),
        "expected-layer",
        "Expected layer",
        caption,
    )
    if len(figure.runs) == 1:
        step_axis = axis.for_run(run, runs)
        ends = step_axis.values([frame["step"].min(), frame["step"].max()])
        look = {"name": "equal weight of all layers", "mode": "lines", "line": style.DASHED, "hoverinfo": "skip"}
        figure.plot.add_scatter(x=ends, y=[highest / 2] * 2, **look)
    return figure


# === Two tasks ===


def two_tasks(runs: Sequence[Run], axis: AxisChoice, layer: str | int, x_task: str, y_task: str) -> Figure:
    """Return the figure of the first run's path through the scores of two tasks, in one layer (see `tasks`).

    Raises FigureError if the tasks have no step in common.
    """
    run = runs[0]
    frame = read_probe_scores(run)
    table = path(select_layer(frame, layer), x_task, y_task)
    if table.empty:
        raise FigureError("There is no step at which both tasks have been probed.")
    return make_figure(
        [run],
        f"{run.name}-{x_task}-{y_task}",
        f"{task_label(x_task)} and {task_label(y_task)}",
        plot_path(table, x_task, y_task, axis.for_run(run)),
        table,
        Caption(
            f"F1 of both tasks at each checkpoint ({len(table)}), in {describe_layer(layer, frame)}.",
            "The path runs from dark to bright; the ring marks the chosen step. Where it is horizontal, only the task "
            "of the horizontal axis is being learned; where it is vertical, only the other.",
            f"n = {table['n_x'].iloc[-1]:,} and {table['n_y'].iloc[-1]:,} targets.",
            "Click a point for its step.",
        ),
        METRIC,
    )


def plot_path(table: pd.DataFrame, x_task: str, y_task: str, axis: StepAxis) -> go.Figure:
    """Return the plot of a `path`: later points are brighter, and a ring follows the chosen step."""
    figure = go.Figure()
    steps, order = list(table["step"]), np.arange(len(table))
    tick_indices = style.few_ticks(0, len(steps) - 1)
    title = axis.title if axis.progress else step_unit_name(axis.step_unit)
    names = axis.short([steps[i] for i in tick_indices])
    colour_bar = style.colour_bar(title, "top", tickvals=tick_indices, ticktext=names)
    figure.add_scatter(
        x=table["f1_x"],
        y=table["f1_y"],
        mode="lines+markers",
        line={"color": style.with_opacity(style.GREY, 0.6), "width": 1.5},
        marker={"size": 10, "color": order, "colorscale": "Viridis", "colorbar": colour_bar},
        unselected_marker_opacity=1,
        customdata=table[["task_x", "step", "f1_x", "f1_y", "n_x", "n_y"]].to_numpy(object),
        text=[axis.step_in_unit(step) for step in steps],
        hovertemplate="<b>%{text}</b><br>"
        f"{plain(x_task)}: %{{customdata[2]:.1%}} (n = %{{customdata[4]:,}})<br>"
        f"{plain(y_task)}: %{{customdata[3]:.1%}} (n = %{{customdata[5]:,}})<extra></extra>",
        showlegend=False,
    )
    points = table[["f1_x", "f1_y"]].values.tolist()
    follow_step(figure, steps, points)
    ring = {
        "xsizemode": "pixel",
        "ysizemode": "pixel",
        "x0": -RING_RADIUS,
        "x1": RING_RADIUS,
        "y0": -RING_RADIUS,
        "y1": RING_RADIUS,
    }
    anchor = dict(zip(("xanchor", "yanchor"), points[-1]))
    figure.add_shape(type="circle", name=STEP_MARK, line={"color": style.VERMILION, "width": 3}, **anchor, **ring)
    figure.update_xaxes(title_text=f"{plain(x_task)} (F1)", tickformat=".3~p")
    figure.update_yaxes(tickformat=".3~p")
    return style.finish(figure, f"{plain(y_task)} (F1)", height=420, legend=False)
