"""Buttons that save a figure or maps as SVG or PNG: the browser draws the file, and nothing goes over the network."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from embryo_core.browser.component import FIGURE_FILES
from embryo_core.browser.figure_files import file_sizes, map_sizes

_component = st.components.v2.component(
    "embryo.figure_files", html=FIGURE_FILES.html, css=FIGURE_FILES.css, js=FIGURE_FILES.js
)


def figure_files(figure: go.Figure, chart: str, name: str, title: str, small_print: str, copied: str) -> None:
    """Draw the buttons for the figure whose chart has this Streamlit key; the files begin with `name`.

    A file has the title and the small print; with it, the text `copied` goes to the clipboard.
    """
    _draw(name, copied, file_sizes(figure, title, small_print), chart=chart)


def map_files(name: str, small_print: str, copied: str) -> None:
    """Draw the buttons for the maps of this `name` (see head_maps.py), which draw the file themselves."""
    _draw(name, copied, map_sizes(small_print))


def _draw(name: str, copied: str, sizes: dict[str, Any], **more: str) -> None:
    key = f"files-{name.replace('_', '_.')}"  # Streamlit refuses a component's key with two underscores in a row
    _component(key=key, data={"name": name, "copied": copied, "sizes": sizes, **more}, width="content")
