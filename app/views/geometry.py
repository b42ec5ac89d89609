"""Geometry: the dimension, shape and similarity of the states of words, layer by layer."""

from typing import Any

from app import figures, notices, permalink, pickers, results, widgets
from app.view import View
from embryo_core.figures import geometry, similarity
from embryo_core.figures.geometry import MEASURES, METRIC
from embryo_core.words import layer_name

LAST_CHOICE = "last step"  # choice of the last step, also its value in the URL


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page(
        "Geometry", lambda run: results.evaluated_steps(run, METRIC), phases=results.rank_stretches
    )
    ranks = results.geometry(view.run, "rank_me")
    if ranks.empty:
        notices.stop_uncomputed(
            view.run, METRIC, f"The geometry of the states of run '{view.run.name}' has not been measured yet."
        )
    notices.show_headline(geometry.headline(ranks, view.axis))
    with pickers.row():
        labels = {name: MEASURES[name].label for name in results.measures(view.run)}
        measure = pickers.pick_one("measure", "Measure", labels, width=260)
        reference_step = _pick_step(view) if measure == "cka_step" else None
        layer_numbers = sorted(set(ranks["layer"]))
        layer = pickers.pick_one("states", "Layer", layer_numbers, layer_numbers[-1], layer_name, width=160)
        pickers.pick_smoothing()
    highlighted = None if len(view.drawn_runs) > 1 else layer
    options: dict[str, Any] = {"measure": measure, "to": reference_step}
    figures.plot(view, geometry.layers, _choose_cell, titled=True, **options, bold=highlighted)
    figures.plot(view, geometry.heat_map, _choose_cell, **options, layer=layer)
    for run in view.drawn_runs[1:]:
        figures.plot(view, similarity.between, _choose_cell, titled=True, other=run.name)


def _pick_step(view: View) -> int | None:
    """Pick the step with which all steps are compared; return None for the last."""
    names = {LAST_CHOICE: LAST_CHOICE} | {step: f"{step:,}" for step in similarity.steps(view.run)}
    choice = pickers.pick_one("to", "Compared with", names, optional=True, width=150)
    return None if choice == LAST_CHOICE else choice


def _choose_cell(layer: int, step: int) -> None:
    permalink.choose_all(states=layer, step=step)
