"""The lens as a grid: layer by step, the top word written in each cell, its probability as colour."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.charts import cells, style
from app.charts.query import MARKED
from app.charts.step_axis import StepAxis

LIGHT, DARK = (0xEE, 0xF4, 0xF8), (0x08, 0x45, 0x7C)
TICKS = (0.01, 0.1, 0.25, 0.5, 1)  # of the colour bar
WIDTH = 760  # pixels that the cells have together on a page of 1,200; fixes how many letters fit into one
LETTER = 6.2  # pixels


def grid(table: pd.DataFrame, axis: StepAxis, pin: tuple[int, int] | None, marked: Mapping[str, str]) -> go.Figure:
    """The grid of a lens with a line around the pinned cell (layer, step) and around the column of the chosen step.

    Without a pin the line is around the last layer at the chosen step.

    `table` has the columns step, layer, rank, token, probability; `marked` gives the role of words to be outlined where
    they are on top. Colour goes with the square root of the probability, the same on every grid. Every cell carries its
    layer and step as customdata.
    """
    top = table[table["rank"] == 1]
    steps, layers = sorted(set(top["step"])), sorted(set(top["layer"]))
    words, values = (top.pivot(index="layer", columns="step", values=name) for name in ("token", "probability"))
    letters = max(2, int(WIDTH / len(steps) / LETTER))
    figure = go.Figure()
    figure.add_heatmap(
        z=np.sqrt(values.to_numpy()),
        text=[[style.plain(_cut(word, letters)) for word in row] for row in words.to_numpy()],
        texttemplate="%{text}",
        textfont_size=style.FONT - 3,
        zmin=0,
        zmax=1,
        colorscale=[[t, _mix(t)] for t in np.linspace(0, 1, 11)],
        colorbar={
            "tickvals": np.sqrt(TICKS),
            "ticktext": [f"{tick:.0%}" for tick in TICKS],
            "title": {"text": "probability", "side": "top", "font_size": style.FONT - 2},
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1.01,
            "yanchor": "bottom",
            "len": 0.3,
            "thickness": 8,
            "outlinewidth": 0,
            "tickfont_size": style.FONT - 3,
        },
        xgap=1,
        ygap=1,
        hoverinfo="skip",
    )
    _add_points(figure, top, steps, layers)
    for word, step, layer in top[["token", "step", "layer"]].itertuples(index=False):
        if word in marked:
            _outline(figure, steps.index(step), layers.index(layer), MARKED[marked[word]][0], 2)
    top_row = len(layers) - 1
    cells.outline_step(figure, steps, (0, top_row), color=style.GREY, width=1.5, dash="dot")
    if pin:
        _outline(figure, steps.index(pin[1]), layers.index(pin[0]), style.VERMILION, 3)
    else:
        cells.outline_step(figure, steps, (top_row, top_row), color=style.VERMILION, width=3)
    return cells.finish_by_step(figure, axis, steps, layers, "layer", height=max(430, 44 * len(layers) + 120))


def _cut(word: str, letters: int) -> str:
    return word if len(word) <= letters else word[: letters - 1] + "…"


def _mix(t: float) -> str:
    """A colour between LIGHT (t = 0) and DARK (t = 1)."""
    return "#" + "".join(f"{round(low + (high - low) * t):02x}" for low, high in zip(LIGHT, DARK))


def _add_points(figure: go.Figure, top: pd.DataFrame, steps: list[int], layers: list[int]) -> None:
    described = [
        [layer, step, style.plain(word), f"{step:,}", f"{probability:.3g}"]
        for layer, step, word, probability in top[["layer", "step", "token", "probability"]].itertuples(index=False)
    ]
    hover = "%{customdata[2]}, probability %{customdata[4]}<br>layer %{customdata[0]}, step %{customdata[3]}"
    cells.add_points(figure, top["step"].map(steps.index), top["layer"].map(layers.index), described, hover)


def _outline(figure: go.Figure, x: int, y: int, colour: str, width: int) -> None:
    cells.outline(figure, (x, x), (y, y), color=colour, width=width)
