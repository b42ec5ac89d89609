"""The lens on the Query page: what each layer would answer at each step, one cell pinned with its ten best words."""

import re
from dataclasses import replace

import streamlit as st

from app import permalink, widgets
from app.charts import lens as charts
from app.views import query_answers
from app.views.query_answers import TRACKED, TRUE_OBJECT, Answers
from app.widgets import View
from embryo_core.query.lens import Lens

WHAT = (
    "The word that each layer would put in the place of this [MASK] at each step: the model's own masked-word head, "
    "which was trained on the last layer alone, applied to every hidden state (layer 0: the embeddings). Other masks stay "
    "in place. Colour: the word's probability, on a square-root scale. Dotted: the chosen step. Click a cell to pin its "
    "ten best words."
)
OUTLINED = {TRUE_OBJECT: "orange: the true object", TRACKED: "pink: the tracked word"}  # as in charts/query.py


def show_lens(answers: Answers, name: str, first: bool) -> None:
    """Draw the grid and, beside it, the pinned cell; `name` names its files, and the first says what a lens is."""
    asked = answers.asked
    found = query_answers.by_layer(asked, answers.mask)
    pin = _pinned(found, asked.view)
    table = query_answers.lens_table(found)
    left, right = st.columns([3, 1], gap="medium")
    with left:
        marks = [f"Outlined in {OUTLINED[role]}." for role in answers.pieces.values()]
        of = f"Run '{widgets.literal(asked.view.run.name)}', {len(found.steps)} checkpoints, one text."
        caption = " ".join([WHAT if first else "As above.", *marks, of])
        figure = charts.grid(table, asked.view.axis, pin, answers.pieces)
        widgets.show_figure(figure, table, name, caption, on_point=_pin)
    with right:
        _show_pinned(found, pin, name)


def _pin(point: dict) -> None:
    layer, step = point["customdata"][:2]
    permalink.choose("pin", f"{layer}-{step}")


def _pinned(found: Lens, view: View) -> tuple[int, int]:
    """Layer and step of the pinned cell; without a pin, the last layer at the chosen step."""
    wanted = re.fullmatch(r"(\d{1,4})-(\d{1,18})", permalink.get("pin") or "")
    permalink.show("pin", wanted and wanted[0])
    layer, step = map(int, wanted.groups()) if wanted else (found.layers[-1], view.step)
    return min(layer, found.layers[-1]), replace(view, step=step).evaluated(found.steps)


def _show_pinned(found: Lens, pin: tuple[int, int], name: str) -> None:
    layer, step = pin
    where = f"Layer {layer}" if layer else "Embeddings"
    st.markdown(f"**{where} at step {step:,}**")
    ranking = query_answers.ranking(found.cells[found.steps.index(step)][layer])
    widgets.show_ranking(ranking, "piece", key=f"pinned_{name}", bars=False)
    if permalink.get("pin"):
        st.button(
            "Unpin", key=f"unpin_{name}", help="Follow the time bar again", on_click=permalink.choose, args=("pin", "")
        )
