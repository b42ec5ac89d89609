"""Two buttons that download a head's history as an animation: a GIF, and a page that plays by itself."""

import streamlit as st

from embryo_core.curves import Scale
from embryo_core.share import HeadHistory, gif_bytes, html_page


def show(history: HeadHistory, scale: Scale, name: str) -> None:
    """Draw the buttons; the files are made when they are clicked, named `name` and coloured on `scale`."""
    shared = {"icon": ":material/movie:", "on_click": "ignore"}
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "GIF",
            lambda: gif_bytes(history, scale),
            file_name=f"{name}.gif",
            mime="image/gif",
            help="This head over all steps, as an animated picture",
            key=f"gif_{name}",
            **shared,
        )
        st.download_button(
            "HTML",
            lambda: html_page(history, scale),
            file_name=f"{name}.html",
            mime="text/html",
            help="This head over all steps, as a page with a slider that needs no network",
            key=f"html_{name}",
            **shared,
        )
