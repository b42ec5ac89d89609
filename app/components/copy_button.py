"""A button that copies a text, or the address of the page's current view, to the clipboard."""

from pathlib import Path

import streamlit as st

from embryo_core.browser import component

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "embryo.copy_button",
    html="<button type='button' aria-live='polite'>Copy</button>",
    css=(HERE / "copy_button.css").read_text(encoding="utf-8"),
    js=component.read("clipboard.js") + (HERE / "copy_button.js").read_text(encoding="utf-8"),
)


def copy_button(label: str, key: str, text: str | None = None, figure: str = "") -> None:
    """Draw a button that copies `text`, or without it the address of the page at the step that is shown.

    With the name of a `figure`, the button copies an iframe that embeds only this figure in another page.
    """
    _component(key=key, data={"label": label, "text": text, "figure": figure}, width="content")
