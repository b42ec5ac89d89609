"""Buttons that save a figure as SVG or PNG: Plotly draws the file in the browser, and nothing goes over the network."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "embryo.figure_files",
    html="<button type='button' data-format='svg'>SVG</button><button type='button' data-format='png'>PNG</button>",
    css=(HERE / "figure_files.css").read_text(encoding="utf-8"),
    js=(HERE / "figure_files.js").read_text(encoding="utf-8"),
)


def figure_files(figure: str, key: str) -> None:
    """Draw the buttons for the chart whose Streamlit key is `figure`."""
    _component(key=key, data={"figure": figure}, width="content")
