"""Figures of attention maps: how much a head attends to fixed positions as pretraining goes on (Figure 4)."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.share import HeadHistory

POSITIONS = {  # as `curves.positions` calls them: their names here, and their formulas
    "same": ("same position", "A[i, i], over i ≥ 0"),
    "previous": ("previous position", "A[i, i−1], over i ≥ 1"),
    "next": ("next position", "A[i, i+1], over i ≤ L−2"),
    "first": ("first position, [CLS]", "A[i, 0], over i ≥ 1"),
}


def by_position(weights: pd.DataFrame) -> pd.DataFrame:
    """The output of `results.read_position_weights`, a row per position and step: step, position, weight."""
    names = {position: name for position, (name, _) in POSITIONS.items()}
    return weights.rename(columns=names).melt("step", [*names.values()], "position", "weight")


def position_figure(frame: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """The output of `by_position` as one line per position, on the page's step axis."""
    figure = go.Figure()
    for (position, _), colour, symbol in zip(POSITIONS.values(), style.PALETTE, style.SYMBOLS):
        line = frame[frame["position"] == position]
        smoothing.add_curve(
            figure,
            axis.values(line["step"]),
            line,
            "weight",
            position,
            colour,
            customdata=line["step"],
            marker={"size": 6, "symbol": symbol},
            hovertemplate=axis.hover("customdata") + ": %{y:.4f}",
        )
    axis.draw(figure, sorted(set(frame["step"])))
    figure.update_yaxes(rangemode="tozero")
    return style.finish(figure, "weight in the averaged map", height=320)


def weights_table(weights: np.ndarray, step: int) -> pd.DataFrame:
    """Maps [layers, heads, L, L] of a step, a row per weight: step, layer, head (from 1), from, to (from 0), weight."""
    layer, head, row, column = (axis.ravel() for axis in np.indices(weights.shape))
    where = {"step": step, "layer": layer + 1, "head": head + 1, "from": row, "to": column}
    return pd.DataFrame(where | {"weight": weights.ravel()})


def map_table(history: HeadHistory, step: int) -> pd.DataFrame:
    """One head's map at one of its steps: the same, with the pieces of the sentence where it is one."""
    i = history.steps.tolist().index(step)
    table = weights_table(history.weights[i][None, None], step).assign(layer=history.layer, head=history.head)
    if not history.tokens:
        return table
    pieces = {f"{end}_piece": [history.tokens[i] for i in table[end]] for end in ("from", "to")}
    return table.assign(**pieces)
