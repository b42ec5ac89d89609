"""Heat maps of layers by steps, and the parts that heat maps share: clickable points, and outlines of cells."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from embryo_core.figures import style
from embryo_core.figures.axis import STEP_MARK, AxisChoice, StepAxis, follow_step
from embryo_core.figures.figure import Caption, Figure, make_figure
from embryo_core.figures.lines import Curves
from embryo_core.types import Run
from embryo_core.words import layer_name

OUTLINE_COLOUR = style.VERMILION  # colour of outlines, which no heat map uses
BLACK, WHITE = "#000000", "#ffffff"
MID_LUMINANCE = 0.179  # luminance at which black and white have the same contrast, 4.6 : 1
SHADE_COUNT = 256  # number of samples of a colour scale
MAX_TICKS = 26  # largest number of step labels side by side


def add_points(
    figure: go.Figure, x: Sequence, y: Sequence, customdata: list[list], hover: str, text: Sequence[str] | None = None
) -> None:
    """Add invisible points to cells, since Plotly reports clicks only on points; each has a list as customdata."""
    invisible = {"marker_opacity": 0}
    figure.add_scatter(
        x=x,
        y=y,
        text=text,
        mode="markers",
        marker={"size": 26, "symbol": "square", "opacity": 0},
        selected=invisible,
        unselected=invisible,
        customdata=customdata,
        hovertemplate=f"{hover}<extra></extra>",
    )
    figure.update_layout(hoverdistance=-1)  # the middle of a cell is the closest point everywhere in it


def with_readable_colours(
    texts: Sequence[Sequence[str]], z: np.ndarray, colorscale: Any, ends: tuple[float, float] | None = None
) -> list[list[str]]:
    """Return the texts [rows, columns] of cells, with markup that makes them white where the colour of `z` is dark.

    Texts without markup are BLACK. Plotly itself would choose white or a grey, with a contrast as low as 2.6 : 1.
    """
    low, high = ends or (np.nanmin(z, initial=np.inf), np.nanmax(z, initial=-np.inf))
    fractions = np.clip((z - low) / (high - low), 0, 1) if high > low else np.full(np.shape(z), 0.5)
    scale = colorscale if isinstance(colorscale, str) else tuple(map(tuple, colorscale))
    is_dark = _is_dark(scale)[np.nan_to_num(fractions * (SHADE_COUNT - 1)).round().astype(int)]
    return [
        [f'<span style="color: {WHITE}">{text}</span>' if is_white and text else text for text, is_white in zip(*row)]
        for row in zip(texts, is_dark, strict=True)
    ]


@cache
def _is_dark(colorscale: str | tuple) -> np.ndarray:
    """Return whether white has more contrast than black on each of SHADE_COUNT evenly spaced shades of a scale."""
    scale = colorscale if isinstance(colorscale, str) else [*map(list, colorscale)]
    colours = sample_colorscale(scale, np.linspace(0, 1, SHADE_COUNT), colortype="tuple")
    return np.array([luminance(colour) < MID_LUMINANCE for colour in colours])


def luminance(colour: Sequence[float]) -> float:
    """Return the relative luminance (WCAG 2) of a colour, with red, green and blue from 0 to 1."""
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in colour]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def add_cells(
    figure: go.Figure,
    z: np.ndarray,
    texts: Sequence[Sequence[str]],
    colorscale: Any = "Viridis",
    ends: tuple[float, float] | None = None,
    font: int = style.FONT_SIZE - 2,
    gap: int = 1,
    **more: Any,
) -> None:
    """Add a heat map of `z` with `texts` in its cells, both [rows, columns].

    `ends` are the values at both ends of the colour scale, by default the lowest and the highest of `z`.
    """
    figure.add_heatmap(
        z=z,
        text=with_readable_colours(texts, z, colorscale, ends),
        texttemplate="%{text}",
        textfont={"size": font, "color": BLACK},
        colorscale=colorscale,
        xgap=gap,
        ygap=gap,
        hoverinfo="skip",
        **dict(zip(("zmin", "zmax"), ends or ())),
        **more,
    )


def outline(
    figure: go.Figure, columns: tuple[int, int], rows: tuple[int, int], name: str | None = None, **line: object
) -> None:
    """Outline a range of columns and rows, ends included; `line` has Plotly's color, width and dash."""
    (left, right), (low, high) = columns, rows
    figure.add_shape(type="rect", name=name, x0=left - 0.5, x1=right + 0.5, y0=low - 0.5, y1=high + 0.5, line=line)


def outline_step(figure: go.Figure, columns: Mapping[int, int], rows: tuple[int, int], **line: object) -> None:
    """Draw an outline that follows the column of the chosen step; `columns` maps each sorted step to its column."""
    last = max(columns.values())
    outline(figure, (last, last), rows, STEP_MARK, **line)
    follow_step(figure, [*columns], [[column] for column in columns.values()])


def layer_map(
    runs: Sequence[Run],
    axis: AxisChoice,
    rows: pd.DataFrame,
    layer: int,
    curves: Curves,
    name: str,
    title: str,
) -> Figure:
    """Return the figure of a heat map of the first run's `rows` (layer, step, value, n); see `plot_layer_map`."""
    values = "The same values in hundredths" if curves.decimals.endswith("%") else "The same values"
    caption = Caption(
        f"{values}: a column for each evaluated checkpoint ({rows['step'].nunique()}), a row for each layer.",
        f"Colours run from the lowest cell to the highest. Outlined: {layer_name(layer)} at the chosen step.",
        hint="Click a cell for its layer and step.",
    )
    plot = plot_layer_map(rows, axis.for_run(runs[0], runs), layer, curves)
    return make_figure([runs[0]], name, title, plot, rows, caption, curves.metric)


def plot_layer_map(data: pd.DataFrame, axis: StepAxis, layer: int, curves: Curves) -> go.Figure:
    """Return the plot of `data` (layer, step, value, n), layer by step; `curves` has their format, unit and name.

    Cells have one decimal fewer than hover texts, and percentages in hundredths. Lines outline the column of the chosen
    step and its cell of the `layer`. The customdata of a cell are its layer, step, value and n. Colours run from the
    lowest cell to the highest.
    """
    hover = (
        f"{axis.hover_step('customdata[1]')}: %{{customdata[2]:{curves.decimals}}}<br>"
        f"n = %{{customdata[3]:,}} {curves.unit}"
    )
    values = data.pivot(index="layer", columns="step", values="value")
    steps, layers, z = list(values.columns), list(values.index), values.to_numpy(float)
    factor, digits = 100 if curves.decimals.endswith("%") else 1, int(curves.decimals[1]) - 1
    texts = [["" if np.isnan(value) else f"{factor * value:.{digits}f}" for value in row] for row in z]
    figure = go.Figure()
    add_cells(figure, z, texts, colorbar=style.colour_bar(curves.y_title, tickformat=curves.tickformat))
    add_points(
        figure,
        data["step"].map(steps.index),
        data["layer"].map(layers.index),
        data[["layer", "step", "value", "n"]].to_numpy(object),
        f"%{{text}}, {hover}",
        data["layer"].map(layer_name),
    )
    columns = {step: column for column, step in enumerate(steps)}
    outline_step(figure, columns, (0, len(layers) - 1), color=OUTLINE_COLOUR, width=1.5, dash="dot")
    if layer in layers:
        outline_step(figure, columns, (layers.index(layer),) * 2, color=OUTLINE_COLOUR, width=3)
    height = min(100 + 42 * len(layers), 560)
    return finish_by_step(figure, axis, style.abbreviate_all(steps), [*map(layer_name, layers)], "", height=height)


def finish_by_step(
    figure: go.Figure, axis: StepAxis, steps: list[str], layers: Sequence[object], y_title: str, height: int
) -> go.Figure:
    """Set the axes of a grid: columns with the labels `steps`, rows with the labels `layers`, from top to bottom.

    At most MAX_TICKS of the columns show their label.
    """
    labelled_columns = range(0, len(steps), -(-len(steps) // MAX_TICKS))
    style.finish(figure, y_title, height=height, legend=False)
    style.set_axes(
        figure,
        "x",
        title={"text": axis.title_of_steps, "standoff": 18},
        tickvals=list(labelled_columns),
        ticktext=[steps[i] for i in labelled_columns],
        tickangle=0,
        tickfont={"size": style.FONT_SIZE - 3},
        range=[-0.55, len(steps) - 0.45],
        fixedrange=True,
    )
    rows = {"tickvals": list(range(len(layers))), "ticktext": list(layers), "range": [len(layers) - 0.45, -0.55]}
    return style.set_axes(figure, "y", **rows, showgrid=False, fixedrange=True)
