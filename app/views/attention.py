"""Attention: how heads form, what they do, and how they attend in a sentence, step by step (Section 4, Figure 4)."""

from contextlib import suppress

import streamlit as st

from app import figures, maps, notices, permalink, pickers, results, widgets
from app.view import View
from app.views import attention_maps, head_behaviour, sentence
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.figures import attention_layers
from embryo_core.figures.head_behaviour import headline
from embryo_core.figures.markdown import literal


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Attention", lambda run: results.evaluated_steps(run, "attention"))
    with suppress(EmbryoError):  # each section reports its own errors
        pattern, layer, head = results.strongest_head(view.run)
        notices.show_headline(headline(view.run, pattern, (layer, head), view.axis))
    titles = {name: title for name, (title, _) in SECTIONS.items()}
    section = pickers.pick_one("section", "Section", titles, segmented=True, label_visibility="collapsed")
    SECTIONS[section][1](view)


def show_layers(view: View) -> None:
    """Draw the section "Layers × steps" for the page's run and, below it, the first compared run."""
    steps = maps.map_steps(view.run)
    if not steps:
        attention_maps.stop_without_maps(view)
    _, _, default = results.default_head(view.run)
    with pickers.row():
        heads = maps.at_step(view.run, view.evaluated_step(steps)).shape[1]
        head = pickers.pick_number("head", heads, default)
        normalised = pickers.pick_switch(attention_maps.ROWS_SWITCH, "Rows sum to 1")
    for view_of_run in (view, *map(view.for_run, view.drawn_runs[1:2])):
        _show_layers_of(view_of_run, head, normalised)


def _show_layers_of(view: View, head: int, normalised: bool) -> None:
    """Draw a head in every layer over the steps of one run, or a notice if the run has no maps or no such head."""
    steps = maps.map_steps(view.run)
    st.header(literal(f"Head {head} of {view.run.name} in every layer"), anchor=False)
    if not steps:
        notices.note(f"Run '{view.run.name}' has no attention maps.")
        return
    options = {"head": head, "step": view.evaluated_step(steps), "normalised": normalised}
    try:
        figure = figures.draw(view, attention_layers.layers_over_steps, **options)
    except FigureError as error:
        notices.note(error)
        return
    st.html(attention_layers.colour_scale(figure))
    figures.show(figure, on_point=_open_map)


def _open_map(layer: int, step: int) -> None:
    permalink.choose_all(layer=layer, step=step, section="maps")


SECTIONS = {  # value in the URL -> title, and the function that draws the section
    "maps": ("Averaged maps", attention_maps.show),
    "layers": ("Layers × steps", show_layers),
    "heads": ("What a head does", head_behaviour.show),
    "sentence": ("Your sentence", sentence.show),
}
