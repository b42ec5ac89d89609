"""The dashboard: `streamlit run app/main.py` shows the runs found under the data roots, one page per question."""

from importlib import import_module
from pathlib import Path

import streamlit as st

from app import permalink
from app.captions.markdown import literal
from embryo_core.errors import EmbryoError


def page(name: str, icon: str | None = None, default: bool = False, visibility: str = "visible") -> st.Page:
    """What show() in app/views/<name>.py draws, at /<name>; the default page is at /."""
    show = import_module(f"app.views.{name}").show
    path = None if default else name
    return st.Page(show, title=name.capitalize(), icon=icon, url_path=path, default=default, visibility=visibility)


PAGES = [
    page("overview", ":material/monitoring:", default=True),
    page("findings", ":material/fact_check:"),
    page("tokens", ":material/category:"),
    page("attention", ":material/grid_on:"),
    page("probing", ":material/layers:"),
    page("knowledge", ":material/public:"),
    page("finetuning", ":material/tune:"),
    page("query", ":material/edit_note:"),
    page("overview", visibility="hidden"),  # the first page has both addresses
]

st.set_page_config(page_title="Embryo", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
chosen = st.navigation(PAGES, position="top")
if wanted := permalink.leads_to():
    st.switch_page(next(page for page in PAGES if page.url_path == wanted))
try:
    chosen.run()
except EmbryoError as error:
    st.error(literal(str(error)), icon=":material/error:")
permalink.publish()
