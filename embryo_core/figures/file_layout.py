"""The layout of a figure's file: light, in a generic font, with title and small print, one or two columns wide."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import plotly.graph_objects as go

from embryo_core.figures import style
from embryo_core.figures.axis import STEP_LINE, STEP_MARK
from embryo_core.figures.file_panels import LETTER, fit_panels
from embryo_core.figures.file_words import WORDS, describe_left_out, draw_columns, keep_columns, legible_columns

# Every system has one of these fonts with Arial's widths, so that text has the width that was reserved for it.
FONT_FAMILY = "Arial, Helvetica, 'Liberation Sans', sans-serif"
INK, GRID = "#222222", "#E3E3E3"
SIDE_MARGINS = 28  # pixels left and right of the plot and its legend, in total
LEGEND_ROW = 21  # pixels of a row of a legend
AXIS_NUMBERS = 56  # pixels for the numbers and the title of the vertical axis, which a legend leaves free
LEGEND_KEY = 46  # pixels of a legend's line and marker, with the gap to the next entry
PRINT_SIZE = 10.5  # pixels of the small print
PRINT_LINE = 14  # pixels between lines of the small print
STEP_MARKS = (STEP_LINE, STEP_MARK)  # marks of the step that is chosen on the page, left out of files
AXIS_PATTERN = re.compile(r"[xy]axis\d*")
AXIS_WIDTH = 120  # pixels: largest width of the numbers or names of the vertical axis
MAX_NAME_FRACTION = 0.3  # fraction of a file's width that names of rows may take
TITLE_BASELINE = 21  # pixels from the upper edge to the baseline of the title's first line
# Anchored at the bottom: Plotly sets the lines of a title that is anchored at its top too close together.
TITLE_STYLE = {
    "font": {"size": 15},
    "x": 0,
    "xanchor": "left",
    "yref": "container",
    "yanchor": "bottom",
    "pad": {"l": 12},
}
SMALL_PRINT: dict[str, Any] = {"font": {"size": PRINT_SIZE}, "showarrow": False, "align": "left", "yshift": -52}
SMALL_PRINT |= {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 0, "yanchor": "top"}


@dataclass(frozen=True)
class FileWidth:
    """The width of a saved figure: of its layout in pixels, and printed in inches (fonts of 7 to 8 pt)."""

    pixels: int
    inches: float


class FileLayout(NamedTuple):
    """The layout of a figure's file, the columns that it keeps, and the names in its second legend."""

    layout: dict[str, Any]
    kept: list[int] | None  # the columns of a heat map of words that is too wide; None: all
    long: list[str]  # the names in the second legend

    def draw(self, figure: go.Figure) -> go.Figure:
        """Return the figure as it is in the file."""
        traces = []
        for trace in figure.data:
            settings = trace.to_plotly_json()
            if self.kept and trace.meta == WORDS:
                keep_columns(settings, self.kept)
            traces.append(settings | {"legend": "legend2"} if trace.name in self.long else settings)
        return go.Figure(traces, self.layout)


SIZES = {"one": FileWidth(400, 3.03), "two": FileWidth(800, 6.3)}  # widths of one and two columns in the ACL's style


def map_sizes(small_print: str) -> dict[str, Any]:
    """Return inches, pixels and small print by size, for files of attention maps, which components draw themselves."""
    return {name: {"inches": size.inches, "pixels": size.pixels, "print": small_print} for name, size in SIZES.items()}


def lay_out_file(figure: go.Figure, columns: str, title: str, small_print: str) -> FileLayout:
    """Lay out a figure for its file; `columns` is a name of SIZES."""
    width = SIZES[columns].pixels
    kept_columns = legible_columns(figure, width)
    if kept_columns:
        small_print += describe_left_out(figure, kept_columns)
    title_lines = textwrap.wrap(title, int(width / LETTER), break_on_hyphens=False)
    file = figure.layout.to_plotly_json()  # a copy as a dictionary: Plotly's updates take many times as long
    file.pop("meta", None)  # only for the page
    names_width, rows_height = _name_rows(figure, file, width)
    lines = textwrap.wrap(small_print, int((width - names_width) / (LETTER * PRINT_SIZE / 14)), break_on_hyphens=False)
    file["shapes"] = [shape for shape in file.get("shapes", ()) if shape.get("name") not in STEP_MARKS]
    if kept_columns:
        draw_columns(file, kept_columns)
    for name in [name for name in file if AXIS_PATTERN.fullmatch(name)]:
        file[name] |= {"showline": True, "linecolor": INK, "ticks": "outside", "tickcolor": INK, "gridcolor": GRID}
    text = SMALL_PRINT | {"text": _join_lines(lines)}
    axes = [name for name in file if name.startswith("yaxis")]
    has_names = any(file[name].get("ticktext") or _categories(figure, name) for name in axes)
    legend_width = width - SIDE_MARGINS - (names_width if has_names else AXIS_NUMBERS)
    names = _legend_names(figure, file)
    long_names = _long_names(names, legend_width)
    legends, legend_height = _lay_out_legends(file, names, long_names, legend_width)
    plot_height = fit_panels(file, width - SIDE_MARGINS, max(rows_height, _plot_height(figure, width)))
    added_height = PRINT_LINE * _break_title(file, width - SIDE_MARGINS - names_width) if rows_height else 0
    text["yshift"] -= added_height
    top, bottom = 16 + 19 * len(title_lines) + legend_height, 64 + added_height + PRINT_LINE * len(lines)
    height = top + plot_height + bottom
    file |= {
        "width": width,
        "height": height,
        "margin": {"l": 12, "r": 16, "t": top, "b": bottom},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": FONT_FAMILY, "size": style.FONT_SIZE, "color": INK},
        "title": {"text": _join_lines(title_lines), "y": 1 - TITLE_BASELINE / height, **TITLE_STYLE},
        **{name: legend | {"y": 1 - (top - legend_height + legend["y"]) / height} for name, legend in legends.items()},
        "annotations": [*file.get("annotations", ()), text],
    }
    return FileLayout(file, kept_columns, long_names)


def _name_rows(figure: go.Figure, file: dict[str, Any], width: int) -> tuple[float, float]:
    """Break long names of rows into lines; return the width of the names and the height of the rows, in pixels.

    The height is 0 if no name was broken.
    """
    names_width = max(AXIS_WIDTH, MAX_NAME_FRACTION * width)
    letter_width = LETTER * (style.FONT_SIZE - 1) / 14
    max_letters, row_count, max_lines = int((names_width - 8) / letter_width), 0, 0
    for name in [name for name in file if name.startswith("yaxis")]:
        axis = file[name]
        positions = axis.get("tickvals") if axis.get("ticktext") else _categories(figure, name)
        names = [str(text) for text in axis.get("ticktext") or positions or ()]
        if max(map(len, names), default=0) <= max_letters or any("<" in text for text in names):
            continue
        wrapped_names = [
            textwrap.wrap(text, max_letters, break_long_words=False, break_on_hyphens=False) for text in names
        ]
        axis |= {
            "tickmode": "array",
            "tickvals": [*positions],
            "ticktext": ["<br>".join(lines) for lines in wrapped_names],
        }
        row_count, max_lines = row_count + len(names) + 1, max(max_lines, *map(len, wrapped_names))
    return (names_width, row_count * (PRINT_LINE * max_lines + 6)) if row_count else (AXIS_WIDTH, 0)


def _categories(figure: go.Figure, axis: str) -> list[str]:
    """Return the names along a vertical axis, in the order of the traces; empty for an axis of numbers."""
    trace_axis = axis.replace("axis", "")
    values = [trace.y for trace in figure.data if (trace.yaxis or "y") == trace_axis and trace.y is not None]
    return list(dict.fromkeys(name for names in values for name in names if isinstance(name, str)))


def _break_title(file: dict[str, Any], width: float) -> int:
    """Break the titles of horizontal axes to a width in pixels; return how many lines the last title gained."""
    added_lines = 0
    for axis in (file[name] for name in file if name.startswith("xaxis") and file[name].get("title", {}).get("text")):
        lines = textwrap.wrap(axis["title"]["text"], max(8, int(width / LETTER)), break_on_hyphens=False)
        axis["title"] |= {"text": "<br>".join(lines)}
        added_lines = len(lines) - 1
    return added_lines


def _plot_height(figure: go.Figure, width: int) -> float:
    """Return the height of the plot in pixels: as on the page, but less for square maps in a narrower file."""
    scale = min(1, width / figure.layout.width) if figure.layout.yaxis.scaleanchor else 1
    return scale * ((figure.layout.height or 400) - 60)


def _join_lines(lines: list[str]) -> str:
    return "<br>".join(map(style.escape_text, lines))


def _lay_out_legends(
    file: dict[str, Any], names: Sequence[str], long_names: Sequence[str], width: float
) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the legends above the plot, one or two, and their height in pixels; the second one has `long_names`.

    Entries are in columns as wide as the longest name. At this point the y of a legend is in pixels below the first
    one; `lay_out_file` converts it.
    """
    if not names:
        return {}, 0
    file["shapes"] = [
        shape | {"legend": "legend2"} if shape.get("name") in long_names else shape for shape in file["shapes"]
    ]
    position = {
        "orientation": "h",
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "yref": "container",
        "yanchor": "top",
    }
    layouts, offset = {}, 0
    for name, entry_names in (("legend", [name for name in names if name not in long_names]), ("legend2", long_names)):
        if entry_names:
            entries = {
                "entrywidthmode": "pixels",
                "entrywidth": _entry_width(entry_names) - LEGEND_KEY,
                "bgcolor": "rgba(0,0,0,0)",
            }
            layouts[name] = file.get("legend", {}) | position | entries | {"y": offset}
            offset += LEGEND_ROW * _count_rows(entry_names, width)
    return layouts, 8 + offset


def _long_names(names: Sequence[str], width: float) -> list[str]:
    """Return the names for a second legend below the first, if two legends take fewer rows."""
    splits = [
        [name for name in names if len(name) > max_length] for max_length in sorted(map(len, names), reverse=True)
    ]

    def rows(long: list[str]) -> int:
        return _count_rows([name for name in names if name not in long], width) + _count_rows(long, width)

    return min(splits, key=rows, default=[])


def _legend_names(figure: go.Figure, file: dict[str, Any]) -> list[str]:
    """Return the names in the legend of a figure, of curves and of marks; none if it has no legend."""
    if figure.layout.showlegend is False:
        return []
    marks = [shape["name"] for shape in file["shapes"] if shape.get("showlegend")]
    return [*(trace.name for trace in figure.data if trace.showlegend is not False and trace.name), *marks]


def _count_rows(names: Sequence[str], width: float) -> int:
    """Return the number of rows of a legend with these names, `width` pixels wide."""
    return -(-len(names) // max(1, int(width / _entry_width(names)))) if names else 0


def _entry_width(names: Sequence[str]) -> float:
    """Return the width in pixels of the longest of these legend entries."""
    return LEGEND_KEY + LETTER * max(map(len, names))
