"""Overview: what the run is, how its losses and accuracies went, and what has been computed of it."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pandas as pd
import streamlit as st

from app import figures, overlays, permalink, pickers, results, widgets
from app.view import View
from app.views import audit, card, coverage, measures, ngrams, phases, positions
from embryo_core.errors import EmbryoError
from embryo_core.figures import overview as charts
from embryo_core.figures import style
from embryo_core.figures.captions import openings
from embryo_core.figures.captions import overview as captions
from embryo_core.figures.findings import named
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.findings import Judgement
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
OTHERS = {  # a run's second objective is one of three, or it has none
    "loss": (
        "Total loss",
        "loss (nats)",
        ("masked pieces, and the pairs of sentences or tokens of the other objective", "n_masked"),
        "",  # see captions.total_loss
    ),
    "sentence_order_loss": (
        "Sentence-order loss",
        "loss (nats per pair)",
        ("sentence pairs", "n_sequences"),
        "Cross-entropy of telling swapped sentences from ordered ones; chance is 0.69.",
    ),
    "sentence_order_accuracy": (
        "Sentence-order accuracy",
        "accuracy (sentence pairs)",
        ("sentence pairs", "n_sequences"),
        "Share of sentence pairs correctly called swapped or ordered; chance is 50 %.",
    ),
    "next_sentence_accuracy": (
        "Next-sentence accuracy",
        "accuracy (sentence pairs)",
        ("sentence pairs", "n_sequences"),
        "Share of sentence pairs correctly called consecutive or not; chance is 50 %.",
    ),
    "replaced_token_accuracy": (
        "Replaced-token accuracy",
        "accuracy (tokens)",
        ("tokens", "replaced_token_n"),
        (
            "Share of tokens correctly called replaced or original; “original” is right for at least those not masked. "
            "Dashed, where the log has it: always “original”."
        ),
    ),
}
CURVES = WORDS | OTHERS
LEADING = ("reconstruction_before_prediction", "syntax_and_semantics", "knowledge_fluctuates")  # need scores alone
CHANCE = {"sentence_order_accuracy": ("chance", 0.5), "next_sentence_accuracy": ("chance", 0.5)}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Overview", results.default_scale_of_log)
    log = results.log(view.run)
    widgets.show_opening(openings.overview(log, results.phases(view.run), view.run.step_unit))
    st.markdown(captions.EMBRYO)
    _findings(view)
    card.show(view, log)
    audit.show(view.run)
    pickers.pick_smoothing()
    quantities = [*WORDS, *(quantity for quantity in OTHERS if quantity in log)]
    sections = [partial(_training_curve, view, log, quantity) for quantity in quantities]
    if ngrams.computed(view.run):
        sections.append(partial(ngrams.show, view))
    _two_in_a_row(*sections, partial(coverage.show_missing, view))
    measures.show(view)
    positions.show(view)
    with widgets.explaining():
        phases.show(view)


def _two_in_a_row(*sections: Callable[[], None]) -> None:
    """Draw the sections in two columns, row by row; one that is left over has the whole width."""
    for first in range(0, len(sections), 2):
        pair = sections[first : first + 2]
        for column, section in zip(st.columns(len(pair), gap="large"), pair):
            with column:
                section()


def _findings(view: View) -> None:
    """Three findings of the paper with what the run says, each a link to it on the Findings page."""
    with suppress(EmbryoError), st.container(gap=None, key="leading_findings"):
        st.markdown(captions.FINDINGS)
        for judgement in results.judgements(view.run, LEADING):
            words = f"{judgement.finding.claim} *{named(judgement.verdict).capitalize()}.*"
            arrow = ":material/arrow_forward:"
            st.button(
                words, key=judgement.finding.name, type="tertiary", icon=arrow, on_click=_lead, args=(judgement,)
            )


def _lead(judgement: Judgement) -> None:
    permalink.choose("finding", judgement.finding.name)
    permalink.lead_to("findings")


def _training_curve(view: View, log: pd.DataFrame, quantity: str) -> None:
    title, unit, (counted, n), about = CURVES[quantity]
    about = about or captions.total_loss(view.run.config)
    st.header(title, anchor=False)
    if log.empty or quantity not in log:
        has = "has no training log, log.jsonl" if log.empty else f"has no {title.lower()} in its training log"
        st.info(f"The run {has}.", icon=":material/info:")
        return
    measured = _above_baseline(view.run, log, quantity, n)
    name = f"{view.run.name}-{quantity}"
    if view.compared_runs:
        curves = charts.overlay_curves(quantity, unit)
        caption = captions.training_curve(about, counted, measured)
        read = partial(_read, quantity=quantity, n=n)
        overlays.show(view, read, curves, name, caption, title)
        return
    data = with_smoothed(measured, quantity, view.smoothing, ["split"])
    figure = figures.drawn(
        charts.training_curve, data, quantity, unit, view.axis, _baseline(view.run, quantity)
    )
    caption = captions.training_curve(about, counted, data)
    figures.show_plot(figure, data, name, caption, title, view)


def _read(run: Run, quantity: str, n: str) -> pd.DataFrame:
    return _above_baseline(run, results.log(run), quantity, n)


def _above_baseline(run: Run, log: pd.DataFrame, quantity: str, n: str) -> pd.DataFrame:
    """`_measured` in the log of a run, with the column baseline where there is one."""
    measured, baseline = _measured(log, quantity, n), _baseline(run, quantity)
    if baseline:
        return measured.assign(baseline=baseline[1])
    logged = f"{quantity.removesuffix('_accuracy')}_baseline"  # at each held-out measure
    return measured.assign(baseline=log[logged]) if logged in log else measured


def _baseline(run: Run, quantity: str) -> tuple[str, float] | None:
    """Name and value of an accuracy's baseline, where that is known."""
    if quantity == "masked_lm_accuracy" and (found := results.most_frequent_piece(run)):
        word, share = found
        return f"always “{style.plain(word)}”", share
    return CHANCE.get(quantity)


def _measured(log: pd.DataFrame, quantity: str, n: str) -> pd.DataFrame:
    """One quantity of a log where it was measured: split, step, the quantity, n; empty where it never was."""
    if quantity not in log:
        return pd.DataFrame(columns=["split", "step", quantity, "n"])
    counts = log[n] if n in log else _in_measures(log, n)
    return log[["split", "step", quantity]].assign(n=counts)[log[quantity].notna()]


def _in_measures(log: pd.DataFrame, n: str) -> pd.Series:
    """A count that held-out rows have in their first measure alone, whose numbers are the row's own."""
    if "measures" not in log:
        return pd.Series(pd.NA, log.index)
    firsts = (one[0] if isinstance(one, list) and one else None for one in log["measures"])
    counts = (first.get(n) if isinstance(first, dict) else None for first in firsts)
    return pd.Series([count if isinstance(count, int) else pd.NA for count in counts], log.index)
