"""Words in the cells of a figure's file: fewer columns are drawn where words would be too small to read."""

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

import numpy as np
import plotly.graph_objects as go

TAGS = re.compile("<[^>]*>")  # a "<" in a word is escaped
WORDS = "words"  # `meta` of a heat map that is useless without the words in its cells
# As in browser/figure_files.js: smallest legible font (pixels), width of a letter by its height, the plot's share of a
# figure's width, padding of a cell (pixels).
LEGIBLE, LETTER, PLOT, CELL_PADDING = 6.5, 0.58, 0.64, 4


def legible_columns(figure: go.Figure, width: int) -> list[int] | None:
    """Return the columns of a heat map of words that fit into a file `width` pixels wide; None if all fit.

    They are spread evenly over the columns with a step label, and include the last one. Other figures return None.
    """
    maps = [trace for trace in figure.data if trace.type == "heatmap" and trace.meta == WORDS]
    if not maps:
        return None
    longest = max((len(unescape(TAGS.sub("", word))) for row in maps[0].text for word in row), default=1)
    room = max(1, int(PLOT * width / (LETTER * LEGIBLE * longest + CELL_PADDING)))
    if room >= len(maps[0].x):
        return None
    named = [int(x) for x in maps[0].x if x in set(figure.layout.xaxis.tickvals)]
    places = np.linspace(len(named) - 1, 0, min(room, len(named))).round().astype(int)
    return [named[place] for place in sorted(set(places))]


def keep_columns(trace: dict[str, Any], kept: Sequence[int]) -> None:
    """Reduce a heat map of words to the columns `kept`."""
    places = [[*trace["x"]].index(column) for column in kept]
    z, text = (np.asarray(trace[name])[:, places] for name in ("z", "text"))
    trace |= {"x": [*range(len(kept))], "z": z, "text": text}


def draw_columns(layout: dict[str, Any], kept: Sequence[int]) -> None:
    """Reduce the layout of a heat map of words to the columns `kept`, counted from 0; annotations are left out."""
    axis, new = layout["xaxis"], {old: i for i, old in enumerate(kept)}
    names = dict(zip(axis["tickvals"], axis["ticktext"]))
    axis |= {"tickvals": [*new.values()], "ticktext": [names[old] for old in kept], "range": [-0.55, len(kept) - 0.45]}
    layout.pop("annotations", None)
    outlines = [(shape, round(shape["x0"] + 0.5)) for shape in layout.get("shapes", ())]
    layout["shapes"] = [
        shape | {"x0": new[column] - 0.5, "x1": new[column] + 0.5} for shape, column in outlines if column in new
    ]


def describe_left_out(figure: go.Figure, kept: Sequence[int]) -> str:
    """Return the small print on how many of the columns are drawn."""
    (words,) = (trace for trace in figure.data if trace.meta == WORDS)
    return f" {len(kept)} of the {len(words.x)} steps on the page are drawn."
