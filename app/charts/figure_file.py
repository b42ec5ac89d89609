"""A figure laid out anew for a file: light, in a generic font, with title and small print, one or two columns wide."""

import textwrap
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.charts import style
from app.charts.step_axis import STEP_LINE

# Arial's widths, which each system has under one of these names: text takes as much room in a file as it was given.
FAMILY = "Arial, Helvetica, 'Liberation Sans', sans-serif"
INK, GRID = "#222222", "#E3E3E3"
LETTER = 8.4  # pixels: the widest mean letter of a generic font of 14 pixels
KEY = 46  # pixels of a legend's line and marker, and the gap to the next entry
SMALL = 10.5  # pixels of the small print
LINE = 14  # pixels from one of its lines to the next
BESIDE = 120  # pixels that the numbers or names of the vertical axis may take
TITLE = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"l": 12, "t": 10}}
PRINT = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 0, "yanchor": "top", "yshift": -52}


@dataclass(frozen=True)
class Size:
    """How wide a file is laid out, in pixels, and how wide it is printed, in inches; fonts are printed at 7 to 8 pt."""

    pixels: int
    inches: float


SIZES = {"one": Size(400, 3.03), "two": Size(800, 6.3)}  # columns of a paper in the ACL's style


def layout(figure: go.Figure, columns: str, title: str, small_print: str) -> dict[str, Any]:
    """The layout of a figure's file, as Plotly takes it; `columns` is a name of SIZES."""
    width = SIZES[columns].pixels
    heading = textwrap.wrap(title, int(width / LETTER), break_on_hyphens=False)
    lines = textwrap.wrap(small_print, int((width - BESIDE) / (LETTER * SMALL / 14)), break_on_hyphens=False)
    file = go.Figure(layout=figure.layout)
    file.update_layout(
        template=go.layout.Template(),
        width=width,
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": FAMILY, "color": INK},
        title={"text": "<br>".join(map(style.plain, heading)), "font": {"size": 15}, **TITLE},
        shapes=[shape for shape in figure.layout.shapes if shape.name != STEP_LINE],
    )
    axis = {"showline": True, "linecolor": INK, "ticks": "outside", "tickcolor": INK, "gridcolor": GRID}
    file.update_xaxes(**axis)
    file.update_yaxes(**axis)
    top, legend = 16 + 19 * len(heading), _legend(figure, width)
    room = legend.pop("room")
    below = 64 + LINE * len(lines)
    plot = (figure.layout.height or 400) - 60
    file.update_layout(
        height=top + room + plot + below,
        margin={"l": 12, "r": 16, "t": top + room, "b": below},
        legend=legend | {"yref": "container", "y": 1 - top / (top + room + plot + below)},
    )
    text = "<br>".join(map(style.plain, lines))
    file.add_annotation(text=text, font_size=SMALL, showarrow=False, align="left", **PRINT)
    return file.to_plotly_json()["layout"]


def _legend(figure: go.Figure, width: int) -> dict[str, Any]:
    """A legend above the plot in columns as wide as its longest name, and the `room` in pixels that it takes."""
    names = [trace.name or "" for trace in figure.data if trace.showlegend is not False and trace.name]
    if not names or figure.layout.showlegend is False:
        return {"room": 0}
    longest = KEY + LETTER * max(map(len, names))
    across = max(1, int(width / longest))
    rows = -(-len(names) // across)
    place = {"orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "yanchor": "top"}
    return place | {"entrywidthmode": "pixels", "entrywidth": longest - KEY, "room": 8 + 21 * rows}
