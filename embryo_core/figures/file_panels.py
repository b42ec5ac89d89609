"""Panels of a figure's file or on a phone, arranged in rows that fit the width, without overlapping text."""

import math
import textwrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from embryo_core.figures import style

LETTER = 8.4  # pixels: mean width of a letter in the widest generic font of 14 pixels
PHONE_WIDTH = 342  # pixels of a figure on a phone, without its margins
MIN_PANEL_WIDTH = 122  # pixels: least width of a panel's plot
TITLED_AXIS, PLAIN_AXIS = 80, 48  # pixels for the numbers of a panel's vertical axis, with and without its title
LABELLED_GAP, SHARED_GAP = 70, 16  # pixels below a row, with and without the numbers and the title of each axis
HEADING_LINE = 18  # pixels between lines of a heading
HEADING_SIZE = 12  # pixels: font size above a panel

Axis = dict[str, Any]
Layout = dict[str, Any]


def panels(layout: Layout) -> list[tuple[Axis, Axis]]:
    """Return the horizontal and the vertical axis of each panel, row by row."""
    numbers = ("", *map(str, range(2, len(layout))))
    axes = ((layout.get(f"xaxis{i}", {}), layout.get(f"yaxis{i}", {})) for i in numbers)
    return [(x, y) for x, y in axes if "domain" in x and "domain" in y]


def fit_panels(layout: Layout, width: float, height: float) -> float:
    """Fit the panels of a layout into a width; return their new height, given the old one (all in pixels)."""
    axes = panels(layout)
    if len(axes) > 1:
        height = _reflow(layout, axes, width, height)
    for axis in [axis for name, axis in layout.items() if name.startswith("xaxis")]:
        low, high = axis.get("domain", (0, 1))
        _space_out_ticks(axis, (high - low) * (width - TITLED_AXIS))
    return height


def on_phone(figure: go.Figure) -> dict[str, Any]:
    """Return the changes of layout that browser/panels.js makes on a phone, by path, such as "xaxis.domain"."""
    wide_layout, layout = (figure.layout.to_plotly_json() for _ in range(2))
    margins = layout["margin"]["t"] + LABELLED_GAP
    plot_height = fit_panels(layout, PHONE_WIDTH, layout["height"] - margins)
    headings = [note["text"].count("<br>") for note in layout["annotations"]]
    changes: dict[str, Any] = {"height": plot_height + margins, "annotations": layout["annotations"]}
    changes["legend.y"] = 1 + HEADING_LINE * (1 + max(headings)) / plot_height
    for name in [name for name in layout if name[1:].startswith("axis")]:
        changed = {key: value for key, value in layout[name].items() if value != wide_layout[name].get(key)}
        changes |= {f"{name}.{key}": value for key, value in changed.items()}
    return changes


def _reflow(layout: Layout, panels_of: list[tuple[Axis, Axis]], width: float, height: float) -> float:
    """Arrange panels in rows that fit a width, without changing their heights; return the height of all rows."""
    old_column_count = len({tuple(x["domain"]) for x, _ in panels_of})
    axis_width = TITLED_AXIS if any(y.get("title", {}).get("text") for _, y in panels_of) else PLAIN_AXIS
    column_count = min(old_column_count, max(1, int(width // (MIN_PANEL_WIDTH + axis_width))))
    plot_width = width - axis_width  # the numbers of a row's first panel are in the margin
    panel_fraction = (width / column_count - axis_width) / plot_width
    low, high = panels_of[0][1]["domain"]
    panel_height = (high - low) * height
    shares_x, shares_y = (any(axis.get("showticklabels") is False for axis in axes) for axes in zip(*panels_of))
    headings = [_find_heading(layout, x, y) for x, y in panels_of]
    for heading in headings:
        heading |= {
            "font": {"size": HEADING_SIZE},
            "text": _wrap(heading.get("text", ""), panel_fraction * plot_width, HEADING_SIZE),
        }
    title = next((x["title"] for x, _ in reversed(panels_of) if x.get("title", {}).get("text")), {"text": ""})
    heading_height = HEADING_LINE * max(
        1 + heading["text"].count("<br>") if heading["text"] else 0 for heading in headings
    )
    row_gap = heading_height + (SHARED_GAP if shares_x else LABELLED_GAP)
    row_count = -(-len(panels_of) // column_count)
    total_height = row_count * panel_height + (row_count - 1) * row_gap
    for i, (x, y) in enumerate(panels_of):
        row, column = divmod(i, column_count)
        left, top = column * width / column_count / plot_width, 1 - row * (panel_height + row_gap) / total_height
        x["domain"], y["domain"] = [left, left + panel_fraction], [max(0.0, top - panel_height / total_height), top]
        headings[i] |= {"x": left + panel_fraction / 2, "y": top}
        if shares_x:
            x["showticklabels"] = i + column_count >= len(panels_of)
            x["title"] = title if row == row_count - 1 and column == 0 else {"text": ""}
        elif x.get("title", {}).get("text"):
            x["title"] = x["title"] | {"text": _wrap(x["title"]["text"], panel_fraction * plot_width, style.FONT_SIZE)}
        if shares_y:
            y["showticklabels"] = column == 0
    return total_height


def _find_heading(layout: Layout, x: Axis, y: Axis) -> Layout:
    """Return the annotation that is the title above a panel; empty for a panel without a title."""
    position = sum(x["domain"]) / 2, y["domain"][1]
    annotations = (note for note in layout.get("annotations", ()) if note.get("xref") == note.get("yref") == "paper")
    matching = (note for note in annotations if np.allclose((note["x"], note["y"]), position, rtol=0, atol=1e-6))
    return next(matching, {})


def _wrap(text: str, width: float, size: float) -> str:
    """Break a text into lines that fit into a width at a font size, both in pixels; existing line breaks stay."""
    max_letters = max(8, int(width / (LETTER * size / style.FONT_SIZE)))
    lines = [line for part in text.split("<br>") for line in textwrap.wrap(part, max_letters, break_on_hyphens=False)]
    return "<br>".join(lines)


def _space_out_ticks(axis: Axis, width: float) -> None:
    """Leave out tick labels of an axis of this width, in pixels, that would overlap."""
    texts = list(axis.get("ticktext") or ())
    if len(texts) > 1:
        interval = max(1, math.ceil(sum(LETTER * (len(text) + 2) for text in texts) / width))
        axis |= {"ticktext": texts[::interval], "tickvals": list(axis["tickvals"])[::interval]}
