"""The data of the buttons that save a figure as SVG or PNG: its layout in a paper, by the columns that it fills."""

from typing import Any

import plotly.graph_objects as go

from embryo_core.figures.file_layout import SIZES, layout, second_legend
from embryo_core.figures.file_words import legible


def file_sizes(figure: go.Figure, title: str, small_print: str) -> dict[str, Any]:
    """Return for each size of a file its inches and layout, the columns kept, and the names in its second legend."""
    return {
        columns: {
            "inches": size.inches,
            "layout": (file := layout(figure, columns, title, small_print)),
            "kept": legible(figure, size.pixels),
            "long": second_legend(figure, file),
        }
        for columns, size in SIZES.items()
    }


def map_sizes(small_print: str) -> dict[str, Any]:
    """Return for each size of a file of maps, which draw it themselves, its inches, pixels and small print."""
    return {
        columns: {"inches": size.inches, "pixels": size.pixels, "print": small_print} for columns, size in SIZES.items()
    }
