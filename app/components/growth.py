"""Three animated tiles that follow the time bar: a sentence being completed, a head that forms, rising curves."""

from collections.abc import Callable

import streamlit as st

from app.components.messages import member, message_of
from embryo_core.browser.component import GROWTH
from embryo_core.browser.growth import TILES

KEY = "growth"  # Streamlit key of the component

_component = st.components.v2.component("embryo.growth", html=GROWTH.html, css=GROWTH.css, js=GROWTH.js)


def growth(payload: bytes, on_open: Callable[[str], None]) -> None:
    """Draw the tiles of a payload (`make_tiles`); `on_open` gets the name of a clicked tile, one of TILES."""

    def clicked() -> None:
        if name := member(message_of(KEY, "open"), TILES, str):
            on_open(name)

    _component(key=KEY, data=payload, on_open_change=clicked)
