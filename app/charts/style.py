"""One visual language for every chart: colours that survive colour blindness and a dark page, axes, the chosen step."""

from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

# Okabe and Ito's palette, its black and yellow replaced by tones that show on a light and on a dark page.
BLUE, ORANGE, GREEN, SKY = "#1F83C6", "#E69F00", "#009E73", "#56B4E9"
VERMILION, PINK, OLIVE, PURPLE, GREY = "#D55E00", "#CC79A7", "#A89F00", "#8F6BC0", "#888888"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, PINK, OLIVE, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "hexagon")

PARTS_OF_SPEECH = {
    "conjunction": BLUE,
    "determiner": ORANGE,
    "preposition": GREEN,
    "pronoun": SKY,
    "verb": VERMILION,
    "adverb": PINK,
    "adjective": OLIVE,
    "noun": PURPLE,
    "proper noun": GREY,
}
VERB_FORMS = dict(zip(("VBD", "VBG", "VBN", "VBP", "VBZ"), (BLUE, ORANGE, GREEN, VERMILION, PURPLE)))
FREQUENCY_BANDS = dict(zip(("rank 50-99", "rank 300-349", "rank 1550-1599"), (BLUE, GREEN, ORANGE)))
GROUPS = PARTS_OF_SPEECH | VERB_FORMS | FREQUENCY_BANDS | {"all": GREY}
SYMBOL_OF = {
    group: symbol for groups in (PARTS_OF_SPEECH, VERB_FORMS, FREQUENCY_BANDS) for group, symbol in zip(groups, SYMBOLS)
}

FONT = 14  # pixels
STEP_LINE = "step"  # the name of the shape that marks the chosen step; the time bar moves it while the user drags


def colour(group: str) -> str:
    """The fixed colour of a category, the same on every chart."""
    return GROUPS.get(group, GREY)


def faint(colour: str, opacity: float) -> str:
    """A #rrggbb colour as rgba with this opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def along(steps: Iterable[int], log: bool) -> list[float]:
    """Where steps lie on a step axis: on a log axis step 0, which has no logarithm, lies at a half."""
    return [0.5 if log and step == 0 else step for step in steps]


def step_axis(figure: go.Figure, steps: Sequence[int], log: bool, chosen: int | None = None) -> go.Figure:
    """Give a figure the step axis shared by all pages, linear or log, and the line that marks the chosen step."""
    low, high = min(steps), max(steps) or 1
    figure.update_xaxes(title_text="step (optimizer updates)", type="log" if log else "linear")
    if log:
        ticks = ([0] if low == 0 else []) + [10**power for power in range(10) if low <= 10**power <= high]
        figure.update_xaxes(tickvals=along(ticks, log), ticktext=[short(tick) for tick in ticks])
    else:
        margin = (high - low) * 0.02
        figure.update_xaxes(range=[low - margin, high + margin], tickformat="~s")
    if chosen is not None:
        x = along([chosen], log)[0]
        figure.add_shape(
            {"type": "line", "name": STEP_LINE, "xref": "x", "yref": "y domain", "x0": x, "x1": x, "y0": 0, "y1": 1},
            line={"color": GREY, "width": 1.5, "dash": "dot"},
            layer="below",
        )
    return figure


def add_band(
    figure: go.Figure, x: list[float], low: Iterable[float], high: Iterable[float], colour: str, of: str
) -> None:
    """A 95 % band behind the curve named `of`, with which it comes and goes by the legend."""
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*high, *reversed([*low])],
        name=f"{of}, 95 % band",
        legendgroup=of,
        showlegend=False,
        mode="lines",
        line_width=0,
        fill="toself",
        fillcolor=faint(colour, 0.13),
        hoverinfo="skip",
    )


def add_measured(figure: go.Figure, x: list[float], y: Iterable[float], colour: str, of: str) -> None:
    """What was measured, faint behind the smoothed curve named `of`, with which it comes and goes by the legend."""
    figure.add_scatter(
        x=x,
        y=y,
        name=f"{of}, as measured",
        legendgroup=of,
        showlegend=False,
        mode="lines",
        line={"color": faint(colour, 0.4), "width": 1},
        hoverinfo="skip",
    )


def finish(figure: go.Figure, y_title: str, height: int = 380, legend: str = "right") -> go.Figure:
    """Sizes, fonts, margins and grid; the legend stands at the right, at the top, or not at all ("none")."""
    top = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
    right = {"x": 1.01, "y": 1, "xanchor": "left", "yanchor": "top"}
    figure.update_layout(
        height=height,
        font_size=FONT,
        margin={"l": 8, "r": 8, "t": 36 if legend == "top" else 12, "b": 8},
        hovermode="closest",
        hoverlabel={"font_size": FONT, "align": "left"},
        showlegend=legend != "none",
        legend={**(top if legend == "top" else right), "font_size": FONT, "title_text": "", "tracegroupgap": 0},
    )
    axis = {
        "title_font_size": FONT,
        "tickfont_size": FONT - 1,
        "zeroline": False,
        "automargin": True,
        "title_standoff": 10,
    }
    figure.update_xaxes(**axis, showgrid=False)
    figure.update_yaxes(**axis, title_text=y_title)
    return figure


def short(number: float) -> str:
    """A number in few characters: 950, 20 k, 1.5 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if number >= size:
            return f"{number / (1e3 if unit == ' k' else size):.3g}{unit}"
    return f"{number:,.0f}"
