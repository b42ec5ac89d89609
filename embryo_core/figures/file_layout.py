"""A figure laid out anew for a file: light, in a generic font, with title and small print, one or two columns wide."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from embryo_core.figures import style
from embryo_core.figures.axis import STEP_LINE, STEP_MARK
from embryo_core.figures.file_panels import LETTER, fit
from embryo_core.figures.file_words import counted, draw_columns, legible

# Arial's widths, which each system has under one of these names: text takes as much room in a file as it was given.
FAMILY = "Arial, Helvetica, 'Liberation Sans', sans-serif"
INK, GRID = "#222222", "#E3E3E3"
KEY = 46  # pixels of a legend's line and marker, and the gap to the next entry
SMALL = 10.5  # pixels of the small print
LINE = 14  # pixels from one of its lines to the next
MARKS = (STEP_LINE, STEP_MARK)  # of the step that is chosen on the page
AXIS = re.compile(r"[xy]axis\d*")
BESIDE = 120  # pixels that the numbers or names of the vertical axis may take
NAMED = 0.3  # of a file's width that names of rows may take
BASELINE = 21  # pixels from the upper edge to the foot of the title's first line
# Plotly sets the lines of a title that hangs from its upper edge too close.
TITLE = {"x": 0, "xanchor": "left", "yref": "container", "yanchor": "bottom", "pad": {"l": 12}}
PRINT = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 0, "yanchor": "top", "yshift": -52}


@dataclass(frozen=True)
class Size:
    """How wide a file is laid out, in pixels, and how wide it is printed, in inches; fonts are printed at 7 to 8 pt."""

    pixels: int
    inches: float


SIZES = {"one": Size(400, 3.03), "two": Size(800, 6.3)}  # columns of a paper in the ACL's style


def layout(figure: go.Figure, columns: str, title: str, small_print: str) -> dict[str, Any]:
    """Return the layout of a figure's file for Plotly; `columns` is a name of SIZES."""
    width = SIZES[columns].pixels
    kept = legible(figure, width)
    if kept:
        small_print += counted(figure, kept)
    heading = textwrap.wrap(title, int(width / LETTER), break_on_hyphens=False)
    file = figure.layout.to_plotly_json()  # a copy, changed as a dictionary: Plotly's own ways take many times as long
    beside, rows = _name_rows(figure, file, width)
    lines = textwrap.wrap(small_print, int((width - beside) / (LETTER * SMALL / 14)), break_on_hyphens=False)
    file["shapes"] = [shape for shape in file.get("shapes", ()) if shape.get("name") not in MARKS]
    if kept:
        draw_columns(file, kept)
    for name in [name for name in file if AXIS.fullmatch(name)]:
        file[name] |= {"showline": True, "linecolor": INK, "ticks": "outside", "tickcolor": INK, "gridcolor": GRID}
    text: dict[str, Any] = {"text": _joined(lines), "font": {"size": SMALL}, "showarrow": False, "align": "left"}
    text |= PRINT
    legend, room = _legend(figure, file, width - 28)
    inner = fit(file, width - 28, max(rows, _tall(figure, width)))
    more = LINE * _break_title(file, width - 28 - beside) if rows else 0
    text["yshift"] -= more
    top, below = 16 + 19 * len(heading) + room, 64 + more + LINE * len(lines)
    height = top + inner + below
    return file | {
        "width": width,
        "height": height,
        "margin": {"l": 12, "r": 16, "t": top, "b": below},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": FAMILY, "size": style.FONT, "color": INK},
        "title": {"text": _joined(heading), "font": {"size": 15}, "y": 1 - BASELINE / height, **TITLE},
        "legend": file.get("legend", {}) | legend | {"y": 1 - (top - room) / height},
        "annotations": [*file.get("annotations", ()), text],
    }


def _name_rows(figure: go.Figure, file: dict[str, Any], width: int) -> tuple[float, float]:
    """Break long names of rows into lines; return the pixels that they take in width and in height (0: short)."""
    room = max(BESIDE, NAMED * width)
    letter = LETTER * (style.FONT - 1) / 14
    letters, rows, most = int((room - 8) / letter), 0, 0
    for name in [name for name in file if name.startswith("yaxis")]:
        axis = file[name]
        places = axis.get("tickvals") if axis.get("ticktext") else _categories(figure, name)
        names = [str(text) for text in axis.get("ticktext") or places or ()]
        if max(map(len, names), default=0) <= letters or any("<" in text for text in names):
            continue
        broken = [textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False) for text in names]
        axis |= {"tickmode": "array", "tickvals": [*places], "ticktext": ["<br>".join(lines) for lines in broken]}
        rows, most = rows + len(names) + 1, max(most, *map(len, broken))
    return (room, rows * (LINE * most + 6)) if rows else (BESIDE, 0)


def _categories(figure: go.Figure, axis: str) -> list[str]:
    """Return the names along a vertical axis, in the order of the traces; empty for an axis of numbers."""
    short = axis.replace("axis", "")
    own = [trace.y for trace in figure.data if (trace.yaxis or "y") == short and trace.y is not None]
    return list(dict.fromkeys(name for names in own for name in names if isinstance(name, str)))


def _break_title(file: dict[str, Any], width: float) -> int:
    """Break the titles of horizontal axes into lines of this width, in pixels; how many lines more the lowest has."""
    more = 0
    for axis in (file[name] for name in file if name.startswith("xaxis") and file[name].get("title", {}).get("text")):
        lines = textwrap.wrap(axis["title"]["text"], max(8, int(width / LETTER)), break_on_hyphens=False)
        axis["title"] |= {"text": "<br>".join(lines)}
        more = len(lines) - 1
    return more


def _tall(figure: go.Figure, width: int) -> float:
    """Pixels that the plot takes in height: those of the page, and of square maps in a narrower file fewer."""
    narrower = min(1, width / figure.layout.width) if figure.layout.yaxis.scaleanchor else 1
    return narrower * ((figure.layout.height or 400) - 60)


def _joined(lines: list[str]) -> str:
    return "<br>".join(map(style.plain, lines))


def _legend(figure: go.Figure, file: dict[str, Any], width: int) -> tuple[dict[str, Any], int]:
    """Return a legend above the plot in columns as wide as its longest name, and its height in pixels.

    Names of marks take two lines if that makes room for more columns.
    """
    marks = [shape for shape in file["shapes"] if shape.get("showlegend")]
    curves = [len(trace.name) for trace in figure.data if trace.showlegend is not False and trace.name]
    if not curves + marks or figure.layout.showlegend is False:
        return {}, 0
    whole = _entry([*curves, *(len(mark["name"]) for mark in marks)])
    broken = _entry([*curves, *(len(line) for mark in marks for line in mark["name"].split(": ", 1))])
    across, second = max(1, int(width / whole)), 0
    if int(width / broken) > across:
        rest = [shape for shape in file["shapes"] if shape not in marks]
        file["shapes"] = rest + [mark | {"name": mark["name"].replace(": ", ":<br>", 1)} for mark in marks]
        whole, across = broken, int(width / broken)
        second = 19 * (1 + (len(marks) - 1) // across)
    at = {"orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "yref": "container", "yanchor": "top"}
    entries = {"entrywidthmode": "pixels", "entrywidth": whole - KEY}
    return at | entries, 8 + second + 21 * -(-(len(curves) + len(marks)) // across)


def _entry(lengths: Sequence[int]) -> float:
    """Pixels that the longest entry of a legend takes, of names of these lengths."""
    return KEY + LETTER * max(lengths)
