"""The figure of held-out accuracy by length and position: whether a model is as good at the end of long sequences."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from embryo_core.curves import interval
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.words import percent

SHORTEST = style.BLUE  # sequences of the shortest length
COLOURS = (style.VERMILION, style.ORANGE, style.GREEN, style.PURPLE, style.PINK, style.OLIVE)
SYMBOLS = ("square", "diamond", "triangle-up", "triangle-down", "cross", "x")
Y_TITLE = "accuracy (masked pieces)"
MOST_SAMPLES = 4  # to choose from


def maskings(measures: pd.DataFrame) -> list[str]:
    """The ways of masking in a table of `results.measures`, that of 15 % of single pieces first, which runs share."""
    found = list(dict.fromkeys(measures["masking"]))
    return sorted(found, key=lambda masking: (not masking.startswith("single"), masking == "training"))


def samples(measures: pd.DataFrame, masking: str) -> list[int]:
    """Masked pieces of the shortest sequences that were measured, by the text's samples, from the largest.

    Those with less than a quarter of the steps of another come last: they show no development. Empty where there are
    too many to choose from, such as another text's at each step.
    """
    rows = measures[measures["masking"] == masking]
    shortest = rows[rows["length"] == rows["length"].min()]
    steps = shortest.groupby("sample")["step"].nunique()
    if len(steps) > MOST_SAMPLES:
        return []
    return sorted(steps.index.tolist(), key=lambda sample: (4 * steps[sample] < steps.max(), -sample))


def curves_of(measures: pd.DataFrame, masking: str, sample: int | None = None) -> pd.DataFrame:
    """The curves of one way of masking: curve, step, value, low, high (Wilson's 95 % interval), n.

    Where a text has several samples, the one of these `samples`, or by default its first; of longer sequences that of
    the same place by size.
    """
    rows = measures[measures["masking"] == masking].sort_values(["length", "first", "step"], kind="stable")
    if found := samples(measures, masking):
        place = sorted(found, reverse=True).index(found[0] if sample is None else sample)
        sizes = rows.groupby("length")["sample"].transform("rank", method="dense", ascending=False)
        rows = rows[sizes == place + 1]
    if rows.empty:
        return pd.DataFrame(columns=["curve", "step", "value", "low", "high", "n"])
    places = zip(rows["length"], rows["first"], rows["last"], strict=True)
    low, high = interval(rows["accuracy"], rows["n"])
    names = [f"{length} tokens, positions {first} to {min(last, length - 1)}" for length, first, last in places]
    found = {"curve": names, "step": rows["step"], "value": rows["accuracy"], "low": low, "high": high, "n": rows["n"]}
    return pd.DataFrame(found).reset_index(drop=True)


def styles(curves: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Colour and symbol of each curve, in their order."""
    others = zip(COLOURS * len(curves), SYMBOLS * len(curves))
    return dict(zip(curves, [(SHORTEST, "circle"), *others]))


def figure(data: pd.DataFrame, axis: StepAxis, baseline: tuple[str, float] | None) -> go.Figure:
    """Rows of `curves_of` as lines with their bands, and a dashed line at the `baseline`, its name and value."""
    found = go.Figure()
    for curve, (colour, symbol) in styles([*dict.fromkeys(data["curve"])]).items():
        rows = data[data["curve"] == curve]
        x = axis.values(rows["step"])
        style.add_band(found, x, rows["low"], rows["high"], colour, curve)
        smoothing.add_curve(
            found,
            x,
            rows,
            "value",
            curve,
            colour,
            marker={"size": 6, "symbol": symbol},
            customdata=rows[["step", "low", "high", "n"]].to_numpy(object),
            hovertemplate=f"{curve}, {axis.hover('customdata[0]')}: %{{y:.1%}}<br>"
            "95 % interval %{customdata[1]:.1%} to %{customdata[2]:.1%}<br>n = %{customdata[3]:,}<extra></extra>",
        )
    axis.draw(found, sorted(set(data["step"])))
    style.finish(found, Y_TITLE, height=300)
    if baseline is not None:
        name, value = baseline
        ends = axis.values([data["step"].min(), data["step"].max()])
        style.add_baseline(found, ends, value, style.GREY, name, f"{name}: {percent(value)}")
        found.data[-1].update(showlegend=True, name=name)
    return found.update_yaxes(tickformat=".0%", rangemode="tozero")


OVERLAY = Curves(
    by="curve",
    value="value",
    low="low",
    high="high",
    label=str,
    styles=styles,
    y_title=Y_TITLE,
    tickformat=".0%",
    decimals=".1%",
    baseline="baseline",
)
