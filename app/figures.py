"""A figure of a page with its caption and its downloads."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import results
from app.caching import run_state
from app.components import messages
from app.components.figure_files import figure_files
from app.question_queue import QUEUE
from app.view import View
from app.widgets import show_caption
from embryo_core.figures.axis import Axis
from embryo_core.figures.captions import networks
from embryo_core.figures.captions.figure_file import copied, small_print
from embryo_core.figures.captions.smoothing import smoothing
from embryo_core.figures.captions.thinned import thinned
from embryo_core.figures.figure import Figure
from embryo_core.figures.markdown import literal
from embryo_core.types import Run

TYPES = {".csv": "text/csv", ".gif": "image/gif", ".html": "text/html"}
KEPT = 64  # figures
WHOLE = ("n", "seeds", "layer")  # columns of whole numbers, also where a row has none; those that begin with n_, too
SECONDS = {".csv": 0.2, ".gif": 5.0, ".html": 1.0}  # of one core that a file takes, about; its place in the queue


@dataclass(frozen=True)
class File:
    """A download of a figure: what the menu says of it, its name, and what makes it once it is clicked."""

    label: str
    name: str
    content: Callable[[], str | bytes]


# === Figures of embryo_core.figures ===


def _fingerprint(table: pd.DataFrame) -> bytes:
    """What tells a table from others, whole: Streamlit itself looks at a part of a long one."""
    return blake2b(pickle.dumps(table, pickle.HIGHEST_PROTOCOL)).digest()


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def draw(view: View, make: Callable[..., Figure], **options: Any) -> Figure:
    """Return the Figure that a function of embryo_core.figures makes of the runs of a page, with these options.

    It is the same at every step: made once, shared by all visitors until the files of a run change, and never modified.
    """
    return _made(make, view.drawn, Axis(view.scale, view.unit, view.smoothing), **options)


HASHES = {Run: run_state, FunctionType: _name, pd.DataFrame: _fingerprint}


@st.cache_resource(max_entries=KEPT, show_spinner=False, hash_funcs=HASHES)
def _made(make: Callable[..., Figure], runs: Sequence[Run], axis: Axis, **options: Any) -> Figure:
    figure = make(runs, axis, **options)
    for_browser(figure.plot)
    return figure


def show(figure: Figure, on_point: Callable[..., None] | None = None) -> None:
    """Show a Figure with its caption and a menu of its files, and name runs that it lacks.

    `on_point` is called when a point is clicked, before the page is drawn again, with the first of the point's
    customdata, one for each annotated parameter. A figure with a width of its own is scrolled on a narrower page.
    """
    for run in figure.missing:
        st.info(literal(f"Run '{run}' has not been measured for this figure."), icon=":material/info:")
    key = f"figure_{figure.name}"

    def clicked() -> None:
        if values := messages.clicked_values(st.session_state[key], on_point):
            on_point(*values)

    select = {"on_select": clicked, "selection_mode": "points"} if on_point else {}
    width = figure.plot.layout.width
    with st.container(key=f"scroll_{figure.name}") if width else nullcontext():
        st.plotly_chart(figure.plot, key=key, width=int(width) if width else "stretch", alt=figure.title, **select)
    with st.container(horizontal=True, gap="small", key=f"below_{figure.name}"):
        show_caption(figure.caption, width="stretch")
        menu = st.popover("Save", icon=":material/download:", key=f"save_{figure.name}")
    with menu:
        picture = figure.file_name, figure.title, figure.small_print, figure.citation
        figure_files(figure.plot, key, *picture)
        csv = File("CSV, the numbers of this figure", f"{figure.file_name}.csv", figure.to_csv)
        _download(csv, figure.name)


# === Plots with captions of their own ===


@st.cache_resource(max_entries=KEPT, show_spinner=False, hash_funcs={pd.DataFrame: _fingerprint, FunctionType: _name})
def drawn(chart: Callable[..., go.Figure], *what: Any) -> go.Figure:
    """The figure that a `chart` makes of `what`, which is the same at every step: drawn once, and shared by all pages.

    Nobody may change it.
    """
    return for_browser(chart(*what))


def for_browser(figure: go.Figure) -> go.Figure:
    """The figure, of which nothing changes any more: its numbers are copied once, and not each time that it is shown.

    What its points are told stands in lists, as an array of objects is written ten times as slowly (see orjson).
    """
    if "to_dict" not in vars(figure):
        content = _with_lists(figure.to_dict())
        figure.to_dict = lambda: content
    return figure


def _with_lists(part: Any) -> Any:
    """The same with every array of objects as a list; others are sent as they lie in memory."""
    if isinstance(part, dict):
        return {name: _with_lists(value) for name, value in part.items()}
    if isinstance(part, list | tuple) and part and isinstance(part[0], dict):
        return [*map(_with_lists, part)]
    return part.tolist() if isinstance(part, np.ndarray) and part.dtype == object else part


def show_plot(
    figure: go.Figure,
    data: pd.DataFrame,
    name: str,
    caption: str,
    title: str,
    view: View,
    metric: str = "",
    on_point: Callable[..., None] | None = None,
    own_width: bool = False,
    at: str = "",
    beside: Sequence[Run] = (),
) -> None:
    """A figure, its caption (what it shows, on what data, with what n), and a menu of its files: SVG, PNG and CSV.

    `name` names the downloaded files and is unique on the page. Files of the picture carry the `title`, the run of the
    `view`, and what was noted of the data of the `metric`, where the figure shows one. `on_point` hears of a click on a
    point, before the page is drawn again: its annotated parameters get the first of the point's customdata. A figure of
    its `own_width` is scrolled where the page is narrower. The files of one that is another `at` each step say which;
    those with runs `beside` the page's name them all, and the data that all of them share.
    """
    key, files = f"figure_{name}", f"{name}-{at}" if at else name
    shown = (view.run, *beside)
    curves = smoothing(data) + thinned(figure)
    caption += networks.of_metric(shown, metric) + curves

    def clicked() -> None:
        if values := messages.clicked_values(st.session_state[key], on_point):
            on_point(*values)

    select = {"on_select": clicked, "selection_mode": "points"} if on_point else {}
    width = int(figure.layout.width) if own_width else "stretch"
    with st.container(key=f"scroll_{name}") if own_width else nullcontext():
        st.plotly_chart(for_browser(figure), key=key, width=width, alt=title, **select)
    names, notes = ", ".join(run.name for run in shown), {run.name: results.note(run, metric) for run in shown}
    note = notes[view.run.name] if len({*notes.values()}) == 1 else ""
    show_files(
        name,
        caption,
        lambda: figure_files(
            figure,
            key,
            files,
            title,
            small_print(names, note) + curves,
            copied(title, names, caption),
        ),
        File("CSV, the numbers of this figure", f"{files}.csv", lambda: numbers(data, names, note, notes)),
    )


def numbers(data: pd.DataFrame, run: str, note: str, notes: Mapping[str, str] = MappingProxyType({})) -> str:
    """The rows of a figure as CSV. Each names its run and what was `note`d of the data, and its counts are whole.

    Of rows that name their run, the data are those of the `notes` by run; of rows that name their data, these.
    """
    data = data if "run" in data or not run else data.assign(run=run)
    noted = data["run"].map(notes).fillna(note) if notes and "run" in data else pd.Series(note, data.index)
    noted = data["data"].fillna(noted) if "data" in data else noted
    counts = [
        name for name, kind in data.dtypes.items() if kind == float and (name in WHOLE or str(name).startswith("n_"))
    ]
    data = data.astype(dict.fromkeys(counts, "Int64"))
    return (data.assign(data=noted) if noted.any() else data).to_csv(index=False)


def show_files(name: str, caption: str, pictures: Callable[[], None], *files: File) -> None:
    """The caption below a figure and, beside it, one menu: what `pictures` draws (SVG and PNG), then the `files`."""
    with st.container(horizontal=True, gap="small", key=f"below_{name}"):
        show_caption(caption, width="stretch")
        menu = st.popover("Save", icon=":material/download:", key=f"save_{name}")
    with menu:
        pictures()
        for file in files:
            _download(file, name)


def _download(file: File, name: str) -> None:
    """Draw the button that downloads a file of the figure of this name."""
    suffix = PurePath(file.name).suffix
    st.download_button(
        file.label,
        partial(_content, file),
        file_name=file.name,
        mime=TYPES[suffix],
        key=f"{suffix[1:]}_{name}",
        on_click="ignore",
    )


def _content(file: File) -> str | bytes:
    """What a file holds, made when its turn comes among the questions."""
    with QUEUE.turn(SECONDS[PurePath(file.name).suffix]):
        return file.content()
