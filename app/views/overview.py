"""Overview: what the run is, how its losses and accuracies developed, and what has been computed."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.view import View
from app.views import card
from embryo_core.curves.phases import loss_of_words
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.figures import ngrams, overview, positions
from embryo_core.figures.findings import verdict_name
from embryo_core.figures.markdown import literal
from embryo_core.findings import Judgement
from embryo_core.types import Run
from embryo_core.words import quantity as amount

ABOUT = (
    "This dashboard follows one language model through its pretraining. Drag the time bar above, or press play: "
    "every page then shows the model at that step. This page has its losses and accuracies, and the phases of training."
)
FINDINGS = "Findings of the paper (Chiang, Huang and Lee, 2020), tested on this run:"
LEADING = ("reconstruction_before_prediction", "syntax_and_semantics", "knowledge_fluctuates")  # need scores alone
MAX_FAULTS = 20  # that are listed; the command lists them all
MAX_COLUMN = 420  # pixels


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Overview", results.default_scale_of_log)
    log = overview.training_log(view.run)
    with suppress(FigureError):
        widgets.show_headline(figures.draw(view, overview.training_curve, quantity=loss_of_words(log)).headline)
    st.markdown(ABOUT)
    _show_findings(view)
    card.show(view, log)
    _show_audit(view.run)
    pickers.pick_smoothing()
    sections = [partial(_training_curve, view, name) for name in overview.logged_quantities(view.run)]
    if not results.scores(view.run, ngrams.METRIC).empty:
        sections.append(partial(_figure, view, ngrams.divergence))
    _two_in_a_row(*sections, partial(_coverage, view))
    _accuracy_by_position(view)
    if not results.scores(view.run, positions.COSINE).empty:
        _two_in_a_row(*(partial(_figure, view, positions.positions, metric=metric) for metric in positions.TITLES))
    with widgets.explaining():
        _phases(view)


def _two_in_a_row(*sections: Callable[[], None]) -> None:
    """Draw the sections in two columns, row by row; a last one without a partner has the whole width."""
    for first in range(0, len(sections), 2):
        pair = sections[first : first + 2]
        for column, section in zip(st.columns(len(pair), gap="large"), pair):
            with column:
                section()


def _figure(view: View, make: Callable[..., Any], **options: Any) -> None:
    figure = figures.draw(view, make, **options)
    st.header(figure.title, anchor=False)
    figures.show(figure)


def _training_curve(view: View, quantity: str) -> None:
    log, title = overview.training_log(view.run), overview.QUANTITIES[quantity].title
    if quantity in log:
        _figure(view, overview.training_curve, quantity=quantity)
        return
    st.header(title, anchor=False)
    has = "has no training log, log.jsonl" if log.empty else f"has no {title.lower()} in its training log"
    st.info(f"The run {has}.", icon=":material/info:")


def _accuracy_by_position(view: View) -> None:
    """Draw the accuracies by length and position for one way of masking; nothing if the log has none."""
    measures = positions.measures(view.run)
    if measures.empty:
        return
    place = st.container()
    with st.container(horizontal=True):
        masking = pickers.pick_one(
            "masking",
            "Masked",
            positions.maskings(measures),
            format_func=lambda name: positions.MASKINGS.get(name, name),
            segmented=True,
            optional=True,
        )
        sample = _pick_sample(positions.samples(measures, masking), measures["length"].min())
    figure = figures.draw(view, positions.accuracy_by_position, masking=masking, sample=sample)
    place.header(figure.title, anchor=False)
    figures.show(figure)


def _pick_sample(samples: list[int], length: int) -> int | None:
    """Return the sample, by its masked pieces at that length; None if there is nothing to choose."""
    if len(samples) < 2:
        return None
    label = f"n at {length:,} tokens"
    return pickers.pick_one(
        "pieces", label, samples, format_func="{:,}".format, segmented=True, optional=True, report=False
    )


def _coverage(view: View) -> None:
    """Draw what has been computed, with the command for the rest; nothing if all has been."""
    gives = results.given(view.run)
    with suppress(FigureError):
        _figure(view, overview.coverage, gives=gives)
        if missing := overview.missing_metrics(view.run, gives):
            st.code(overview.evaluate_command(view.run, missing), "bash", wrap_lines=True)


def _phases(view: View) -> None:
    st.header("Phases", anchor=False)
    table, caption = results.phase_changes(view.run)
    if len(table):
        longest = {name: max(len(name), table[name].astype(str).str.len().max()) for name in table}
        columns = {name: st.column_config.Column(width=int(min(MAX_COLUMN, 24 + 7 * n))) for name, n in longest.items()}
        st.dataframe(table, hide_index=True, height="content", key="phases", column_config=columns)
    widgets.show_caption(caption)


# === Findings and faults ===


def _show_findings(view: View) -> None:
    """Draw three findings of the paper with the run's verdict, each a link to the Findings page."""
    with suppress(EmbryoError), st.container(gap=None, key="leading_findings"):
        st.markdown(FINDINGS)
        for judgement in results.judgements(view.run, LEADING):
            words = f"{judgement.finding.claim} *{verdict_name(judgement.verdict).capitalize()}.*"
            arrow = ":material/arrow_forward:"
            name = judgement.finding.name
            st.button(words, key=name, type="tertiary", icon=arrow, on_click=_open_finding, args=(judgement,))


def _open_finding(judgement: Judgement) -> None:
    permalink.choose("finding", judgement.finding.name)
    permalink.lead_to("findings")


def _show_audit(run: Run) -> None:
    """Draw what the last audit found; nothing if there was none, or if it found no fault."""
    try:
        audit = results.audit(run)
    except EmbryoError as error:
        st.warning(literal(str(error)), icon=":material/warning:")
        return
    if not audit or not audit.faults:
        return
    count = len(audit.faults)
    title = f"The audit found {amount(count, 'fault')} in this run's checkpoints; curves break there."
    with st.expander(title, icon=":material/warning:"):
        lines = [f"- {literal(fault.what)}" for fault in audit.faults[:MAX_FAULTS]]
        st.markdown("\n".join([*lines, f"- … and {count - MAX_FAULTS:,} more"] if count > MAX_FAULTS else lines))
        st.caption("To repeat the audit and list all faults:")
        st.code(f"python -m embryo_core audit {run.name}", "bash", wrap_lines=True)
