"""The Overview, held-out accuracy by length and position, for each way of masking, where pretraining measured it."""

from functools import partial

import pandas as pd
import streamlit as st

from app import figures, overlays, pickers, results
from app.view import View
from embryo_core.figures import measures as charts
from embryo_core.figures import style
from embryo_core.figures.captions import measures as captions
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

TITLE = "Masked-word accuracy by length and position"


def show(view: View) -> None:
    """Draw the curves of one way of masking; nothing where the log has no measures by position."""
    measures = results.measures(view.run)
    if measures.empty:
        return
    st.header(TITLE, anchor=False)
    with st.container(horizontal=True):
        masking = pickers.pick_one(
            "masking", "Masked", charts.maskings(measures), format_func=captions.masked, segmented=True, optional=True
        )
        sample = _pick_sample(charts.samples(measures, masking), measures["length"].min())
    data, name = _curves(view.run, masking, sample), f"{view.run.name}-by-position"
    caption = captions.by_position(data, masking)
    if view.compared_runs:
        overlays.show(view, partial(_beside, view.run, masking, sample), charts.OVERLAY, name, caption, TITLE)
        return
    shown = with_smoothed(data, "value", view.smoothing, ["curve"])
    figures.show_plot(charts.figure(shown, view.axis, _baseline(view.run)), shown, name, caption, TITLE, view)


def _pick_sample(samples: list[int], length: int) -> int | None:
    """The sample, by its masked pieces at that length; None where there is one, or too many to choose from."""
    if len(samples) < 2:
        return None
    label = f"n at {length:,} tokens"
    return pickers.pick_one(
        "pieces", label, samples, format_func="{:,}".format, segmented=True, optional=True, report=False
    )


def _beside(chosen: Run, masking: str, sample: int | None, run: Run) -> pd.DataFrame:
    """The curves of a run in an overlay: the sample that was picked for the chosen run, of another its own first."""
    return _curves(run, masking, sample if run == chosen else None)


def _curves(run: Run, masking: str, sample: int | None) -> pd.DataFrame:
    curves, baseline = charts.curves_of(results.measures(run), masking, sample), _baseline(run)
    return curves.assign(baseline=baseline[1]) if baseline else curves


def _baseline(run: Run) -> tuple[str, float] | None:
    found = results.most_frequent_piece(run)
    return (f"always “{style.plain(found[0])}”", found[1]) if found else None
