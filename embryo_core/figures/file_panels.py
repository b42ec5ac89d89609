"""Panels of a figure's file or on a phone, arranged in rows that fit the width, without overlapping text."""

import math
import textwrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from embryo_core.figures import style

LETTER = 8.4  # pixels: mean width of a letter in the widest generic font of 14 pixels
PHONE = 342  # pixels of a figure on a phone, without its margins
PANEL = 122  # pixels: least width of a panel's plot
TITLED_AXIS, PLAIN_AXIS = 80, 48  # pixels for the numbers of a panel's vertical axis, with and without its title
LABELLED_GAP, SHARED_GAP = 70, 16  # pixels below a row, with and without the numbers and the title of each axis
LINE = 18  # pixels between lines of a heading
HEADING = 12  # pixels: font size above a panel

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
        _thin(axis, (high - low) * (width - TITLED_AXIS))
    return height


def on_phone(figure: go.Figure) -> dict[str, Any]:
    """Return the changes of layout that browser/panels.js makes on a phone, by path, such as "xaxis.domain"."""
    wide, layout = (figure.layout.to_plotly_json() for _ in range(2))
    margins = layout["margin"]["t"] + LABELLED_GAP
    inner = fit_panels(layout, PHONE, layout["height"] - margins)
    headings = [note["text"].count("<br>") for note in layout["annotations"]]
    changes: dict[str, Any] = {"height": inner + margins, "annotations": layout["annotations"]}
    changes["legend.y"] = 1 + LINE * (1 + max(headings)) / inner
    for name in [name for name in layout if name[1:].startswith("axis")]:
        changed = {key: value for key, value in layout[name].items() if value != wide[name].get(key)}
        changes |= {f"{name}.{key}": value for key, value in changed.items()}
    return changes


def _reflow(layout: Layout, panels_of: list[tuple[Axis, Axis]], width: float, height: float) -> float:
    """Arrange panels in rows that fit a width, without changing their heights; return the height of all rows."""
    before = len({tuple(x["domain"]) for x, _ in panels_of})
    beside = TITLED_AXIS if any(y.get("title", {}).get("text") for _, y in panels_of) else PLAIN_AXIS
    across = min(before, max(1, int(width // (PANEL + beside))))
    inner = width - beside  # the numbers of a row's first panel are in the margin
    wide = (width / across - beside) / inner
    low, high = panels_of[0][1]["domain"]
    tall = (high - low) * height
    shared_x, shared_y = (any(axis.get("showticklabels") is False for axis in axes) for axes in zip(*panels_of))
    headings = [_heading(layout, x, y) for x, y in panels_of]
    for heading in headings:
        heading |= {"font": {"size": HEADING}, "text": _wrapped(heading.get("text", ""), wide * inner, HEADING)}
    title = next((x["title"] for x, _ in reversed(panels_of) if x.get("title", {}).get("text")), {"text": ""})
    above = LINE * max(1 + heading["text"].count("<br>") if heading["text"] else 0 for heading in headings)
    room = above + (SHARED_GAP if shared_x else LABELLED_GAP)
    down = -(-len(panels_of) // across)
    total = down * tall + (down - 1) * room
    for i, (x, y) in enumerate(panels_of):
        row, column = divmod(i, across)
        left, top = column * width / across / inner, 1 - row * (tall + room) / total
        x["domain"], y["domain"] = [left, left + wide], [max(0.0, top - tall / total), top]
        headings[i] |= {"x": left + wide / 2, "y": top}
        if shared_x:
            x["showticklabels"] = i + across >= len(panels_of)
            x["title"] = title if row == down - 1 and column == 0 else {"text": ""}
        elif x.get("title", {}).get("text"):
            x["title"] = x["title"] | {"text": _wrapped(x["title"]["text"], wide * inner, style.FONT)}
        if shared_y:
            y["showticklabels"] = column == 0
    return total


def _heading(layout: Layout, x: Axis, y: Axis) -> Layout:
    """Return the annotation that is the title above a panel; empty for a panel without a title."""
    place = sum(x["domain"]) / 2, y["domain"][1]
    notes = (note for note in layout.get("annotations", ()) if note.get("xref") == note.get("yref") == "paper")
    matching = (note for note in notes if np.allclose((note["x"], note["y"]), place, rtol=0, atol=1e-6))
    return next(matching, {})


def _wrapped(text: str, width: float, size: float) -> str:
    """Break a text into lines that fit into a width at a font size, both in pixels; existing line breaks stay."""
    letters = max(8, int(width / (LETTER * size / style.FONT)))
    lines = [line for part in text.split("<br>") for line in textwrap.wrap(part, letters, break_on_hyphens=False)]
    return "<br>".join(lines)


def _thin(axis: Axis, width: float) -> None:
    """Leave out tick labels of an axis of this width, in pixels, that would overlap."""
    texts = list(axis.get("ticktext") or ())
    if len(texts) > 1:
        each = max(1, math.ceil(sum(LETTER * (len(text) + 2) for text in texts) / width))
        axis |= {"ticktext": texts[::each], "tickvals": list(axis["tickvals"])[::each]}
