"""One style for all figures: colours for colour-blind readers and dark pages, symbols, bands, fonts, margins."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.groups import ALL, SINGLE_TAGS, UNIVERSAL_TAGS

# Okabe and Ito's palette in tones with a contrast of 3 : 1 on a light and on a dark page; its black and yellow are
# replaced by olive, purple and grey.
BLUE, ORANGE, GREEN, SKY = "#1C6DB0", "#CB8400", "#009E73", "#2E9BD6"
VERMILION, PINK, OLIVE, PURPLE, GREY = "#B83E10", "#CC79A7", "#748F2A", "#A050C0", "#888888"
DASHED = {"color": GREY, "width": 1.5, "dash": "dash"}  # line of baselines that all curves share
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, PINK, OLIVE, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "hexagon")

RUN_SYMBOLS = ("circle", "circle-open", "square", "square-open", "diamond", "diamond-open", "x", "cross")
RUN_OPACITIES = (1.0, 0.6, 0.4)  # opacities of runs, since dashes mark baselines
LAYER_COLOURS = (0x2F, 0x62, 0xC0), (0xB8, 0x5A, 0xB0), (0xE8, 0x86, 0x1E)  # RGB of the lowest, middle, highest layer

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
VERB_FORMS = dict(zip(("VB", "VBD", "VBG", "VBN", "VBZ", "VBP"), (VERMILION, ORANGE, GREEN, BLUE, PURPLE, SKY)))
PAPER_TAGS = dict(zip(("CC", "DT", "IN", "PRP", "VB", "RB", "JJ", "NN", "NNP"), PARTS_OF_SPEECH.values()))
_OTHER_TAG_NAMES = [tag for tag in SINGLE_TAGS if tag not in PAPER_TAGS | VERB_FORMS]
OTHER_TAGS = dict(zip(_OTHER_TAG_NAMES, [*PARTS_OF_SPEECH.values()] * 3))
UNIVERSAL = dict(zip(UNIVERSAL_TAGS, PALETTE * 2))
FREQUENCY_BANDS = dict(zip(("rank 50-99", "rank 300-349", "rank 1550-1599"), (BLUE, GREEN, ORANGE)))
GROUPS = PARTS_OF_SPEECH | PAPER_TAGS | VERB_FORMS | OTHER_TAGS | UNIVERSAL | FREQUENCY_BANDS | {ALL: GREY}


def _assign_symbols() -> dict[str, str]:
    """Return a symbol for each category; two tags of one colour have different symbols."""
    rotated = {shift: SYMBOLS[shift:] + SYMBOLS[:shift] for shift in (2, 3, 4, 5)}
    sets = (
        (PARTS_OF_SPEECH, SYMBOLS),
        (PAPER_TAGS, SYMBOLS),
        (FREQUENCY_BANDS, SYMBOLS),
        (OTHER_TAGS, rotated[2] + rotated[3] + rotated[5]),
        (UNIVERSAL, SYMBOLS + rotated[2]),
        (VERB_FORMS, rotated[4]),
    )
    return {group: symbol for groups, symbols in sets for group, symbol in zip(groups, symbols)}


SYMBOL_OF = _assign_symbols()

FONT_SIZE = 14  # pixels
AXIS_MARGINS = {"l": 60, "b": 46}  # pixels; if an axis needs more, Plotly draws the whole figure a second time
INK = "#000037"  # colour of text, almost black; on a page Streamlit replaces it by its own text colour


def escape_text(text: str) -> str:
    """Escape a text for Plotly, which reads a few HTML tags and %{variables} in names and labels."""
    return escape(text, quote=False).replace("%{", "&#37;{")


def colour(group: str) -> str:
    """Return the fixed colour of a category."""
    return GROUPS.get(group, GREY)


def default_styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return a colour and a symbol for each name, in the order of the palette."""
    return {name: (PALETTE[i % len(PALETTE)], SYMBOLS[i % len(SYMBOLS)]) for i, name in enumerate(names)}


def layer_colours(layers: Sequence[int]) -> dict[int, str]:
    """Return a colour for each of the sorted layers, on a sequential scale that is legible on light and dark pages."""
    fractions = np.linspace(0, 1, max(len(layers), 2))
    channels = [np.interp(fractions, (0, 0.5, 1), values) for values in zip(*LAYER_COLOURS)]
    return {layer: "#" + "".join(f"{round(channel[i]):02x}" for channel in channels) for i, layer in enumerate(layers)}


def layer_styles(layers: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return a colour and a symbol for each layer, the highest first."""
    colours = layer_colours(sorted(layers))
    return {layer: (colours[layer], "circle" if layer else "circle-open") for layer in sorted(layers, reverse=True)}


def run_look(i: int) -> tuple[str, float]:
    """Return the symbol and the opacity of the i-th of several runs in one figure."""
    return RUN_SYMBOLS[i % len(RUN_SYMBOLS)], RUN_OPACITIES[i % len(RUN_OPACITIES)]


def with_opacity(colour: str, opacity: float) -> str:
    """Return a #rrggbb colour as rgba with this opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def add_band(
    figure: go.Figure,
    x: list[float],
    low: pd.Series,
    high: pd.Series,
    colour: str,
    curve: str,
    label: str = "95 % band",
) -> None:
    """Add a band behind the curve named `curve`; the legend hides and shows both together."""
    figure.add_scatter(
        x=np.array([*x, *x[::-1]]),  # as arrays: Plotly validates a list number by number
        y=np.concatenate([high, low[::-1]]),
        name=f"{curve}, {label}",
        legendgroup=curve,
        showlegend=False,
        mode="lines",
        line_width=0,
        fill="toself",
        fillcolor=with_opacity(colour, 0.13),
        hoverinfo="skip",
    )


def finish(figure: go.Figure, y_title: str, height: int = 380, legend: bool = True) -> go.Figure:
    """Set size, fonts, margins and grid; the legend is above the plot, where it also fits on a phone."""
    legend_position = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
    layout = {
        "height": height,
        "font": {"size": FONT_SIZE, "color": INK},
        "margin": {**AXIS_MARGINS, "r": 8, "t": 36 if legend else 12},
        "hovermode": "closest",
        "dragmode": "zoom",  # a double click zooms out again
        "hoverlabel": {"font": {"size": FONT_SIZE, "color": INK}, "align": "left"},
        "showlegend": legend,
        "legend": {**legend_position, "font": {"size": FONT_SIZE}, "title": {"text": ""}, "tracegroupgap": 0},
    }
    axis = {
        "title": {"font": {"size": FONT_SIZE, "color": INK}, "standoff": 10},
        "tickfont": {"size": FONT_SIZE - 1, "color": INK},
        "zeroline": False,
        "automargin": True,
    }
    figure.update_layout(layout, overwrite=True)  # Plotly's own merging takes ten times as long
    set_axes(figure, "x", **axis, showgrid=False)
    return set_axes(figure, "y", **_merge_settings(axis, {"title": {"text": y_title}}))


def colour_bar(title: str, side: str = "right", **more: Any) -> dict[str, Any]:
    """Return a narrow colour bar with a title in the size of axis titles; `more` are settings of Plotly."""
    return {
        "title": {"text": title, "side": side, "font": {"size": FONT_SIZE}},
        "thickness": 12,
        "outlinewidth": 0,
        **more,
    }


def few_ticks(first: int, last: int) -> list[int]:
    """Return the ticks of a colour bar from the first to the last: both ends and the quarters between."""
    return sorted({first + (last - first) * quarter // 4 for quarter in range(5)})


def colour_scale(title: str, colours: Iterable[str], ticks: Mapping[float, str]) -> str:
    """Return a colour scale as HTML, the lowest colour first, with `ticks` at their fractions of its width."""
    bar = f'<div style="background: linear-gradient(to right, {", ".join(colours)})"></div>'
    labels = "".join(f'<span style="left: {100 * fraction:.0f}%">{tick}</span>' for fraction, tick in ticks.items())
    return f'<div class="colour-scale">{title}{bar}{labels}</div>'


def set_axes(figure: go.Figure, letter: str, **settings: Any) -> go.Figure:
    """Merge nested settings into those of all "x" or "y" axes, several times as fast as Plotly's updates."""
    axes = figure.select_xaxes() if letter == "x" else figure.select_yaxes()
    merged = {axis.plotly_name: _merge_settings(axis.to_plotly_json(), settings) for axis in axes}
    return figure.update_layout(merged, overwrite=True)


def _merge_settings(settings: dict[str, Any], updates: dict[str, Any]) -> dict[str, Any]:
    """Return `settings` overwritten by `updates`, level by level."""
    nested = {
        name: _merge_settings(settings.get(name, {}), value)
        for name, value in updates.items()
        if isinstance(value, dict)
    }
    return settings | updates | nested


def abbreviate(number: float) -> str:
    """Return a number in few characters: 950, 20 k, 1.5 M."""
    rounded = float(f"{number:.3g}")  # before a unit is chosen: 999,999 is 1 M
    for size, unit in ((1e18, " E"), (1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= 1e4 and rounded >= size:
            return f"{rounded / size:.3g}{unit}"
    return f"{number:,.0f}"


def abbreviate_all(numbers: Iterable[float]) -> list[str]:
    """Return each number in few characters, or in full if two numbers would look equal."""
    numbers = list(numbers)
    counts = Counter(map(abbreviate, set(numbers)))
    return [name if counts[name := abbreviate(number)] == 1 else f"{number:,.0f}" for number in numbers]
