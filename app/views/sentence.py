"""Your sentence: attention in the reader's own text, of all heads at one step (bertviz) and of one head over steps."""

from dataclasses import replace

import numpy as np
import streamlit as st

from app import notices, permalink, pickers, results, widgets
from app.caching import cached
from app.components.frame import frame
from app.question_queue import in_turn
from app.view import View
from app.views.attention_maps import show_head
from embryo_core import runs
from embryo_core.browser.head_maps import MAX_MAPS
from embryo_core.curves.step_scales import SCALES, log_spaced
from embryo_core.figures import attention as figures
from embryo_core.query import cost, sentence
from embryo_core.query.sentence import SentenceAttention, SentenceHistory
from embryo_core.share import HeadHistory, bertviz
from embryo_core.types import Run

EXAMPLE = "The cat that the dogs chased sat on the mat ."
VIEWS = {"head": "Head view", "model": "Model view"}
MAX_PIECES = 128  # limit for bertviz, which draws a line for each pair of pieces and each head
MAX_DRAWN_LINES = 100_000  # lines of the model view's default layers; the reader may choose more layers
COMMAND = "make app"  # suggested for a question above the budget of a hosted demo


def show(view: View) -> None:
    """Draw the section."""
    notices.require(view.run, {"attentions"})
    view = widgets.at_weights(view, "this attention is that of")
    text = pickers.pick_text("sentence", "Your sentence", EXAMPLE, help="Any text; it may hold [MASK].")
    view_name = pickers.pick_one("heads", "View", VIEWS, segmented=True)
    with notices.explaining():
        attention = _attention(view.run, view.step, text)
        left, right = st.columns([2, 3], gap="large") if view_name == "head" else (st.container(), st.container())
        with left:
            _show_bertviz(view, view_name, attention)
        with right, notices.explaining():
            _show_over_steps(view, text, attention)


# === At the chosen step, by bertviz ===


def _show_bertviz(view: View, view_name: str, attention: SentenceAttention) -> None:
    """Draw all heads of the chosen layers at the chosen step with bertviz, or a notice if the text is too long."""
    st.header(f"All heads at {view.name_step(view.step)}", anchor=False)
    layers, heads, size, _ = attention.weights.shape
    if size > MAX_PIECES:
        notices.note(f"The text is {size} pieces long; bertviz draws at most {MAX_PIECES}. Shorten it.")
        return
    numbers = [str(layer) for layer in range(1, layers + 1)]
    default_count = min(layers, max(1, MAX_DRAWN_LINES // (heads * size**2))) if view_name == "model" else layers
    selected_layers = [
        int(n) for n in pickers.pick_many("layers", "Layers", numbers, default=numbers[:default_count], pills=True)
    ]
    if not selected_layers:
        notices.note("Choose a layer.")
        return
    dark = st.context.theme.type == "dark"
    if view_name == "head":
        requested = permalink.get("layer")
        begin = int(requested) if requested and requested in map(str, selected_layers) else selected_layers[0]
        page = bertviz.head_view(attention.weights, attention.pieces, selected_layers, begin, dark)
    else:
        page = bertviz.model_view(attention.weights, attention.pieces, selected_layers, dark)
    frame(page.html, page.height, f"bertviz, {VIEWS[view_name].lower()}", key=f"bertviz_{view_name}")
    step_name = view.name_step(view.step)
    notices.show_caption(
        figures.describe_sentence(view_name, view.run, step_name, size, selected_layers, layers, default_count)
    )


@cached(runs.checkpoints_digest, 4, "Reading your sentence; the first time also loads the model library …")
def _attention(run: Run, step: int, text: str) -> SentenceAttention:
    return in_turn(cost.attend_seconds(run, text), COMMAND, lambda: sentence.attend(run, text, step))


# === Over the steps ===


def _show_over_steps(view: View, text: str, attention: SentenceAttention) -> None:
    """Pick a head and draw its attention over the steps; `attention` has the weights at the chosen step."""
    st.header("One head, step by step", anchor=False)
    layers, heads, size, _ = attention.weights.shape
    with pickers.row():
        layer, head = pickers.pick_head(layers, heads, results.default_head(view.run)[1:])
        scale = pickers.pick_one("colours", "Colours", SCALES, segmented=True)
    over_steps = _with_step(_history(view.run, text, layer, head), view.step, attention.weights[layer - 1, head - 1])
    notices.show_problems(view.run, over_steps.skipped)
    run, note = view.run, f"Attention weights on one sentence of {size} pieces"
    data = over_steps.steps, over_steps.weights, over_steps.pieces
    history = HeadHistory(run.name, layer, head, note, *data, step_unit=run.step_unit)
    total = len(view.loadable) if len(view.loadable) > MAX_MAPS else len(over_steps.steps)
    show_head(view, history, scale, figures.describe_sentence_head(run, history, total))


@cached(runs.checkpoints_digest, 16, "Reading your sentence over the steps …")
def _history(run: Run, text: str, layer: int, head: int) -> SentenceHistory:
    """Return the attention of one head at every step with weights, or at log-spaced ones of a long series."""
    steps_with_weights = [checkpoint.step for checkpoint in runs.loadable_checkpoints(run)]
    # None asks all steps, so that a message names those without weights
    steps = log_spaced(steps_with_weights, MAX_MAPS) if len(steps_with_weights) > MAX_MAPS else None
    seconds = cost.attend_seconds(run, text) * len(steps or steps_with_weights)
    return in_turn(seconds, COMMAND, lambda: sentence.attend_over_steps(run, text, layer, head, steps))


def _with_step(history: SentenceHistory, step: int, weights: np.ndarray) -> SentenceHistory:
    """Return the history with the weights [L, L] of one more step, if it lacks that step."""
    if step in history.steps:
        return history
    i = np.searchsorted(history.steps, step)
    steps, weights = np.insert(history.steps, i, step), np.insert(history.weights, i, weights, axis=0)
    return replace(history, steps=steps, weights=weights)
