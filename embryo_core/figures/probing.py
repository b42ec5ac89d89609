"""Figures of linear probes: the tasks over the steps, expected layer, two tasks (Section 4, Figure 2b)."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import STEP_MARK, StepAxis, follow_step
from embryo_core.figures.overlay import Curves
from embryo_core.figures.probing_scores import MASKED, label, layer_name
from embryo_core.types import StepUnit
from embryo_core.words import point, step_name

STYLES = {  # colour and marker
    "pos": (style.BLUE, "circle"),
    "constituent": (style.GREEN, "square"),
    "coref": (style.VERMILION, "diamond"),
    "srl": (style.PURPLE, "triangle-up"),
    MASKED: (style.GREY, "cross"),
}
RING = 9  # pixels from its middle to its line
OWN_STYLES = ((style.ORANGE, "star"), (style.PINK, "x"), (style.OLIVE, "triangle-down"), (style.SKY, "hexagon"))


# === Colours and symbols of tasks ===


def plain(task: str) -> str:
    """The label as Plotly shows it letter by letter, whatever it holds."""
    return style.plain(label(task))


def task_styles(tasks: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each task: fixed for the paper's four and masked accuracy, in turn for the user's own."""
    tasks = list(dict.fromkeys(tasks))
    own = [task for task in tasks if task not in STYLES]
    turn = {task: OWN_STYLES[i % len(OWN_STYLES)] for i, task in enumerate(own)}
    return {task: STYLES.get(task) or turn[task] for task in tasks}


# === Over the steps ===


def tasks_figure(data: pd.DataFrame, axis: StepAxis, rescaled: bool, bands: bool) -> go.Figure:
    """Curves of `task_curves` with their 95 % bands, the majority dashed.

    Every point of a task carries the task and its step as customdata.
    """
    figure = go.Figure()
    drawn = [(data[data["task"] == task], *own_style) for task, own_style in task_styles(data["task"]).items()]
    for rows, colour, _ in drawn:
        if bands:
            x, name = axis.values(rows["step"]), plain(rows["task"].iloc[0])
            style.add_band(figure, x, rows["shown_low"], rows["shown_high"], colour, name)
        _add_majority(figure, rows, colour, axis)
    height = pd.Series.mean if rescaled else lambda curve: curve.iloc[-1]
    for rows, colour, symbol in sorted(drawn, key=lambda one: height(one[0]["shown"]), reverse=True):
        _add_task(figure, rows, colour, symbol, axis)
    if data["majority"].notna().any():
        dashes = {"color": style.GREY, "width": 1.5, "dash": "dash"}
        figure.add_scatter(x=[None], y=[None], mode="lines", line=dashes, name="majority baseline")
    axis.draw(figure, sorted(set(data["step"])))
    figure.update_yaxes(tickformat=".1f" if rescaled else ".3~p", rangemode="tozero")
    return style.finish(figure, "relative to the last step" if rescaled else "F1 or accuracy", height=450)


def _add_majority(figure: go.Figure, rows: pd.DataFrame, colour: str, axis: StepAxis) -> None:
    figure.add_scatter(
        x=axis.values(rows["step"]),
        y=rows["shown_majority"],
        mode="lines",
        line={"color": style.faint(colour, 0.75), "width": 1.5, "dash": "dash"},
        legendgroup=plain(rows["task"].iloc[0]),
        hoverinfo="skip",
        showlegend=False,
    )


def _add_task(figure: go.Figure, rows: pd.DataFrame, colour: str, symbol: str, axis: StepAxis) -> None:
    task = rows["task"].iloc[0]
    what, of = ("masked accuracy", "masked pieces of held-out text") if task == MASKED else ("F1", "targets")
    layers = rows["layer"].map(lambda layer: "" if pd.isna(layer) else f", {layer_name(int(layer))}")
    smoothing.add_curve(
        figure,
        axis.values(rows["step"]),
        rows,
        "shown",
        plain(task),
        colour,
        marker={"symbol": symbol, "size": 7},
        customdata=style.told(rows.assign(layers=layers)[["task", "step", "value", "low", "high", "n", "layers"]]),
        hovertemplate=f"<b>{plain(task)}</b>, {axis.hover('customdata[1]')}%{{customdata[6]}}<br>{what} "
        "%{customdata[2]} (95 %: %{customdata[3]} to %{customdata[4]})<br>"
        f"n = %{{customdata[5]:,}} {of}<extra></extra>",
    )


def overlay_curves(rescaled: bool) -> Curves:
    """How rows of `task_curves` are drawn for several runs."""
    return Curves(
        by="task",
        value="shown",
        low="shown_low",
        high="shown_high",
        label=label,
        styles=task_styles,
        y_title="relative to the last step" if rescaled else "F1 or accuracy",
        tickformat=".1f" if rescaled else ".3~p",
        decimals=".2f" if rescaled else ".1%",
        baseline="shown_majority",
        kept=("layer", "data"),
    )


# === Expected layer ===

OVERLAY_EXPECTED = Curves(
    by="task",
    value="expected",
    low="low",
    high="high",
    label=label,
    styles=task_styles,
    y_title="expected layer",
    tickformat=".1f",
    decimals=".2f",
)


def expected_figure(
    table: pd.DataFrame, steps: Sequence[int], layers: int, axis: StepAxis, bands: bool = True
) -> go.Figure:
    """`expected_layers` over the `steps`, a line per task with its 95 % band, of a model of `layers` layers.

    Dashed: all layers alike.
    """
    figure = go.Figure()
    drawn = [(task, table[table["task"] == task], *look) for task, look in task_styles(table["task"]).items()]
    for task, rows, colour, _ in drawn if bands else []:
        style.add_band(figure, axis.values(rows["step"]), rows["low"], rows["high"], colour, plain(task))
    for task, rows, colour, symbol in drawn:
        smoothing.add_curve(
            figure,
            axis.values(rows["step"]),
            rows,
            "expected",
            plain(task),
            colour,
            marker={"symbol": symbol, "size": 7},
            customdata=rows[["task", "step", "expected", "low", "high", "n"]].to_numpy(object),
            hovertemplate=f"<b>{plain(task)}</b>, {axis.hover('customdata[1]')}<br>"
            "expected layer %{customdata[2]:.2f} (95 %: %{customdata[3]:.2f} to %{customdata[4]:.2f})<br>"
            "n = %{customdata[5]:,} targets<extra></extra>",
        )
    ends = axis.values([min(steps), max(steps)])
    alike = {"color": style.GREY, "width": 1.5, "dash": "dash"}
    figure.add_scatter(x=ends, y=[layers / 2] * 2, name="all layers alike", mode="lines", line=alike, hoverinfo="skip")
    axis.draw(figure, steps)
    return style.finish(figure, "expected layer", height=420)


# === Two tasks ===


def path_figure(table: pd.DataFrame, x_task: str, y_task: str, unit: StepUnit) -> go.Figure:
    """`path` of two tasks through the steps, the later the brighter; a ring follows the chosen step."""
    figure = go.Figure()
    order, bar = np.arange(len(table)), _step_bar(list(table["step"]), unit)
    figure.add_scatter(
        x=table["f1_x"],
        y=table["f1_y"],
        mode="lines+markers",
        line={"color": style.faint(style.GREY, 0.6), "width": 1.5},
        marker={"size": 10, "color": order, "colorscale": "Viridis", "colorbar": bar},
        unselected_marker_opacity=1,
        customdata=table[["step", "f1_x", "f1_y", "n_x", "n_y"]].to_numpy(object),
        hovertemplate=f"<b>{point('%{customdata[0]:,}', unit)}</b><br>"
        f"{plain(x_task)}: %{{customdata[1]:.1%}} (n = %{{customdata[3]:,}})<br>"
        f"{plain(y_task)}: %{{customdata[2]:.1%}} (n = %{{customdata[4]:,}})<extra></extra>",
        showlegend=False,
    )
    points = table[["f1_x", "f1_y"]].values.tolist()
    follow_step(figure, table["step"], points)
    _ring(figure, *points[-1])
    figure.update_xaxes(title_text=f"{plain(x_task)} (F1)", tickformat=".3~p")
    figure.update_yaxes(tickformat=".3~p")
    return style.finish(figure, f"{plain(y_task)} (F1)", height=420, legend=False)


def _ring(figure: go.Figure, x: float, y: float) -> None:
    """A ring around a point, of the same size on the screen whatever the zoom."""
    size = {"xsizemode": "pixel", "ysizemode": "pixel", "x0": -RING, "x1": RING, "y0": -RING, "y1": RING}
    line = {"color": style.VERMILION, "width": 3}
    figure.add_shape(type="circle", name=STEP_MARK, xanchor=x, yanchor=y, line=line, **size)


def _step_bar(steps: list[int], unit: StepUnit) -> dict:
    """A colour bar over checkpoints, one by one, with the numbers of a few steps."""
    last = len(steps) - 1
    shown = sorted({last * quarter // 4 for quarter in range(5)})
    names = style.apart(steps[i] for i in shown)
    return style.colour_bar(step_name(unit), "top", tickvals=shown, ticktext=names)
