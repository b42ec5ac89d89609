"""A figure of a page with its caption and its downloads."""

from collections.abc import Callable
from contextlib import nullcontext

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import results
from app.captions.figure_file import copied, small_print
from app.captions.smoothing import smoothing
from app.components import messages
from app.components.figure_files import figure_files
from app.widgets import View, show_caption


def show(
    figure: go.Figure,
    data: pd.DataFrame,
    name: str,
    caption: str,
    title: str,
    view: View,
    metric: str = "",
    on_point: Callable[..., None] | None = None,
    own_width: bool = False,
) -> None:
    """A figure, its caption (what it shows, on what data, with what n), and a menu of its files: SVG, PNG and CSV.

    `name` names the downloaded files and is unique on the page. Files of the picture carry the `title`, the run of the
    `view`, and what was noted of the data of the `metric`, where the figure shows one. `on_point` hears of a click on a
    point, before the page is drawn again: its annotated parameters get the first of the point's customdata. A figure of
    its `own_width` is scrolled where the page is narrower.
    """
    key = f"figure_{name}"
    caption += smoothing(data)

    def clicked() -> None:
        if values := messages.clicked_values(st.session_state[key], on_point):
            on_point(*values)

    select = {"on_select": clicked, "selection_mode": "points"} if on_point else {}
    width = "content" if own_width else "stretch"
    with st.container(key=f"scroll_{name}") if own_width else nullcontext():
        st.plotly_chart(figure, key=key, width=width, alt=title, **select)
    note = results.sources(view.run).get(metric, {}).get("note", "")
    with st.container(horizontal=True, gap="small", key=f"below_{name}"):
        show_caption(caption, width="stretch")
        menu = st.popover("Save", icon=":material/download:", key=f"save_{name}")
    with menu:
        figure_files(figure, key, name, title, small_print(view.run.name, note), copied(title, view.run.name, caption))
        st.download_button(
            "CSV, the numbers of this figure",
            lambda: data.to_csv(index=False),
            file_name=f"{name}.csv",
            mime="text/csv",
            key=f"data_{name}",
            on_click="ignore",
        )
