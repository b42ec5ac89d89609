"""The phases of a run: how they were found, and what changes in each."""

import streamlit as st

from app import results, widgets
from app.view import View
from embryo_core.figures.captions import phases as captions

WIDEST = 420  # pixels of a column


def show(view: View) -> None:
    """Draw the section."""
    st.header("Phases", anchor=False)
    found = results.phases(view.run)
    if not found:
        widgets.show_caption(captions.NONE)
        return
    table, cases = results.phase_changes(view.run)
    longest = {name: max(len(name), table[name].astype(str).str.len().max()) for name in table}
    columns = {name: st.column_config.Column(width=int(min(WIDEST, 24 + 7 * n))) for name, n in longest.items()}
    st.dataframe(table, hide_index=True, height="content", key="phases", column_config=columns)
    widgets.show_caption(captions.found(found, cases))
