"""Sharing a page: one figure to embed in another page, and the command that writes a static site with the same view."""

import re
import shlex
from urllib.parse import urlencode

import streamlit as st

from app import notices, permalink
from app.components.copy_button import copy_button
from app.view import View

# CSS that hides everything but one figure, the row below it and the time bar
ALONE = """<style>
[data-testid="stHeader"], [data-testid="stMain"] [data-testid="stElementContainer"]:not(
  {shown}, .st-key-below_{name} *, .st-key-time *),
[data-testid="stMain"] :is([data-testid="stPopover"], [data-testid="stExpander"]:not(:has({shown}))),
[data-testid="stMain"] [data-testid="stLayoutWrapper"]:not(
  :has({shown}, .st-key-below_{name}, .st-key-time), .st-key-below_{name} *, .st-key-time *) {{
  display: none;
}}
[data-testid="stMainBlockContainer"] {{ padding: 0.5rem; }}
[data-testid="stMain"] [data-testid="stLayoutWrapper"]:has(> .st-key-time) {{ top: 0; }} /* a frame has no header */
[data-testid="stMain"] :is([data-testid="stVerticalBlock"], [data-testid="stHorizontalBlock"]) {{ gap: 0.3rem; }}
</style>"""

SHOWN_KEY = "figures_of_page"  # session: the names of the figures on the page that is being drawn
# endings of the names of attention maps -> CSS classes of their components
MAPS = {r"-attention-layer\d+-head\d+$": ".st-key-head_history", "-attention-all-heads$": ".st-key-head_grid"}


def hide_other_figures() -> None:
    """Hide all but the time bar and the figure in `?figure=NAME`; Streamlit's `?embed=true` hides its own menus."""
    st.session_state[SHOWN_KEY] = []
    if name := _class_of(permalink.get("figure")):
        shown = next((of for ending, of in MAPS.items() if re.search(ending, name)), f".st-key-figure_{name}")
        st.html(ALONE.format(name=name, shown=shown))


def note_figure(name: str) -> None:
    """Record that the page being drawn has a figure of this name."""
    st.session_state.setdefault(SHOWN_KEY, []).append(name)


def explain_missing_figure() -> None:
    """Report, at the end of a page, that it lacks the figure in `?figure=NAME`, and name the figures that it has."""
    figure_name, names = permalink.get("figure"), st.session_state.get(SHOWN_KEY, [])
    if figure_name and _class_of(figure_name) not in map(_class_of, names):
        has = f"it has: {', '.join(dict.fromkeys(names))}" if names else "it has none"
        with st.container(key=f"below_{_class_of(figure_name)}"):
            notices.note(f"This page has no figure '{figure_name}'; {has}.")


def _class_of(name: str | None) -> str:
    """Return the CSS class that Streamlit derives from a key."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name or "")


def show_command(title: str, view: View) -> None:
    """Draw the command that writes a static site of the view's runs, and the address of the view in that site."""
    names = [view.run.name, *(run.name for run in view.compared_runs)]
    beside = {0: "", 1: names[-1]}.get(len(names) - 1, "all")
    state = {"run": view.run.name, "beside": beside, "step": view.step, "scale": view.scale}
    page = {"overview": "index"}.get(name := title.lower().replace("-", ""), name)
    command = f"python -m embryo_core site {shlex.join(names)} -o site"
    address = f"site/{page}.html#{urlencode({name: value for name, value in state.items() if value})}"
    st.text(f"Publish …\n{command}\nwrites a site that needs no server; this view is then at\n{address}")
    copy_button("Copy command", "publish", command)
