"""Figures of what each head does: a score as layer by head and over the steps, and since when a pattern is present."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import cells, smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.patterns import PATTERNS, appearance, level
from embryo_core.figures.probing_layers import layer_colours
from embryo_core.types import StepUnit
from embryo_core.words import headed

CHOSEN = style.VERMILION  # a colour that the scale does not have
NEVER = "–"


# === Layer by head ===


def value_figure(rows: pd.DataFrame, what: str, step: int, chosen: tuple[int, int]) -> go.Figure:
    """A pattern (rows of `of_pattern`) at one step as layer by head; colours run over the values of all steps."""
    pattern = PATTERNS[what]
    here = rows[rows["step"] == step]
    texts = [pattern.write(value) for value in here["value"]]
    return _grid(
        here.assign(colour=here["value"], text=texts),
        chosen,
        (rows["value"].min(), rows["value"].max()),
        style.colour_bar(pattern.axis, tickformat=pattern.tickformat),
    )


def appearance_figure(
    since: pd.DataFrame, steps: list[int], chosen: tuple[int, int], unit: StepUnit
) -> go.Figure:
    """`appearances` as layer by head, the earlier the brighter; a head without the pattern stays empty.

    Colours run over the evaluated `steps`, one by one, from the earliest appearance to the last step.
    """
    order = {step: number for number, step in enumerate(steps)}
    names = style.apart(steps)
    here = since.assign(
        colour=[np.nan if pd.isna(step) else -order[step] for step in since["step"]],
        text=[NEVER if pd.isna(step) else names[order[step]] for step in since["step"]],
        exact=[NEVER if pd.isna(step) else f"{int(step):,}" for step in since["step"]],
    )
    last = len(steps) - 1
    first = order.get(since["step"].min(), 0)
    shown = sorted({first + (last - first) * quarter // 4 for quarter in range(5)})
    ticks = {"tickvals": [-number for number in shown], "ticktext": [names[number] for number in shown]}
    return _grid(here, chosen, (-last, -first), style.colour_bar(headed("since", unit), **ticks))


def _grid(here: pd.DataFrame, chosen: tuple[int, int], ends: tuple[float, float], bar: dict) -> go.Figure:
    """Cells of a colour and a text, layer by head; every cell is a point with its layer and head as customdata.

    The pointer is told the text, or what it shortens, where that is in a column `exact`.
    """
    colours = here.pivot(index="layer", columns="head", values="colour")
    texts = here.pivot(index="layer", columns="head", values="text")
    figure = go.Figure()
    figure.add_heatmap(
        x=colours.columns,
        y=colours.index,
        z=colours.to_numpy(float, na_value=np.nan),
        text=cells.written(texts.to_numpy(), colours.to_numpy(float, na_value=np.nan), "Viridis", ends),
        texttemplate="%{text}",
        textfont={"size": style.FONT - 2, "color": cells.BLACK},
        colorscale="Viridis",
        zmin=ends[0],
        zmax=ends[1],
        xgap=2,
        ygap=2,
        hoverinfo="skip",
        colorbar=bar,
    )
    described = here[["layer", "head"]].to_numpy().tolist()
    hover = "layer %{customdata[0]}, head %{customdata[1]}: %{text}"
    cells.add_points(figure, here["head"], here["layer"], described, hover, here.get("exact", here["text"]))
    for row in here[here["colour"].isna()].itertuples():
        figure.add_annotation(x=row.head, y=row.layer, text=row.text, showarrow=False, font_size=style.FONT - 2)
    layer, head = chosen
    cells.outline(figure, (head, head), (layer, layer), color=CHOSEN, width=3)
    style.finish(figure, "layer", height=min(90 + 46 * len(colours), 560), legend=False)
    figure.update_xaxes(title_text="head", dtick=1, range=[0.5, colours.columns.max() + 0.5], fixedrange=True)
    figure.update_yaxes(dtick=1, range=[colours.index.max() + 0.5, 0.5], showgrid=False, fixedrange=True)
    return figure


# === Over the steps ===


def curves_figure(
    rows: pd.DataFrame,
    base: tuple[float, int] | None,
    what: str,
    change: float | None,
    chosen: tuple[int, int],
    axis: StepAxis,
) -> go.Figure:
    """The pattern in every head over the steps: the chosen head large, the others faint in the colour of their layer.

    `rows` are those of `of_pattern`, `base` is the `baseline`; smoothing is that of the chosen head. Every point
    carries its layer, head and step as customdata.
    """
    figure = go.Figure()
    for layer, colour in layer_colours(sorted(set(rows["layer"]))).items():
        of_layer = rows[rows["layer"] == layer]
        others = of_layer[(of_layer["head"] != chosen[1]) | (layer != chosen[0])]
        _add_others(figure, others, what, axis, f"layer {layer}", colour)
    own = rows[(rows["layer"] == chosen[0]) & (rows["head"] == chosen[1])]
    smoothing.add_curve(
        figure,
        axis.values(own["step"]),
        own,
        "value",
        f"layer {chosen[0]}, head {chosen[1]}",
        CHOSEN,
        line={"width": 3.5},
        marker={"size": 7},
        customdata=_described(own, what),
        hovertemplate=_hover(axis),
    )
    _mark_appearance(figure, own, change, base, axis)
    axis.draw(figure, sorted(set(rows["step"])))
    figure.update_yaxes(tickformat=PATTERNS[what].tickformat, rangemode="normal" if PATTERNS[what].falls else "tozero")
    return style.finish(figure, PATTERNS[what].axis, height=420)


def _add_others(figure: go.Figure, rows: pd.DataFrame, what: str, axis: StepAxis, name: str, colour: str) -> None:
    """One faint trace for several heads, with a gap between one and the next."""
    x, y, about = [], [], []
    for _, curve in rows.groupby(["layer", "head"]):
        x += [*axis.values(curve["step"]), None]
        y += [*curve["value"], None]
        about += [*_described(curve, what), []]
    line = {"color": colour, "width": 1}
    shared = {"mode": "lines", "name": name, "line": line, "opacity": 0.7}
    figure.add_scatter(x=x, y=y, customdata=about, hovertemplate=_hover(axis), **shared)


def _hover(axis: StepAxis) -> str:
    of_head = "layer %{customdata[0]}, head %{customdata[1]}, "
    return f"{of_head}{axis.hover('customdata[2]')}: " + "%{customdata[3]}<extra></extra>"


def _described(rows: pd.DataFrame, what: str) -> list[list]:
    """Layer, head, step and value of each row, the value as text."""
    points = rows[["layer", "head", "step", "value"]].itertuples(index=False)
    return [[layer, head, step, PATTERNS[what].write(value)] for layer, head, step, value in points]


def _mark_appearance(
    figure: go.Figure, own: pd.DataFrame, change: float | None, base: tuple[float, int] | None, axis: StepAxis
) -> None:
    """The level at which the pattern counts as present, and the step of the chosen head from which it does."""
    least = level(change, own["value"].iloc[0], base)
    first = axis.point(int(own["step"].iloc[0]))
    name = f"best fixed offset ({base[1]:+d})" if change is None else f"{first} {change:+g}"
    figure.add_hline(
        y=least,
        line={"color": style.GREY, "width": 1.5, "dash": "dash"},
        annotation_text=name,
        annotation_position="top left",
    )
    since = appearance(own, change, base)
    if since is not None:
        value = own.loc[own["step"] == since, "value"]
        marker = {"color": CHOSEN, "size": 16, "symbol": "star", "line": {"color": "white", "width": 1}}
        text = f"present since {axis.point(int(since))}"
        figure.add_scatter(
            x=axis.values([since]), y=value, name=text, mode="markers", marker=marker, hovertemplate=text
        )
