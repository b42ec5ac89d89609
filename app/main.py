"""The dashboard: `streamlit run app/main.py` shows the runs under the data roots, one page per topic."""

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from app import permalink, server_log, sharing
from app.drawing import drawing
from embryo_core.errors import EmbryoError
from embryo_core.figures.markdown import literal


def page(
    title: str, icon: str | None = None, default: bool = False, visibility: Literal["visible", "hidden"] = "visible"
) -> Any:
    """Return a page that `show` of app/views/<name>.py draws, at /<name>, or at / for the default page.

    The name is the title in lower case, without hyphens.
    """
    name = title.lower().replace("-", "")

    def show() -> None:
        # imported here, so that the first page does not wait for the modules of other pages
        import_module(f"app.views.{name}").show()

    path = None if default else name
    return st.Page(show, title=title, icon=icon, url_path=path, default=default, visibility=visibility)


PAGES = [
    page("Overview", ":material/monitoring:", default=True),
    page("Findings", ":material/fact_check:"),
    page("Tokens", ":material/category:"),
    page("Attention", ":material/grid_on:"),
    page("Probing", ":material/layers:"),
    page("Geometry", ":material/scatter_plot:"),
    page("Knowledge", ":material/public:"),
    page("Grammar", ":material/spellcheck:"),
    page("Words", ":material/abc:"),
    page("Fine-tuning", ":material/tune:"),
    page("Query", ":material/edit_note:"),
    page("Compare", ":material/compare_arrows:"),
    page("Overview", visibility="hidden"),  # the Overview is also at /overview
]

server_log.shorten()
st.set_page_config(page_title="Embryo", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
chosen = st.navigation(PAGES, position="top")
if wanted := permalink.pop_target():
    st.switch_page(next(page for page in PAGES if page.url_path == wanted))
try:
    with drawing():
        chosen.run()
        sharing.explain_missing_figure()
except EmbryoError as error:
    st.error(literal(str(error)), icon=":material/error:")
permalink.publish()
