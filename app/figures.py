"""Figures on a page: drawn once, cached, and shown with a caption and a menu of files."""

import pickle
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from plotly.basedatatypes import BaseFigure

from app import permalink, sharing
from app.caching import run_state
from app.components import messages
from app.components.copy_button import copy_button
from app.components.figure_files import figure_files
from app.notices import note, show_caption
from app.question_queue import QUEUE
from app.view import View
from embryo_core.errors import FigureError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.draft import Draft
from embryo_core.figures.figure import Caption, Figure
from embryo_core.figures.markdown import literal
from embryo_core.figures.query import SharedAxes, Subject
from embryo_core.query.answers import Lead
from embryo_core.types import Run

MIME_TYPES = {".csv": "text/csv", ".gif": "image/gif", ".html": "text/html"}  # suffix of a file -> MIME type
MAX_FIGURES = 64  # cached figures
# estimated core-seconds to make a file, by which the queue of questions orders it
FILE_SECONDS = {".csv": 0.2, ".gif": 5.0, ".html": 1.0}


@dataclass(frozen=True)
class File:
    """A download of a figure: its label in the menu, its file name, and the function that makes it after a click."""

    label: str
    name: str
    content: Callable[[], str | bytes]


# === Making ===


def draw(view: View, make: Callable[..., Figure], **options: Any) -> Figure:
    """Return the Figure that `make`, a function of embryo_core.figures, makes of the page's runs with these options.

    It depends on the chosen step only through `options`. It is cached and shared by all visitors until the files of a
    run change: never modify it.
    """
    return _make(make, view.drawn_runs, view.axis_choice, **options)


def plot(
    view: View,
    make: Callable[..., Figure],
    on_point: Callable[..., None] | None = None,
    titled: bool = False,
    **options: Any,
) -> bool:
    """Draw and show a figure, or a caption with the reason why it has nothing to draw; return whether it was shown.

    Arguments as for `draw` and `show`.
    """
    try:
        show(draw(view, make, **options), on_point=on_point, titled=titled)
    except FigureError as error:
        st.caption(literal(str(error)))
        return False
    return True


HASHES: dict[str | type, Callable[[Any], Any]] = {  # type -> how Streamlit hashes an argument of that type
    Run: run_state,
    FunctionType: lambda function: f"{function.__module__}.{function.__qualname__}",
    # the whole table: of a long one, Streamlit would hash only a sample
    pd.DataFrame: lambda table: blake2b(pickle.dumps(table, pickle.HIGHEST_PROTOCOL)).digest(),
    # by `repr`, since their fields are plain values and Streamlit would copy a dataclass to hash it
    **dict.fromkeys((AxisChoice, Lead, SharedAxes, Subject), repr),
}


@st.cache_resource(max_entries=MAX_FIGURES, show_spinner=False, hash_funcs=HASHES)
def _make(make: Callable[..., Figure], runs: Sequence[Run], axis: AxisChoice, **options: Any) -> Figure:
    """Make a figure, cached by its function, the state of its runs, axis and options."""
    figure = make(runs, axis, **options)
    _freeze(figure.chart)
    return figure


def _freeze(plot: Any) -> None:
    """Convert a plot to plain values once, not at every display; later changes to the plot have no effect."""
    content = _with_lists(plot.to_dict())
    plot.to_dict = lambda: content


def _with_lists(part: Any) -> Any:
    """Convert object arrays, such as customdata, to lists, which orjson writes ten times as fast.

    Arrays that are not C-contiguous, such as transposed ones, become lists too, since orjson cannot write them.
    """
    if isinstance(part, dict):
        return {name: _with_lists(value) for name, value in part.items()}
    if isinstance(part, list | tuple) and part and isinstance(part[0], dict):
        return [*map(_with_lists, part)]
    listed = isinstance(part, np.ndarray) and (part.dtype == object or not part.flags.c_contiguous)
    return part.tolist() if listed else part


# === Showing ===


class _PlainFigure(BaseFigure):
    """A figure for `st.plotly_chart` that skips Plotly's validation: only its plain values are read."""

    def __init__(self, chart: go.Figure | Draft):
        self.__dict__["to_dict"] = chart.to_dict


def show(figure: Figure, on_point: Callable[..., None] | None = None, titled: bool = False) -> None:
    """Show a Figure with its caption and the menu of its files, below its title if `titled`; name runs without data.

    `on_point` is called when a point is clicked, before the page is drawn again, with the first of the point's
    customdata, one for each annotated parameter. A figure with a fixed width scrolls on a narrower page. A figure of
    panels takes the width of the page; its own width is for files and notebooks.
    """
    if titled:
        st.header(literal(figure.title), anchor=False)
    for run in figure.missing:
        note(f"Run '{run}' has not been measured for this figure.")
    key = f"figure_{figure.name}"

    def clicked() -> None:
        if on_point and (values := messages.clicked_values(messages.message_of(key), on_point)):
            on_point(*values)

    select: dict[str, Any] = {"on_select": clicked, "selection_mode": "points"} if on_point else {}
    width, panels = figure.chart.layout.width, figure.chart.layout.autosize
    with st.container(key=f"{'wide' if panels else 'scroll'}_{figure.name}") if width else nullcontext():
        fixed: Any = int(width) if width and not panels else "stretch"
        st.plotly_chart(_PlainFigure(figure.chart), key=key, width=fixed, alt=figure.title, **select)
    show_files(
        figure.name,
        figure.caption,
        lambda: figure_files(figure, key),
        File("CSV, the numbers of this figure", f"{figure.file_name}.csv", figure.to_csv),
    )


def choose_step(category: object, step: int) -> None:
    """Move the time bar to the step of a clicked point, whose customdata begin with a category and a step."""
    permalink.choose("step", step)


def show_files(name: str, caption: Caption, pictures: Callable[[], None], *files: File) -> None:
    """Show a figure's caption and the menu of its files: the buttons that `pictures` draws (SVG, PNG), then `files`."""
    sharing.note_figure(name)
    with st.container(horizontal=True, gap="small", key=f"below_{name}"):
        show_caption(caption, width="stretch")
        menu = st.popover("Save", icon=":material/download:", key=f"save_{name}", on_change="rerun")
    if menu.open:
        with menu:
            pictures()
            copy_button("Frame for another page", f"frame-{name.replace('_', '_.')}", figure=name)
            for file in files:
                _download(file, name)


def _download(file: File, name: str) -> None:
    """Draw a button that makes the file when it is clicked."""
    suffix = PurePath(file.name).suffix
    st.download_button(
        file.label,
        partial(_content, file),
        file_name=file.name,
        mime=MIME_TYPES[suffix],
        key=f"{suffix[1:]}_{name}",
        on_click="ignore",
    )


def _content(file: File) -> str | bytes:
    """Make the content of a file when its turn in the queue of questions comes, and return it."""
    with QUEUE.turn(FILE_SECONDS[PurePath(file.name).suffix]):
        return file.content()
