"""Buttons that save a figure or maps as SVG or PNG: the browser draws the file, without the server."""

from typing import Any

import streamlit as st

from embryo_core.browser.component import FIGURE_FILES
from embryo_core.figures.figure import Figure
from embryo_core.figures.file_layout import map_sizes

_component = st.components.v2.component(
    "embryo.figure_files", html=FIGURE_FILES.html, css=FIGURE_FILES.css, js=FIGURE_FILES.js
)


def figure_files(figure: Figure, chart: str) -> None:
    """Draw the buttons for a figure; `chart` is the Streamlit key of its chart."""
    _draw(figure.file_name, figure.citation, figure.file_sizes, chart=chart)


def map_files(name: str, small_print: str, copied: str) -> None:
    """Draw the buttons for the maps called `name`, whose component (head_maps.py) draws the file.

    Saving a file also copies the text `copied` to the clipboard.
    """
    _draw(name, copied, map_sizes(small_print))


def _draw(name: str, copied: str, sizes: dict[str, Any], **more: str) -> None:
    key = f"files-{name.replace('_', '_.')}"  # Streamlit refuses a component's key with two underscores in a row
    _component(key=key, data={"name": name, "copied": copied, "sizes": sizes, **more}, width="content")
