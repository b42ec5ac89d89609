"""Figures of attention maps: how much a head looks at fixed places as pretraining goes on (the paper's Figure 4)."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.charts import style

PLACES = {
    "same position": "A[i, i], over i ≥ 0",
    "previous position": "A[i, i−1], over i ≥ 1",
    "next position": "A[i, i+1], over i ≤ L−2",
    "first position, [CLS]": "A[i, 0], over i ≥ 1",
}


def place_weights(steps: np.ndarray, weights: np.ndarray) -> pd.DataFrame:
    """Mean weight of a head on four places, from its maps A [S, L, L] at steps [S]: step, place, weight.

    Each is a mean over the rows i that have the place (see PLACES); for the first position row 0 is left out, where it
    is the same position. L is at least 2.
    """
    means = [np.diagonal(weights, offset, 1, 2).mean(axis=1) for offset in (0, -1, 1)]
    means.append(weights[:, 1:, 0].mean(axis=1))
    frames = [pd.DataFrame({"step": steps, "place": name, "weight": mean}) for name, mean in zip(PLACES, means)]
    return pd.concat(frames, ignore_index=True)


def place_figure(frame: pd.DataFrame, step: int, log: bool) -> go.Figure:
    """The output of `place_weights` as one line per place, on the page's step axis."""
    figure = go.Figure()
    for place, colour, symbol in zip(PLACES, style.PALETTE, style.SYMBOLS):
        line = frame[frame["place"] == place]
        figure.add_scatter(
            x=style.along(line["step"], log),
            y=line["weight"],
            customdata=line["step"],
            name=place,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": 6, "symbol": symbol},
            hovertemplate="step %{customdata:,}: %{y:.4f}",
        )
    style.step_axis(figure, sorted(set(frame["step"])), log, step)
    figure.update_yaxes(rangemode="tozero")
    return style.finish(figure, "mean attention weight", height=320)


def weights_table(weights: np.ndarray, step: int) -> pd.DataFrame:
    """Maps [layers, heads, L, L] of a step, a row per weight: step, layer, head (from 1), from, to (from 0), weight."""
    layer, head, row, column = (axis.ravel() for axis in np.indices(weights.shape))
    places = {"step": step, "layer": layer + 1, "head": head + 1, "from": row, "to": column}
    return pd.DataFrame(places | {"weight": weights.ravel()})
