"""Figures of several runs: the page's run and those beside it, seeds of one design as one line."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from app import figures
from app.captions import overlay as captions
from app.captions.markdown import literal
from app.charts.overlay import Curves, Line, changes_alike, overlay
from app.charts.smoothing import with_smoothed
from app.view import View
from embryo_core import compare
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

    A run that has no such table, or does not tell what the axis counts, is named. The caption's numbers are the page's
    run's, which is said, unless it is `of_all`.
    """
    lines, missing = _lines(view, read, curves)
    for words in captions.missing(missing, [run for run in view.beside if not view.tells(run)], view.unit):
        st.info(literal(words), icon=":material/info:")
    drawn = [run for run in view.beside if view.tells(run) and run not in missing]
    caption += "" if of_all else captions.own(view.run)
    seeds = any(line.seeds > 1 for line in lines)
    baselines = any(line.rows["baseline"].notna().any() for line in lines)
    caption += captions.runs([(line.name, line.rows["n"]) for line in lines], seeds, baselines)
    if not changes_alike(lines):
        caption += captions.changes({line.name: line.axis for line in lines})
    figures.show(
        overlay(lines, curves, sorted(set(lines[0].rows["step"])), bands),
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


def _lines(view: View, read: Read, curves: Curves) -> tuple[list[Line], list[Run]]:
    """The lines in the order of the runs, and the runs that have no table."""
    lines, missing = [], []
    for seeds in compare.by_design([view.run, *(run for run in view.beside if view.tells(run))]):
        tables = {run: rows for run in seeds if len(rows := curves.rows(read(run)))}
        missing += [run for run in seeds if run not in tables]
        if not tables:
            continue
        several = len(tables) > 1
        rows = compare.over_seeds([*tables.values()]) if several else next(iter(tables.values()))
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
