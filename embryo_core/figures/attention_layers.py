"""One head's averaged maps in every layer at a few steps: a row for each layer, a column for each step (Figure 4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sequential

from embryo_core import results
from embryo_core.curves import normalise_rows
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.attention import METRIC, describe_sharing, maps_note, normalised_suffix
from embryo_core.figures.axis import STEP_COLUMN, AxisChoice
from embryo_core.figures.cells import add_points, outline
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.share.map_style import CLIP_PERCENTILE, colour_end, shrink
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step, quantity, step_unit_name

MAX_COLUMNS = 7  # largest number of steps
MAX_CELLS = 32  # largest number of cells along a small map's side; longer maps are averaged over blocks
GAP_FRACTION = 0.06  # gap between two maps, as a fraction of a map's side with its gap
MAP_SIDE = 130  # pixels: side of a map with its gap


def layers_over_steps(runs: Sequence[Run], axis: AxisChoice, head: int, step: int, normalised: bool = False) -> Figure:
    """Return the figure of a head's averaged maps in every layer of the first run, at evaluated steps around `step`."""
    run = runs[0]
    steps = steps_around(sorted(results.steps_done(run, METRIC)), step)
    head_count = results.read_attention_step(run, step)[0].shape[1]
    if not 1 <= head <= head_count:
        raise FigureError(f"Run '{run.name}' has no head {head}; its heads are 1 to {head_count}.")
    _, weights, sentence_count = results.read_attention_steps(run, steps, head)
    maps = np.moveaxis(weights[:, :, 0], 0, 1)  # [layers, S, L, L]
    maps = normalise_rows(maps) if normalised else maps
    small = shrink(maps, MAX_CELLS)
    block = maps.shape[-1] // small.shape[-1]
    table = layers_table(small, head, steps, block)
    if normalised:
        table = table.assign(data=maps_note(run, True))
    block_note = f"; each cell is the mean of {block} × {block} weights" if block > 1 else ""
    return make_figure(
        [run],
        f"{run.name}-attention-layers-head{head}",
        f"Head {head} in every layer{normalised_suffix(normalised)}",
        plot_layers(small, steps, step, run.step_unit),
        table,
        Caption(
            f"Averaged maps of head {head} of '{run.name}'{normalised_suffix(normalised)}; "
            f"n = {quantity(sentence_count, 'sentence')}{block_note}.",
            sentences(
                f"Rows are layers, columns {quantity(len(steps), 'evaluated step')} around the chosen one, each at "
                "least twice the one before, except perhaps the last. From each position (downwards) to each position "
                f"(rightwards). Colours end at {colour_end(small):.2g}, the {CLIP_PERCENTILE}th percentile of the "
                "weights shown.",
                describe_sharing(run),
            ),
            hint="Click a map to see it large.",
        ),
        METRIC,
        suffix=f"step{step}",
    )


def steps_around(steps: Sequence[int], selected_step: int) -> tuple[int, ...]:
    """Return at most MAX_COLUMNS of the sorted `steps`, about doublings apart, among them `selected_step`.

    Half of them are before the chosen one and half after it, if there are enough.
    """
    before: list[int] = []
    after: list[int] = []
    last = selected_step
    while below := [step for step in steps if step <= last / 2 and step < last]:
        before.append(last := below[-1])
    last = selected_step
    while above := [step for step in steps if step > last]:
        after.append(last := next((step for step in above if step >= 2 * last), above[-1]))
    half = MAX_COLUMNS // 2
    after_count = min(len(after), max(half, MAX_COLUMNS - 1 - len(before)))
    return *before[: MAX_COLUMNS - 1 - after_count][::-1], selected_step, *after[:after_count]


def plot_layers(maps: np.ndarray, steps: Sequence[int], selected_step: int, unit: StepUnit) -> go.Figure:
    """Plot maps [layers, S, M, M], layer 1 at the top, with a frame around the column of the chosen step.

    Only files show its colour bar; the page shows `colour_scale` instead, which stays visible when the plot is
    scrolled.
    """
    layer_count, column_count, size = maps.shape[:3]
    side, figure = 1 - GAP_FRACTION, go.Figure()
    offsets = (np.arange(size) + 0.5) / size * side - side / 2  # relative to the middle of a map
    positions = np.append(offsets, 0.5)  # the last one is the gap after the map
    rows = np.full((layer_count, size + 1, column_count, size + 1), np.nan, np.float32)
    rows[:, :size, :, :size] = maps[::-1, :, ::-1].transpose(0, 2, 1, 3)
    figure.add_heatmap(
        z=rows.reshape(layer_count * (size + 1), column_count * (size + 1)),
        x=(np.arange(column_count)[:, None] + positions).ravel(),
        y=(np.arange(layer_count)[:, None] + positions).ravel(),
        zmin=0,
        zmax=colour_end(maps),
        colorscale="Viridis",
        showscale=False,
        colorbar=style.colour_bar("weight"),
        hoverinfo="skip",
    )
    map_cells = [(layer, column) for layer in range(layer_count) for column in range(column_count)]
    add_points(
        figure,
        [column for _, column in map_cells],
        [layer_count - 1 - layer for layer, _ in map_cells],
        [[layer + 1, int(steps[column])] for layer, column in map_cells],
        f"layer %{{customdata[0]}}, {name_step('%{customdata[1]:,}', unit)}; click to see it large",
    )
    column = list(steps).index(selected_step)
    outline(figure, (column, column), (0, layer_count - 1), STEP_COLUMN, color=style.ORANGE, width=2)
    style.finish(figure, "layer", height=70 + MAP_SIDE * layer_count, legend=False)
    ticks = {"tickvals": [*range(column_count)], "ticktext": style.abbreviate_all(steps)}
    style.set_axes(figure, "x", title={"text": step_unit_name(unit)}, range=[-0.53, column_count - 0.47], **ticks)
    figure.update_layout(width=70 + MAP_SIDE * column_count)
    numbers = {"tickvals": [*range(layer_count)], "ticktext": [*map(str, range(layer_count, 0, -1))]}
    square = {"scaleanchor": "x", "constrain": "domain"}
    return style.set_axes(figure, "y", showgrid=False, range=[-0.53, layer_count - 0.47], **square, **numbers)


def colour_scale(figure: Figure) -> str:
    """Return the colour scale of `layers_over_steps` with its weights, as HTML."""
    zmax = figure.plot.data[0].zmax
    return style.colour_scale("weight", sequential.Viridis, {0: "0", 0.5: f"{zmax / 2:.2g}", 1: f"≥ {zmax:.2g}"})


def layers_table(maps: np.ndarray, head: int, steps: Sequence[int], block: int = 1) -> pd.DataFrame:
    """Return a row for each cell of `maps` [layers, S, M, M]; a cell is the mean of `block` x `block` weights.

    Columns: layer, head, step, from and to (first positions of the block), positions (its side), weight.
    """
    layer, column, row, to = (axis.ravel() for axis in np.indices(maps.shape))
    columns = {"layer": layer + 1, "head": head, "step": np.asarray(steps)[column]}
    columns |= {"from": block * row, "to": block * to, "positions": block}
    return pd.DataFrame(columns | {"weight": maps.ravel()})
