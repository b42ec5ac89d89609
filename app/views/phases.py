"""The phases of a run: how they were found, and what changes in each."""

import streamlit as st

from app import results, widgets
from app.captions import phases as captions
from app.view import View


def show(view: View) -> None:
    """Draw the section."""
    st.header("Phases", anchor=False)
    found = results.phases(view.run)
    if not found:
        widgets.show_caption(captions.NONE)
        return
    table, cases = results.phase_changes(view.run)
    st.dataframe(table, hide_index=True, height="content", key="phases")
    widgets.show_caption(captions.found(found, cases))
