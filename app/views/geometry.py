"""Geometry: how many dimensions the states of words fill in every layer, and in which shape."""

import streamlit as st

from app import figures, permalink, pickers, results, widgets
from embryo_core.figures import geometry
from embryo_core.figures.geometry import MEASURES, METRIC
from embryo_core.words import layer_name


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Geometry", lambda run: results.evaluated(run, METRIC))
    ranks = results.geometry(view.run, "rank_me")
    if ranks.empty:
        widgets.stop_uncomputed(
            view.run, METRIC, f"The geometry of the states of run '{view.run.name}' has not been measured yet."
        )
    widgets.show_headline(geometry.headline(ranks, view.run.step_unit))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        known = [name for name in MEASURES if not results.geometry(view.run, name).empty]
        measure = pickers.pick_one(
            "measure", "Measure", known, format_func=lambda name: MEASURES[name].label, width=260
        )
        numbers = sorted(set(ranks["layer"]))
        layer = pickers.pick_one("states", "Layer", numbers, numbers[-1], layer_name, width=160)
        pickers.pick_smoothing()
    bold = None if view.compared_runs else layer
    figure = figures.draw(view, geometry.layers, measure=measure, bold=bold)
    st.header(figure.title, anchor=False)
    figures.show(figure, on_point=_choose_cell)
    figures.show(figures.draw(view, geometry.heat_map, measure=measure, layer=layer), on_point=_choose_cell)


def _choose_cell(layer: int, step: int) -> None:
    permalink.choose("states", layer)
    permalink.choose("step", step)
