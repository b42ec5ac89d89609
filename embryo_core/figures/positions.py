"""Figures of what positions are worth: deviations of the embeddings, and cosines of the states, over the steps."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.figures.probing_layers import layer_colours
from embryo_core.figures.probing_scores import layer_name

DEVIATION, COSINE = "positions_deviation", "positions_cosine"
WORDS, POSITIONS = "words", "positions"
COLOURS = (style.VERMILION, style.ORANGE, style.GREEN, style.PURPLE, style.PINK, style.OLIVE)  # of groups of positions
Y_TITLES = {DEVIATION: "standard deviation", COSINE: "mean cosine"}


def curves_of(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The curves of one of the two metrics: curve, step, value, n; of deviations a curve is a table, else a layer.

    Where positions are measured in several groups, all together are left out.
    """
    by = "group" if metric == DEVIATION else "layer"
    rows = scores[scores["metric"] == metric].rename(columns={by: "curve"})
    if metric == COSINE:
        rows = rows.astype({"curve": int})
    else:
        groups = [group for group in rows["curve"].unique() if group.startswith(f"{POSITIONS} ")]
        rows = rows[~rows["curve"].isin([POSITIONS] if len(groups) > 1 else groups)]
    return rows[["curve", "step", "value", "n"]].sort_values("step", kind="stable", ignore_index=True)


def styles(curves: Sequence) -> Mapping[str | int, tuple[str, str]]:
    """Colour and symbol of each curve: of words and of groups of positions, or of layers."""
    if not all(isinstance(curve, str) for curve in curves):
        return {layer: (colour, "circle") for layer, colour in layer_colours(sorted(curves)).items()}
    groups = [curve for curve in curves if curve != WORDS]
    of_groups = {group: (colour, "circle") for group, colour in zip(groups, COLOURS * len(groups))}
    return ({WORDS: (style.BLUE, "square")} if WORDS in curves else {}) | of_groups


def label(curve: str | int) -> str:
    """How a curve is named: a table of embeddings, or a layer."""
    return curve if isinstance(curve, str) else layer_name(curve)


def figure(data: pd.DataFrame, metric: str, axis: StepAxis) -> go.Figure:
    """Rows of `curves_of` as a line each; cosines from 0 to 1, or from the lowest where that is below 0."""
    found = go.Figure()
    for curve, (colour, symbol) in styles([*dict.fromkeys(data["curve"])]).items():
        rows = data[data["curve"] == curve]
        smoothing.add_curve(
            found,
            axis.values(rows["step"]),
            rows,
            "value",
            label(curve),
            colour,
            marker={"size": 6, "symbol": symbol},
            customdata=rows[["step", "n"]].to_numpy(object),
            hovertemplate=f"{label(curve)}, {axis.hover('customdata[0]')}: %{{y:.3f}}<br>"
            "n = %{customdata[1]:,}<extra></extra>",
        )
    axis.draw(found, sorted(set(data["step"])))
    found.update_yaxes(rangemode="tozero")
    return style.finish(found, Y_TITLES[metric], height=300)


def overlay_curves(metric: str) -> Curves:
    """How the same curves of several runs are drawn."""
    return Curves(
        by="curve",
        value="value",
        low=None,
        high=None,
        label=label,
        styles=styles,
        y_title=Y_TITLES[metric],
        tickformat="",
        decimals=".3f",
    )
