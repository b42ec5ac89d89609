"""Figures of several runs: the page's run and those beside it, seeds of one design as one line."""

import pickle
from collections.abc import Callable, Sequence
from hashlib import blake2b

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import figures
from app.view import View
from embryo_core import compare
from embryo_core.figures.captions import overlay as captions
from embryo_core.figures.markdown import literal
from embryo_core.figures.overlay import Curves, Line, changes_alike, overlay
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

Read = Callable[[Run], pd.DataFrame]


def show(
    view: View,
    read: Read,
    curves: Curves,
    name: str,
    caption: str,
    title: str,
    metric: str = "",
    on_point: Callable[..., None] | None = None,
    bands: bool = True,
    of_all: bool = False,
) -> None:
    """The figure that a page has of its run, with the runs beside it; what `read` finds of a run is its table.

    A run that has no such table is named; one that does not tell what the axis counts is left out, as the head
    of the page says. The caption's numbers are the page's run's, which is said, unless it is `of_all`.
    """
    lines, missing = _lines(view, read, curves)
    for run in missing:
        st.info(literal(captions.missing(run)), icon=":material/info:")
    drawn = [run for run in view.compared_runs if view.supports_axis(run) and run not in missing]
    caption += "" if of_all else captions.own(view.run)
    seeds = any(line.seeds > 1 for line in lines)
    baselines = any(line.rows["baseline"].notna().any() for line in lines)
    caption += captions.runs([(line.name, line.rows["n"]) for line in lines], seeds, baselines)
    if not changes_alike(lines):
        caption += captions.changes({line.name: line.axis for line in lines})
    figures.show_plot(
        _drawn(_fingerprint(lines, curves, bands), lines, curves, bands),
        _table(view, lines),
        name,
        caption,
        title,
        view,
        metric,
        on_point=on_point,
        own_width=curves.width is not None,
        beside=drawn,
    )


@st.cache_resource(max_entries=figures.KEPT, show_spinner=False)
def _drawn(fingerprint: bytes, _lines: Sequence[Line], _curves: Curves, _bands: bool) -> go.Figure:
    """The figure of these lines, which is the same at every step: drawn once, and not to be changed by anybody."""
    return figures.for_browser(overlay(_lines, _curves, sorted(set(_lines[0].rows["step"])), _bands))


def _fingerprint(lines: Sequence[Line], curves: Curves, bands: bool) -> bytes:
    """What tells one figure from others: all that is drawn, and what the functions of `curves` say of it."""
    names = list(dict.fromkeys(name for line in lines for name in line.rows["curve"]))
    drawn = [(line.name, line.axis, line.rows, line.seeds) for line in lines]
    how = [value for value in vars(curves).values() if not callable(value)]
    said = [*map(curves.label, names)], curves.styles(names)
    return blake2b(pickle.dumps((drawn, how, said, bands), pickle.HIGHEST_PROTOCOL)).digest()


def _lines(view: View, read: Read, curves: Curves) -> tuple[list[Line], list[Run]]:
    """The lines in the order of the runs, and the runs that have no table."""
    lines, missing = [], []
    for seeds in compare.group_by_design([view.run, *(run for run in view.compared_runs if view.supports_axis(run))]):
        tables = {run: rows for run in seeds if len(rows := curves.rows(read(run)))}
        missing += [run for run in seeds if run not in tables]
        if not tables:
            continue
        several = len(tables) > 1
        rows = compare.average_seeds([*tables.values()]) if several else next(iter(tables.values()))
        rows = with_smoothed(rows, "value", view.smoothing, ["curve"])
        if len(rows):
            lines.append(Line(captions.named([*tables]), view.axis_of(next(iter(tables))), rows, len(tables)))
    return lines, missing


def _table(view: View, lines: list[Line]) -> pd.DataFrame:
    """What the figure draws, with the run, and what the axis counts where that is not the step."""
    parts = [line.rows.assign(run=line.name) for line in lines]
    if view.unit != "step":
        parts = [rows.assign(**{view.unit: line.axis.counts(rows["step"])}) for rows, line in zip(parts, lines)]
    table = pd.concat(parts, ignore_index=True)
    return table[["run", *(column for column in table if column != "run")]]
