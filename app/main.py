"""The dashboard: `streamlit run app/main.py` shows the runs found under the data roots, one page per question."""

from pathlib import Path

import streamlit as st

from app import permalink
from app.views import attention, knowledge, overview, probing, query, tokens
from embryo_core.errors import EmbryoError

st.set_page_config(page_title="Embryo", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")

PAGES = [
    st.Page(overview.show, title="Overview", icon=":material/monitoring:", default=True),
    st.Page(tokens.show, title="Tokens", icon=":material/category:", url_path="tokens"),
    st.Page(attention.show, title="Attention", icon=":material/grid_on:", url_path="attention"),
    st.Page(probing.show, title="Probing", icon=":material/layers:", url_path="probing"),
    st.Page(knowledge.show, title="Knowledge", icon=":material/public:", url_path="knowledge"),
    st.Page(query.show, title="Query", icon=":material/edit_note:", url_path="query"),
    st.Page(overview.show, title="Overview", url_path="overview", visibility="hidden"),  # the first page is at /
]

page = st.navigation(PAGES, position="top")
try:
    page.run()
except EmbryoError as error:
    st.error(str(error), icon=":material/error:")
permalink.publish()
