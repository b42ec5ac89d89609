"""The figure of how far predictions are from the unigram and bigram distributions of the text, over the steps."""

import pandas as pd
import plotly.graph_objects as go

from embryo_core.curves import Z
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves

STYLES = {"unigram": (style.BLUE, "circle"), "bigram": (style.VERMILION, "square")}
Y_TITLE = "divergence (nats)"


def divergences(scores: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Divergences over the steps with their 95 % intervals: group, step, value, low, high, n.

    `scores` is the metric "ngram_divergence", `errors` "ngram_divergence_error", its standard error.
    """
    table = scores.merge(errors[["group", "step", "value"]], on=["group", "step"], suffixes=("", "_error"))
    reach = Z * table["value_error"]
    table = table.assign(low=(table["value"] - reach).clip(lower=0), high=table["value"] + reach)
    return table[["group", "step", "value", "low", "high", "n"]].sort_values(["group", "step"], ignore_index=True)


def divergence_figure(data: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Rows of `divergences` as two lines with their bands."""
    figure = go.Figure()
    for group, (colour, symbol) in STYLES.items():
        rows = data[data["group"] == group]
        x = axis.values(rows["step"])
        style.add_band(figure, x, rows["low"], rows["high"], colour, group)
        smoothing.add_curve(
            figure,
            x,
            rows,
            "value",
            group,
            colour,
            marker={"size": 6, "symbol": symbol},
            customdata=rows[["step", "low", "high", "n"]].to_numpy(object),
            hovertemplate=f"{group}, {axis.hover('customdata[0]')}: %{{y:.2f}} nats<br>"
            "95 % interval %{customdata[1]:.2f} to %{customdata[2]:.2f}<br>n = %{customdata[3]:,}<extra></extra>",
        )
    axis.draw(figure, sorted(set(data["step"])))
    figure.update_yaxes(rangemode="tozero")
    return style.finish(figure, Y_TITLE, height=300)


OVERLAY = Curves(
    by="group",
    value="value",
    low="low",
    high="high",
    label=str,
    styles=lambda groups: {group: STYLES[group] for group in STYLES if group in groups},
    y_title=Y_TITLE,
    tickformat="",
    decimals=".2f",
)
