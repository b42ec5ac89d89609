"""Overview: what the run is, how its losses and accuracies went, and what has been computed of it."""

import pandas as pd
import streamlit as st

from app import figures, overlays, results, widgets
from app.captions import overview as captions
from app.charts import overview as charts
from app.charts import style
from app.charts.smoothing import with_smoothed
from app.view import View
from app.views import audit, card, coverage, ngrams
from embryo_core.types import Run

# Quantity of the log: heading, axis, what is counted, in words and in the log, what the caption says.
WORDS = {
    "masked_lm_loss": (
        "Masked-word loss",
        "loss (nats per masked piece)",
        ("masked pieces", "n_masked"),
        "Cross-entropy of the masked pieces.",
    ),
    "masked_lm_accuracy": (
        "Masked-word accuracy",
        "accuracy (masked pieces)",
        ("masked pieces", "n_masked"),
        "Share of masked pieces predicted exactly. Dashed: always the training text's most frequent word.",
    ),
}
SECOND = {  # a run's second objective is one of these, or it has none
    "sentence_order_accuracy": (
        "Sentence-order accuracy",
        "accuracy (sentence pairs)",
        ("sentence pairs", "n_sequences"),
        "Swapped or not; chance is 50 %.",
    ),
    "next_sentence_accuracy": (
        "Next-sentence accuracy",
        "accuracy (sentence pairs)",
        ("sentence pairs", "n_sequences"),
        "From the same place in the text or from another document; chance is 50 %.",
    ),
    "replaced_token_accuracy": (
        "Replaced-token accuracy",
        "accuracy (tokens)",
        ("tokens", "n_tokens"),
        "Replaced or not, of every token; to answer no each time is right for at least the share that is not masked.",
    ),
}
CURVES = WORDS | SECOND
CHANCE = {"sentence_order_accuracy": ("chance", 0.5), "next_sentence_accuracy": ("chance", 0.5)}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Overview", results.usual_scale_of_log)
    log = results.log(view.run)
    widgets.show_caption(captions.EMBRYO)
    card.show(view, log)
    audit.show(view.run)
    widgets.pick_smoothing()
    columns = [place for _ in range(2) for place in st.columns(2, gap="large")]
    second = [quantity for quantity in SECOND if quantity in log]
    for place, quantity in zip(columns, [*WORDS, *second[:1]]):
        with place:
            _training_curve(view, log, quantity)
    with columns[len(WORDS) + len(second[:1])]:
        ngrams.show(view)
        coverage.show_missing(view)


def _training_curve(view: View, log: pd.DataFrame, quantity: str) -> None:
    title, unit, (counted, n), about = CURVES[quantity]
    st.header(title, anchor=False)
    if log.empty or quantity not in log:
        st.info(f"The run's log.jsonl holds no {quantity} yet.", icon=":material/info:")
        return
    measured = _measured(log, quantity, n)
    name = f"{view.run.name}-{quantity}"
    if view.beside:
        curves = charts.overlay_curves(quantity, unit)
        caption = captions.training_curve(about, counted, measured)
        overlays.show(view, lambda run: _measured(results.log(run), quantity, n), curves, name, caption, title)
        return
    data = with_smoothed(measured, quantity, view.smoothing, ["split"])
    figure = charts.training_curve(data, quantity, unit, view.axis, _baseline(view.run, quantity))
    caption = captions.training_curve(about, counted, data)
    figures.show(figure, data, name, caption, title, view)


def _baseline(run: Run, quantity: str) -> tuple[str, float] | None:
    """Name and value of what an accuracy has to be above, where that is known."""
    if quantity == "masked_lm_accuracy" and (found := results.most_frequent_piece(run)):
        word, share = found
        return f"always “{style.plain(word)}”", share
    return CHANCE.get(quantity)


def _measured(log: pd.DataFrame, quantity: str, n: str) -> pd.DataFrame:
    """One quantity of a log where it was measured: split, step, the quantity, n; empty where it never was."""
    if quantity not in log:
        return pd.DataFrame(columns=["split", "step", quantity, "n"])
    counts = log[n] if n in log else pd.Series(pd.NA, log.index)
    return log[["split", "step", quantity]].assign(n=counts)[log[quantity].notna()]
