"""Small maps of one head, a row per layer and a column per step (Figure 4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sequential

from embryo_core.figures import style
from embryo_core.figures.axis import STEP_COLUMN
from embryo_core.figures.cells import add_points, outline
from embryo_core.share.map_style import colour_end
from embryo_core.types import StepUnit
from embryo_core.words import point, step_name

COLUMNS = 7  # steps
CELLS = 32  # positions of a small map at most; longer ones are averaged over blocks
GAP = 0.06  # of a map's side, between two
SIDE = 130  # pixels of a map


def steps_around(known: Sequence[int], chosen: int, count: int = COLUMNS) -> tuple[int, ...]:
    """At most so many of the sorted `known` steps, about doublings apart, the `chosen` one among them.

    Half of them lie before the chosen one and half after it, as far as there are so many.
    """
    before, after = [], []
    at = chosen
    while below := [step for step in known if step <= at / 2 and step < at]:
        before.append(at := below[-1])
    at = chosen
    while above := [step for step in known if step > at]:
        after.append(at := next((step for step in above if step >= 2 * at), above[-1]))
    half = count // 2
    later = min(len(after), max(half, count - 1 - len(before)))
    return *before[: count - 1 - later][::-1], chosen, *after[:later]


def layers_figure(maps: np.ndarray, steps: Sequence[int], chosen: int, unit: StepUnit) -> go.Figure:
    """Maps [layers, S, M, M] beside each other, layer 1 at the bottom, the column of the chosen step framed.

    Its bar of colours is drawn in files alone; that of the page is `colour_scale`.
    """
    layers, columns, size = maps.shape[:3]
    end, figure = colour_end(maps), go.Figure()
    inside = (np.arange(size) + 0.5) / size * (1 - GAP) - (1 - GAP) / 2  # from the middle of a map
    positions = np.append(inside, 0.5)  # the last one is the gap after the map
    rows = np.full((layers, size + 1, columns, size + 1), np.nan, np.float32)
    rows[:, :size, :, :size] = maps[:, :, ::-1].transpose(0, 2, 1, 3)
    figure.add_heatmap(
        z=rows.reshape(layers * (size + 1), columns * (size + 1)),
        x=(np.arange(columns)[:, None] + positions).ravel(),
        y=(np.arange(layers)[:, None] + positions).ravel(),
        zmin=0,
        zmax=end,
        colorscale="Viridis",
        showscale=False,
        colorbar=style.colour_bar("weight"),
        hoverinfo="skip",
    )
    where = [(layer, column) for layer in range(layers) for column in range(columns)]
    add_points(
        figure,
        [column for _, column in where],
        [layer for layer, _ in where],
        [[layer + 1, int(steps[column])] for layer, column in where],
        f"layer %{{customdata[0]}}, {point('%{customdata[1]:,}', unit)}; click to see it large",
    )
    column = list(steps).index(chosen)
    outline(figure, (column, column), (0, layers - 1), STEP_COLUMN, color=style.ORANGE, width=2)
    style.finish(figure, "layer", height=70 + SIDE * layers, legend=False)
    ticks = {"tickvals": [*range(columns)], "ticktext": style.apart(steps)}
    style.set_axes(figure, "x", title={"text": step_name(unit)}, range=[-0.53, columns - 0.47], **ticks)
    numbers = {"tickvals": [*range(layers)], "ticktext": [str(layer + 1) for layer in range(layers)]}
    figure.update_layout(width=70 + SIDE * columns)
    square = {"scaleanchor": "x", "constrain": "domain"}
    return style.set_axes(figure, "y", showgrid=False, range=[-0.53, layers - 0.47], **square, **numbers)


def colour_scale(maps: np.ndarray) -> str:
    """The colours of the figure of these maps with their weights, as HTML."""
    end = colour_end(maps)
    return style.colour_scale("weight", sequential.Viridis, {0: "0", 0.5: f"{end / 2:.2g}", 1: f"≥ {end:.2g}"})


def layers_table(maps: np.ndarray, head: int, steps: Sequence[int], block: int = 1) -> pd.DataFrame:
    """The cells [layers, S, M, M] of the figure, a row each: layer, head (from 1), step, from, to, positions, weight.

    A weight is the mean over a `block` of positions on each side, of which `from` and `to` are the first.
    """
    layer, column, row, to = (axis.ravel() for axis in np.indices(maps.shape))
    where = {"layer": layer + 1, "head": head, "step": np.asarray(steps)[column]}
    where |= {"from": block * row, "to": block * to, "positions": block}
    return pd.DataFrame(where | {"weight": maps.ravel()})
