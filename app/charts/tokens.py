"""Figures of the Tokens page: accuracy by category over the steps, and order of acquisition (Figures 1, 7 and 8)."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from app.charts import style
from app.charts.step_axis import StepAxis
from embryo_core.curves import interval, onset, rescale, smooth

SETS = {
    "parts of speech": tuple(style.PARTS_OF_SPEECH),
    "verb forms": tuple(style.VERB_FORMS),
    "frequency bands": tuple(style.FREQUENCY_BANDS),
}


def category_sets(scores: pd.DataFrame) -> dict[str, list[str]]:
    """Sets of categories to choose from: the paper's that the scores have; a metric with none of these has its own."""
    groups = list(dict.fromkeys(scores["group"].dropna()))
    sets = {name: list(known) for name, known in SETS.items() if set(known) & set(groups)}
    return sets or {"categories": groups}


def curves(scores: pd.DataFrame, groups: Sequence[str], rescaled: bool) -> pd.DataFrame:
    """What is drawn, one row per category and step: group, step, n, accuracy, low, high, shown, smooth.

    `accuracy`, with its Wilson 95 % interval `low` to `high`, is as measured, in [0, 1]; `shown` is the same or, if
    `rescaled`, divided by the accuracy at the last step (a category that ends at 0 is left out); `smooth` is the mean
    of three neighbouring steps of `shown`.
    """
    parts = []
    for group in groups:
        rows = scores[scores["group"] == group].sort_values("step")
        accuracy = rows["value"].to_numpy(float)
        if not len(rows) or (rescaled and accuracy[-1] == 0):
            continue
        low, high = interval(accuracy, rows["n"])
        shown = rescale(accuracy) if rescaled else accuracy
        part = {"group": group, "step": rows["step"], "n": rows["n"], "accuracy": accuracy, "low": low, "high": high}
        parts.append(pd.DataFrame(part | {"shown": shown, "smooth": smooth(shown)}))
    columns = ["group", "step", "n", "accuracy", "low", "high", "shown", "smooth"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def accuracy_figure(
    data: pd.DataFrame, axis: StepAxis, rescaled: bool = False, bands: bool = True
) -> go.Figure:
    """Curves from `curves`: the smoothed line with its points, the measured one faint behind, and its 95 % band."""
    figure = go.Figure()
    heights = data.groupby("group")["smooth"]
    by_height = (heights.mean() if rescaled else heights.last()).sort_values(ascending=False).index
    drawn = [(group, data[data["group"] == group]) for group in by_height]
    for group, rows in drawn if bands else ():
        scale = rows["accuracy"].iloc[-1] if rescaled else 1
        x = axis.values(rows["step"])
        style.add_band(figure, x, rows["low"] / scale, rows["high"] / scale, style.colour(group), style.plain(group))
    for group, rows in drawn:
        _add_lines(figure, group, rows, axis)
    axis.draw(figure, list(data["step"]) or [0])
    style.finish(figure, "accuracy relative to the last step" if rescaled else "accuracy (words)", height=430)
    return figure.update_yaxes(tickformat=".0%" if not rescaled else ".1f", rangemode="tozero")


def _add_lines(figure: go.Figure, group: str, rows: pd.DataFrame, axis: StepAxis) -> None:
    colour, name = style.colour(group), style.plain(group)
    x = axis.values(rows["step"])
    style.add_measured(figure, x, rows["shown"], colour, name)
    figure.add_scatter(
        x=x,
        legendgroup=name,
        y=rows["smooth"],
        name=name,
        mode="lines+markers",
        line={"color": colour, "width": 2.2},
        marker={"symbol": style.SYMBOL_OF.get(group, "circle"), "size": 8},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        customdata=rows[["group", "step", "accuracy", "low", "high", "n"]].to_numpy(object),
        hovertemplate=(
            f"<b>{name}</b>, step %{{customdata[1]:,}}<br>"
            "accuracy %{customdata[2]:.1%} (95 %: %{customdata[3]:.1%} to %{customdata[4]:.1%})<br>"
            "n = %{customdata[5]:,} words; click to see them<extra></extra>"
        ),
    )


# === Order of acquisition ===


def acquisition(data: pd.DataFrame, share: float = 0.5) -> pd.DataFrame:
    """Categories in the order in which they are acquired: group, onset (a step, or missing), last (accuracy), n.

    The onset is the first step from which the smoothed accuracy stays at or above `share` of its last value; a category
    that ends at 0 has none.
    """
    rows = []
    for group, part in data.groupby("group", sort=False):
        last = part["accuracy"].iloc[-1]
        first = onset(part["step"].to_numpy(), part["smooth"], share)
        rows.append((group, first, last, part["n"].iloc[-1]))
    order = pd.DataFrame(rows, columns=["group", "onset", "last", "n"])
    return order.astype({"onset": "Int64"}).sort_values(["onset", "group"], ignore_index=True)


def acquisition_figure(order: pd.DataFrame, steps: Sequence[int], axis: StepAxis) -> go.Figure:
    """One row per category, the first acquired on top, with a mark at its onset."""
    figure = go.Figure()
    there = order.dropna(subset="onset")
    for row in there.itertuples():
        figure.add_scatter(
            x=axis.values([min(steps), row.onset]),
            y=[style.plain(row.group)] * 2,
            mode="lines+markers",
            line={"color": style.faint(style.colour(row.group), 0.45), "width": 2},
            marker={
                "color": style.colour(row.group),
                "symbol": style.SYMBOL_OF.get(row.group),
                "size": [0, 11],
                "opacity": 1,
            },
            customdata=[[row.onset, row.last, row.n]] * 2,
            hovertemplate=(
                "<b>%{y}</b>: step %{customdata[0]:,}<br>"
                "last accuracy %{customdata[1]:.1%}, n = %{customdata[2]:,} words<extra></extra>"
            ),
        )
    axis.draw(figure, steps)
    style.finish(figure, "", height=90 + 30 * len(there), legend="none")
    return figure.update_yaxes(categoryorder="array", categoryarray=list(there["group"].map(style.plain))[::-1], showgrid=False)
