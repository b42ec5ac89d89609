"""Buttons that save a figure or maps as SVG or PNG: the browser draws the file, and nothing goes over the network."""

from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from embryo_core.figures.file_layout import SIZES, layout
from embryo_core.figures.file_words import legible

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "embryo.figure_files",
    html=(HERE / "figure_files.html").read_text(encoding="utf-8"),
    css=(HERE / "figure_files.css").read_text(encoding="utf-8"),
    js="".join((HERE / name).read_text(encoding="utf-8") for name in ("clipboard.js", "figure_files.js")),
)


def figure_files(figure: go.Figure, chart: str, name: str, title: str, small_print: str, copied: str) -> None:
    """Draw the buttons for the figure whose chart has this Streamlit key; the files begin with `name`.

    A file has the title and the small print; with it, the text `copied` goes to the clipboard.
    """
    sizes = {
        columns: {
            "inches": size.inches,
            "layout": layout(figure, columns, title, small_print),
            "kept": legible(figure, size.pixels),
        }
        for columns, size in SIZES.items()
    }
    _draw(name, copied, sizes, chart=chart)


def map_files(name: str, small_print: str, copied: str) -> None:
    """Draw the buttons for the maps of this `name` (see head_maps.py), which draw the file themselves."""
    sizes = {
        columns: {"inches": size.inches, "pixels": size.pixels, "print": small_print} for columns, size in SIZES.items()
    }
    _draw(name, copied, sizes)


def _draw(name: str, copied: str, sizes: dict[str, Any], **more: str) -> None:
    key = f"files-{name.replace('_', '_.')}"  # Streamlit refuses a component's key with two underscores in a row
    _component(key=key, data={"name": name, "copied": copied, "sizes": sizes, **more}, width="content")
