"""Words in the cells of a figure's file: fewer columns are drawn where words would be too small to read."""

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

import numpy as np
import plotly.graph_objects as go

TAG_PATTERN = re.compile("<[^>]*>")  # a "<" in a word is escaped
WORDS = "words"  # `meta` of a heat map that is useless without the words in its cells
# As in browser/figure_files.js: smallest legible font (pixels), width of a letter by its height, fraction of a figure's
# width that is its plot, padding of a cell (pixels).
MIN_LEGIBLE, LETTER_WIDTH, PLOT_FRACTION, CELL_PADDING = 6.5, 0.58, 0.64, 4


def legible_columns(figure: go.Figure, width: int) -> list[int] | None:
    """Return the columns of a heat map of words that fit into a file `width` pixels wide; None if all fit.

    They are spread evenly over the columns with a step label, and include the last one. Other figures return None.
    """
    maps = [trace for trace in figure.data if trace.type == "heatmap" and trace.meta == WORDS]
    if not maps:
        return None
    longest = max((len(unescape(TAG_PATTERN.sub("", word))) for row in maps[0].text for word in row), default=1)
    max_columns = max(1, int(PLOT_FRACTION * width / (LETTER_WIDTH * MIN_LEGIBLE * longest + CELL_PADDING)))
    if max_columns >= len(maps[0].x):
        return None
    labelled = [int(x) for x in maps[0].x if x in set(figure.layout.xaxis.tickvals)]
    indices = np.linspace(len(labelled) - 1, 0, min(max_columns, len(labelled))).round().astype(int)
    return [labelled[i] for i in sorted(set(indices))]


def keep_columns(trace: dict[str, Any], kept_columns: Sequence[int]) -> None:
    """Reduce a heat map of words to the columns `kept_columns`."""
    indices = [[*trace["x"]].index(column) for column in kept_columns]
    z, text = (np.asarray(trace[name])[:, indices] for name in ("z", "text"))
    trace |= {"x": [*range(len(kept_columns))], "z": z, "text": text}


def draw_columns(layout: dict[str, Any], kept_columns: Sequence[int]) -> None:
    """Reduce the layout of a heat map of words to `kept_columns`, counted from 0; annotations are left out."""
    axis, new_columns = layout["xaxis"], {column: i for i, column in enumerate(kept_columns)}
    names = dict(zip(axis["tickvals"], axis["ticktext"]))
    axis |= {
        "tickvals": [*new_columns.values()],
        "ticktext": [names[column] for column in kept_columns],
        "range": [-0.55, len(kept_columns) - 0.45],
    }
    layout.pop("annotations", None)
    outlines = [(shape, round(shape["x0"] + 0.5)) for shape in layout.get("shapes", ())]
    layout["shapes"] = [
        shape | {"x0": new_columns[old_column] - 0.5, "x1": new_columns[old_column] + 0.5}
        for shape, old_column in outlines
        if old_column in new_columns
    ]


def describe_left_out(figure: go.Figure, kept_columns: Sequence[int]) -> str:
    """Return the small print on how many of the columns are drawn."""
    (heat_map,) = (trace for trace in figure.data if trace.meta == WORDS)
    return f" {len(kept_columns)} of the {len(heat_map.x)} steps on the page are drawn."
