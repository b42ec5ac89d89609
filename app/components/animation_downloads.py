"""Two buttons that download a head's development as an animation: a GIF, and a page that plays by itself."""

import streamlit as st

from embryo_core.share.animation import Film


def show(film: Film, scale: str, name: str) -> None:
    """Draw the buttons; the files are made when they are clicked, named `name` and coloured on `scale`."""
    shared = {"icon": ":material/movie:", "on_click": "ignore"}
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "GIF",
            lambda: _gif(film, scale),
            file_name=f"{name}.gif",
            mime="image/gif",
            help="This head over all steps, as an animated picture",
            key=f"gif_{name}",
            **shared,
        )
        st.download_button(
            "HTML",
            lambda: _page(film, scale),
            file_name=f"{name}.html",
            mime="text/html",
            help="This head over all steps, as a page with a slider that needs no network",
            key=f"html_{name}",
            **shared,
        )


def _gif(film: Film, scale: str) -> bytes:
    from embryo_core.share.gif import gif_bytes  # Pillow, for this alone

    return gif_bytes(film, scale)


def _page(film: Film, scale: str) -> str:
    from embryo_core.share.page import html_page

    return html_page(film, scale)
