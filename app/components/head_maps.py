"""Components that keep attention maps in the browser and redraw them at every step without asking the server.

`head_history` shows one head at every checkpoint; `head_grid` shows all heads of all layers as small multiples. Both
follow the page's time bar through the window event `embryo:step`; the event `embryo:head` says which head the grid
marks as the one shown large. Maps are sent as bytes: the length of a JSON header, the header, then the maps. For a long
series, the grid is sent once, with the maps of some steps; the maps of the chosen step are sent separately and
announced by the event `embryo:maps` (embryo_core/browser/head_maps.py).
"""

from collections.abc import Callable

import streamlit as st

from app.components.messages import field, member, message_of
from embryo_core.browser.component import HEAD_GRID, HEAD_GRID_STEP, HEAD_HISTORY
from embryo_core.browser.head_maps import history_payload
from embryo_core.curves.step_scales import Scale
from embryo_core.share import HeadHistory

_history = st.components.v2.component(
    "embryo.head_history", html=HEAD_HISTORY.html, css=HEAD_HISTORY.css, js=HEAD_HISTORY.js
)
_grid = st.components.v2.component("embryo.head_grid", html=HEAD_GRID.html, css=HEAD_GRID.css, js=HEAD_GRID.js)
_added = st.components.v2.component("embryo.head_grid_step", html="<div></div>", js=HEAD_GRID_STEP)


def head_history(history: HeadHistory, scale: Scale, key: str) -> None:
    """Show one head's maps at the time bar's step."""
    _history(key=key, data=history_payload(history, scale))


def head_grid(
    payload: bytes, added: bytes, layers: int, heads: int, on_head: Callable[[int, int], None], key: str
) -> None:
    """Show the small multiples in `payload` (`grid_payload`) and, for one more step, in `added` (`added_payload`).

    `on_head` is called with the clicked layer and head, counted from 1.
    """

    def clicked() -> None:
        message = message_of(key, "head")
        layer = member(field(message, "layer"), range(1, layers + 1))
        head = member(field(message, "head"), range(1, heads + 1))
        if layer and head:
            on_head(layer, head)

    _grid(key=key, data=payload, on_head_change=clicked)
    with st.container(key=f"{key}_added"):  # invisible (page.css)
        _added(key=f"{key}_step", data=added)
