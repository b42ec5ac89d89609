"""The lens on the Query page: what each layer would answer at each step, one cell pinned with its ten best words."""

import re
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import figures, permalink, pickers, widgets
from app.tables import show_ranking
from app.view import View
from app.views import query_answers
from app.views.query_answers import TOGETHER, Answers
from app.views.query_step import show_question
from embryo_core.figures import lens as charts
from embryo_core.figures.captions import query as captions
from embryo_core.figures.captions.networks import MASKED_WORDS, network
from embryo_core.query.lens import Lens
from embryo_core.words import step_name


def show(found: list[Answers]) -> None:
    """Draw the lens of each question."""
    st.header("Lens", anchor=False)
    if any(answers.mask == TOGETHER for answers in found):
        st.info("Choose one mask above to see what each layer would put there.", icon=":material/layers:")
        return
    show_first = pickers.pick_switch("first_steps", "First steps, where no word reaches 10 %", optional=True)
    permalink.show("pin", permalink.get("pin") or None)
    for number, answers in enumerate(found, start=1):
        if len(found) > 1:
            show_question(answers)
        with widgets.explaining():
            _show_one(answers, number, show_first)


def _show_one(answers: Answers, number: int, show_first: bool) -> None:
    asked, name = answers.asked, answers.file_name("lens", number)
    found = query_answers.by_layer(asked.view.run, asked.text, answers.mask)
    others = len(found.steps) + len(found.skipped) < len(asked.view.loadable)
    table = query_answers.lens_table(found)
    steps = asked.view.loadable if others else found.steps
    pin = _pinned(found.layers, steps, asked.view)
    if number == 1:
        _tell_unknown(pin, asked.view)
    left, right = st.columns([5, 1], gap="medium")
    with right:
        _pick_pin(pin, found.layers, steps, name, step_name(asked.view.run.step_unit).capitalize())
        with widgets.explaining():
            _show_pinned(answers, found, pin, name)
    with left:
        folded = [] if show_first else charts.noise(table)
        pinned = pin if permalink.get("pin") and pin[1] in found.steps else None
        folded = [] if pin[1] in folded else folded
        figure = figures.drawn(charts.grid, table, asked.view.axis, pinned, answers.pieces, folded)
        roles = list(answers.pieces.values())
        total = len(asked.view.loadable) if others else len(found.steps)
        shown = len(found.steps), total, roles, number == 1, len(folded)
        caption = captions.lens(asked.view.run.name, *shown, answers.which)
        caption += network([asked.view.run], MASKED_WORDS)
        title = f"Each layer's answer: {asked.text}{answers.which}"
        st.html(charts.colour_scale())
        saved = answers.asked_of(table)
        figures.show_plot(figure, saved, name, caption, title, asked.view, on_point=_pin, own_width=True)


def _pin(layer: int, step: int) -> None:
    permalink.choose("pin", f"{layer}-{step}")


def _pinned(layers: Sequence[int], steps: Sequence[int], view: View) -> tuple[int, int]:
    """Layer and step of the pinned cell; without a pin, the last layer at the chosen step."""
    wanted = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,18})", permalink.get("pin") or "")
    layer, step = map(int, wanted.groups()) if wanted else (layers[-1], view.step)
    return min(layer, layers[-1]), replace(view, step=step).evaluated(steps)


def _tell_unknown(pin: tuple[int, int], view: View) -> None:
    """Say where a link pins a cell that is not in the grid; the cell shown instead is `pin`."""
    wanted = permalink.get("pin")
    if wanted and wanted != f"{pin[0]}-{pin[1]}":
        pickers.tell_unknown("pin", [wanted], _cell_name(view, *pin))


def _pick_pin(pin: tuple[int, int], layers: Sequence[int], steps: Sequence[int], name: str, label: str) -> None:
    """Boxes for the layer and the step of the pinned cell, which a click in the grid sets as well."""
    boxes = zip((f"pin_layer_{name}", f"pin_step_{name}"), pin)
    keys = [pickers.served(box, value) for box, value in boxes]

    def picked() -> None:
        chosen = tuple(st.session_state.get(key, value) for key, value in zip(keys, pin))
        if chosen != pin:
            _pin(*chosen)

    st.selectbox("Layer", [*reversed(layers)], key=keys[0], format_func=_layer_name, on_change=picked)
    st.selectbox(label, list(steps), key=keys[1], format_func="{:,}".format, on_change=picked)
    if permalink.get("pin"):
        st.button(
            "Unpin", key=f"unpin_{name}", help="Follow the time bar again", on_click=permalink.choose, args=("pin", "")
        )


def _layer_name(layer: int) -> str:
    return f"Layer {layer}" if layer else "Embeddings"


def _cell_name(view: View, layer: int, step: int) -> str:
    return f"{_layer_name(layer)} at {view.point(step)}"


def _show_pinned(answers: Answers, found: Lens, pin: tuple[int, int], name: str) -> None:
    layer, step = pin
    st.markdown(f"**{_cell_name(answers.asked.view, layer, step)}**")
    if step in found.steps:
        layers = found.cells[found.steps.index(step)]
    else:
        layers = query_answers.layers_at(answers.asked.view.run, answers.asked.text, answers.mask, step)
    ranking = query_answers.ranking(layers[layer])
    show_ranking(ranking, "piece", key=f"pinned_{name}", bars=False)
