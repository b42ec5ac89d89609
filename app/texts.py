"""Texts that visitors write: each has a limit, which holds in the browser, at the server, and for links."""

from typing import Any

import streamlit as st

from app import permalink
from embryo_core import query
from embryo_core.figures.markdown import literal

LINK = 2_000  # characters of text that are put into the URL
LIMITS = {  # characters, by the name of the text in the URL
    "text": query.MAX_CHARACTERS,
    "text2": LINK,
    "sentence": LINK,
    "word": 100,
    "search": 100,
    "facts": 100,
}


def bounded(name: str, label: str, default: str = "") -> str:
    """Return the chosen text, or the default; a text above its limit is replaced by the default, with a warning."""
    chosen = permalink.get(name)
    if chosen is None:
        return default
    if len(chosen) > LIMITS[name]:
        sentence = f"“{label}” has {len(chosen):,} characters, and at most {LIMITS[name]:,} are read; shorten it."
        st.warning(literal(sentence), icon=":material/warning:")
        permalink.choose(name, default)
        return default
    return chosen


def pick_text(name: str, label: str, default: str = "", **appearance: Any) -> str:
    """Draw a line of text and return it; `name` is its name in the URL."""
    key = f"pick_{name}"
    st.session_state[key] = bounded(name, label, default)
    chosen = st.text_input(
        label,
        key=key,
        max_chars=LIMITS[name],
        on_change=lambda: permalink.choose(name, st.session_state[key]),
        **appearance,
    )
    permalink.show(name, chosen if chosen != default else None)
    return chosen
