"""The state of the dashboard in the URL: read when a link is opened, written when a page is drawn.

Streamlit clears the query parameters of a page and forgets its widgets when the user opens another page. So the session
holds the whole state, and the URL is a copy of it; every value is text. The URL takes precedence when a session starts
and when the browser goes back or forward; otherwise the session does.
"""

from collections.abc import Iterable
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

STATE_KEY = "permalink"  # session: name -> the user's choice
TARGET_KEY = "permalink_target"  # session: the page that a click opens
LINK_KEY = "permalink_link"  # session: the page that a link opened, and the names of the values in that link
SHOWN_KEY = "permalink_shown"  # session: name -> value on the page being drawn; None if it is the default

_history = st.components.v2.component(
    "embryo.history", js=(Path(__file__).parent / "components" / "history.js").read_text(encoding="utf-8")
)


def one_entry_per_page() -> None:
    """Keep the browser's history to one entry per page, so that Back leaves a page at once (see history.js)."""
    _history(key="history", height=0)


def restore() -> None:
    """Read the choices from the URL, before any `get`; after "Back", values missing in the URL are defaults again."""
    context = get_script_run_ctx()
    state = st.session_state.get(STATE_KEY)
    if state is None:
        st.session_state[STATE_KEY] = st.query_params.to_dict()
        st.session_state[LINK_KEY] = (_page(), set(st.session_state[STATE_KEY]))
    elif context is not None and context.is_history_navigation:
        left_out = {name for name, value in st.session_state[SHOWN_KEY].items() if value is None}
        st.session_state[STATE_KEY] = {k: v for k, v in state.items() if k not in left_out} | st.query_params.to_dict()
    st.session_state[SHOWN_KEY] = {}


def get(name: str) -> str | None:
    """Return the chosen value, or None if nothing was chosen yet."""
    return st.session_state.get(STATE_KEY, {}).get(name)


def choose(name: str, value: object) -> None:
    """Store the user's choice for this session."""
    st.session_state.setdefault(STATE_KEY, {})[name] = str(value)
    _, names = st.session_state.get(LINK_KEY, (None, set()))
    names.discard(name)


def choose_all(**values: object) -> None:
    """Store several choices of the user by name."""
    for name, value in values.items():
        choose(name, value)


def came_with_link(name: str) -> bool:
    """Return whether a value came with the link that opened this page and has not been changed since."""
    page, names = st.session_state.get(LINK_KEY, (None, set()))
    return name in names and page == _page()


def put_in_url(name: str, value: object | None) -> None:
    """Put this value into the URL of the page that is being drawn; None leaves it out."""
    st.session_state.setdefault(SHOWN_KEY, {})[name] = None if value is None else str(value)


def open_page(page: str, **choices: object) -> None:
    """Store choices and open the page of this name when the app is next drawn; for callbacks."""
    choose_all(**choices)
    st.session_state[TARGET_KEY] = page


def pop_target() -> str | None:
    """Return the page that `open_page` requested, or None, and clear the request."""
    return st.session_state.pop(TARGET_KEY, None)


def publish() -> None:
    """Write the values of this page to the URL, all at once: each write is an entry in the browser's history."""
    shown = st.session_state.get(SHOWN_KEY, {})
    before = {name: st.query_params.get_all(name) for name in st.query_params}
    after = {name: values for name, values in before.items() if shown.get(name, "") is not None}
    after |= {name: [value] for name, value in shown.items() if value not in (None, st.query_params.get(name))}
    if after != before:
        st.query_params.from_dict(after)


def _page() -> str | None:
    """Return Streamlit's hash of the current page; None outside a session."""
    context = get_script_run_ctx()
    return context.page_script_hash if context else None


def join(values: Iterable[str]) -> str:
    """Join several values into one, for `split`."""
    return ",".join(value.replace("%", "%25").replace(",", "%2C") for value in values)


def split(text: str) -> list[str]:
    """Split a value that `join` made."""
    return [part.replace("%2C", ",").replace("%25", "%") for part in text.split(",")]
