"""A frame for an HTML document that never turns blank: a new document is drawn behind the old one, then replaces it."""

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
    """Show an HTML document, `height` pixels high; `title` names it for screen readers."""
    _component(key=key, data={"html": html, "height": height, "title": title})
