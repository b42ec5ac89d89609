"""The state of the dashboard as it stands in the URL: restored when a link is opened, written when a page is drawn.

Streamlit clears a page's query parameters, and forgets its widgets, when the user goes to another page. So the whole
state lives here, in the session, and the URL is its copy: every value is text, as in the URL. The URL wins when the
session starts and when the browser goes back or forward; otherwise the session does.
"""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

STATE = "permalink"
SHOWN = "permalink_shown"


def restore() -> None:
    """Take over the values in the URL where they are the user's wish; call this before any `get`."""
    context = get_script_run_ctx()
    if STATE not in st.session_state or (context is not None and context.is_history_navigation):
        st.session_state[STATE] = st.session_state.get(STATE, {}) | st.query_params.to_dict()
    st.session_state[SHOWN] = {}


def get(name: str) -> str | None:
    """The chosen value, or None where nothing was chosen yet."""
    return st.session_state.get(STATE, {}).get(name)


def choose(name: str, value: object) -> None:
    """Keep the user's choice for this session."""
    st.session_state.setdefault(STATE, {})[name] = str(value)


def show(name: str, value: object) -> None:
    """Put this value into the URL of the page now being drawn."""
    st.session_state.setdefault(SHOWN, {})[name] = str(value)


def publish() -> None:
    """Write the values that this page showed to the URL, in one message; other parameters are left alone."""
    shown = st.session_state.get(SHOWN, {})
    if any(st.query_params.get(name) != value for name, value in shown.items()):
        st.query_params.update(shown)
