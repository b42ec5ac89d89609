"""Geometry: the dimension, shape and similarity of the states of words, layer by layer."""

import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.view import View
from embryo_core.figures import geometry, similarity
from embryo_core.figures.geometry import MEASURES, METRIC
from embryo_core.words import layer_name

LAST = "last step"  # choice of the last step, also its value in the URL


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Geometry", lambda run: results.evaluated_steps(run, METRIC), phases=results.state_phases)
    ranks = results.geometry(view.run, "rank_me")
    if ranks.empty:
        widgets.stop_uncomputed(
            view.run, METRIC, f"The geometry of the states of run '{view.run.name}' has not been measured yet."
        )
    widgets.show_headline(geometry.headline(ranks, view.axis))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        labels = {name: one.label for name, one in MEASURES.items() if not results.geometry(view.run, name).empty}
        measure = pickers.pick_one("measure", "Measure", labels, width=260)
        to = _pick_step(view) if measure == "cka_step" else None
        numbers = sorted(set(ranks["layer"]))
        layer = pickers.pick_one("states", "Layer", numbers, numbers[-1], layer_name, width=160)
        pickers.pick_smoothing()
    bold = None if view.compared_runs else layer
    figure = figures.draw(view, geometry.layers, measure=measure, bold=bold, to=to)
    figures.show(figure, on_point=_choose_cell, titled=True)
    figures.show(figures.draw(view, geometry.heat_map, measure=measure, layer=layer, to=to), on_point=_choose_cell)
    for run in view.drawn_runs[1:]:
        figures.show_or_explain(view, similarity.between, _choose_cell, titled=True, other=run.name)


def _pick_step(view: View) -> int | None:
    """Pick the step with which all steps are compared; return None for the last."""
    names = {LAST: LAST} | {step: f"{step:,}" for step in similarity.steps(view.run)}
    wanted = pickers.pick_one("to", "Compared with", names, optional=True, width=150)
    return None if wanted == LAST else wanted


def _choose_cell(layer: int, step: int) -> None:
    permalink.choose_all(states=layer, step=step)
