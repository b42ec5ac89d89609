"""The lens on the Query page: what each layer would answer at each step, one cell pinned with its ten best words."""

import re
from dataclasses import replace

import streamlit as st

from app import figures, permalink, widgets
from app.captions import query as captions
from app.charts import lens as charts
from app.views import query_answers
from app.views.query_answers import TOGETHER, Answers
from app.views.query_step import show_question
from app.widgets import View
from embryo_core.query.lens import Lens


def show(found: list[Answers]) -> None:
    """Draw the lens of each question."""
    st.subheader("Lens", anchor=False)
    if any(answers.mask == TOGETHER for answers in found):
        st.info("Choose one mask above to see what each layer would put in its place.", icon=":material/layers:")
        return
    for place, answers in enumerate(found, start=1):
        if len(found) > 1:
            show_question(answers)
        with widgets.explaining():
            _show_one(answers, place)


def _show_one(answers: Answers, place: int) -> None:
    asked, name = answers.asked, answers.file_name("lens", place)
    found = query_answers.by_layer(asked, answers.mask)
    pin = _pinned(found, asked.view)
    table = query_answers.lens_table(found)
    left, right = st.columns([3, 1], gap="medium")
    with left:
        figure = charts.grid(table, asked.view.axis, pin if permalink.get("pin") else None, answers.pieces)
        roles = list(answers.pieces.values())
        caption = captions.lens(asked.view.run.name, len(found.steps), roles, first=place == 1)
        title = f"Each layer's answer: {asked.text}"
        figures.show(figure, table, name, caption, title, asked.view, on_point=_pin)
    with right:
        _show_pinned(found, pin, name)


def _pin(layer: int, step: int) -> None:
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
