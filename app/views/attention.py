"""Attention: how heads form, what they do, and how they read a sentence, step by step (Section 4, Figure 4)."""

from contextlib import suppress

from app import curve_reads, pickers, results, widgets
from app.view import View
from app.views import attention_layers, attention_maps, head_behaviour, sentence
from embryo_core.errors import EmbryoError
from embryo_core.figures.captions import openings
from embryo_core.figures.patterns import PATTERNS

SECTIONS = {
    "maps": ("Averaged maps", attention_maps.show),
    "layers": ("Layers × steps", attention_layers.show),
    "heads": ("What a head does", head_behaviour.show),
    "sentence": ("Your sentence", sentence.show),
}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Attention", results.default_scale_of_heads)
    _open(view)
    section = pickers.pick_one(
        "section",
        "Section",
        list(SECTIONS),
        format_func=lambda name: SECTIONS[name][0],
        segmented=True,
        label_visibility="collapsed",
    )
    SECTIONS[section][1](view)


def _open(view: View) -> None:
    """The sentence on the head that shows a pattern most clearly."""
    with suppress(EmbryoError):  # what cannot be read is named below
        what, layer, head = results.strongest_head(view.run)
        curve = curve_reads.head_curve(view.run, what, layer, head)
        if not curve.empty:
            named = PATTERNS[what].label, PATTERNS[what].axis
            widgets.show_opening(openings.attention(curve, *named, view.run.step_unit))
