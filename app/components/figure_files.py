"""Buttons that save a figure as SVG or PNG: Plotly draws the file in the browser, and nothing goes over the network."""

from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from app.charts.figure_file import SIZES, layout

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
        columns: {"inches": size.inches, "layout": layout(figure, columns, title, small_print)}
        for columns, size in SIZES.items()
    }
    _component(
        key=f"files_{name}",
        data={"chart": chart, "name": name, "sizes": sizes, "copied": copied},
        width="content",
    )
