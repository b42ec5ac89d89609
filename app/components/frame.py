"""One HTML document in a frame that is never blank: the next document is drawn behind it and then takes its place."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "embryo.frame",
    html='<div class="frames"></div>',
    css=(HERE / "frame.css").read_text(encoding="utf-8"),
    js=(HERE / "frame.js").read_text(encoding="utf-8"),
)


def frame(html: str, height: int, title: str, key: str) -> None:
    """Show a document of this height in pixels; `title` names it for screen readers."""
    _component(key=key, data={"html": html, "height": height, "title": title})
