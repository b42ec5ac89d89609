"""Overview: animated tiles of a model's development, three findings of the paper, training curves, folded details."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from app import figures, notices, permalink, pickers, results, widgets
from app.components.growth import growth
from app.tables import show_wrapped
from app.view import View
from app.views import card
from embryo_core.browser.growth import TILES
from embryo_core.curves.phases import loss_of_words
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.figures import coverage, ngrams, overview, positions
from embryo_core.figures.findings import verdict_name
from embryo_core.figures.growth import LEADING, PAPER_URL, leading
from embryo_core.figures.markdown import literal
from embryo_core.types import Run
from embryo_core.words import quantity as amount

MAX_FAULTS = 20  # faults listed on the page; `embryo_core audit` lists all


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Overview")
    _show_growth(view)
    _show_findings(view)
    _show_audit(view.run)
    quantities = overview.logged_quantities(view.run)
    first_quantities, other_quantities = quantities[:2], quantities[2:]
    log = overview.training_log(view.run)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        with suppress(FigureError):
            notices.show_headline(figures.draw(view, overview.training_curve, quantity=loss_of_words(log)).headline)
        with pickers.options():
            pickers.pick_smoothing()
    _two_in_a_row(*[partial(_show_training_curve, view, name) for name in first_quantities])
    folds: dict[str, tuple[str, Callable[[], None]]] = {
        "card": ("Run card", lambda: card.show(view, log)),
        "objective": ("Other objectives", lambda: _show_other_objectives(view, other_quantities)),
        "ngrams": ("Distance from n-grams", lambda: _show_if_scored(view, ngrams.METRIC, ngrams.divergence)),
        "computed": ("What has been computed", lambda: _show_coverage(view)),
        "length": ("Accuracy by length and position", lambda: _show_accuracy_by_position(view)),
        **{
            name: (title, partial(_show_if_scored, view, positions.COSINE, positions.positions, metric=metric))
            for name, (metric, title) in zip(("embeddings", "similarity"), positions.TITLES.items(), strict=True)
        },
        "phases": ("Phases", lambda: _show_phases(view)),
    }
    with st.container(gap="xsmall"):
        for name, (title, draw) in folds.items():
            pickers.fold(name, title, draw)


# === Animated tiles ===


def _show_growth(view: View) -> None:
    """Draw a sentence on what there is to watch, and the animated tiles."""
    watch, model = results.introduce_run(view.run)
    with st.container(key="watch"):
        st.markdown(f"**{literal(watch)}** ([Chiang, Huang and Lee, 2020]({PAPER_URL})). {literal(model)}")
    with notices.explaining():
        payload, links = results.growth(view.run, view.scale)
        if links:
            growth(payload, lambda tile: permalink.open_page(TILES[tile], **links.get(tile, {})))


def _show_findings(view: View) -> None:
    """Draw three findings of the paper, each with the run's verdict, its meaning and a link to the Findings page."""
    with suppress(EmbryoError), st.container(gap=None, key="leading_findings"):
        for judgement in leading(results.judgements(view.run, tuple(LEADING))):
            name, verdict = judgement.finding.name, verdict_name(judgement.verdict).capitalize()
            label = f"**{judgement.finding.claim}** *{verdict}.* {LEADING[name]}"
            options: dict[str, Any] = {
                "on_click": permalink.open_page,
                "args": ("findings",),
                "kwargs": {"finding": name},
            }
            st.button(label, key=name, type="tertiary", **options)


# === Figures ===


def _two_in_a_row(*sections: Callable[[], None]) -> None:
    """Draw the sections in two columns, row by row; an odd last one has the whole width."""
    for start in range(0, len(sections), 2):
        pair = sections[start : start + 2]
        for column, section in zip(st.columns(len(pair), gap="large"), pair):
            with column:
                section()


def _show_training_curve(view: View, quantity: str) -> None:
    """Draw a logged quantity, or a notice if the log lacks it."""
    log, title = overview.training_log(view.run), overview.QUANTITIES[quantity].title
    if quantity in log:
        figures.plot(view, overview.training_curve, titled=True, quantity=quantity)
        return
    st.header(title, anchor=False)
    has = "has no training log, log.jsonl" if log.empty else f"has no {title.lower()} in its training log"
    notices.note(f"The run {has}.")


def _show_other_objectives(view: View, quantities: list[str]) -> None:
    """Draw the curves of the objectives other than predicting words, each for the runs that were trained on it."""
    if not quantities:
        st.caption(literal(f"{view.run.name} was trained on words alone, and on no objective of sentence pairs."))
    sections = []
    for name in quantities:
        has_objective = {run: name in overview.training_log(run) for run in view.compared_runs}
        for run in (run for run, is_trained in has_objective.items() if not is_trained):
            quantity = overview.QUANTITIES[name].title.lower()
            st.caption(literal(f"{run.name} was not trained on this objective and has no {quantity}."))
        with_objective = replace(
            view, compared_runs=tuple(run for run, is_trained in has_objective.items() if is_trained)
        )
        sections.append(partial(_show_training_curve, with_objective, name))
    _two_in_a_row(*sections)


def _show_if_scored(view: View, metric: str, make: Callable[..., Any], /, **options: Any) -> None:
    """Draw a figure of a metric, or a note that it has not been computed."""
    if results.scores(view.run, metric).empty:
        st.caption(literal(f"This metric has not been computed for '{view.run.name}'."))
        return
    figures.plot(view, make, titled=True, **options)


def _show_accuracy_by_position(view: View) -> None:
    """Draw held-out accuracy by length and position for one way of masking, or a note if the log lacks it."""
    measures = positions.measure_table(view.run)
    if measures.empty:
        st.caption("The log of this run has no accuracies by length and position.")
        return
    header, names = st.container(), {name: positions.MASKINGS.get(name, name) for name in positions.maskings(measures)}
    with st.container(horizontal=True):
        masking = pickers.pick_one("masking", "Masked", names, segmented=True, optional=True)
        sample = _pick_sample(positions.samples(measures, masking), measures["length"].min())
    figure = figures.draw(view, positions.accuracy_by_position, masking=masking, sample=sample)
    header.header(literal(figure.title), anchor=False)  # above the pickers, on which the title depends
    figures.show(figure)


def _pick_sample(samples: list[int], length: int) -> int | None:
    """Pick a sample, named by its number of masked pieces at `length` tokens; return None if there is only one."""
    if len(samples) < 2:
        return None
    names = {sample: f"{sample:,}" for sample in samples}
    return pickers.pick_one("pieces", f"n at {length:,} tokens", names, segmented=True, optional=True, report=False)


def _show_coverage(view: View) -> None:
    """Draw which results exist, and the command that computes the missing ones."""
    capabilities = results.capabilities(view.run)
    if not figures.plot(view, coverage.coverage, capabilities=capabilities):
        return
    if missing := coverage.missing_metrics(view.run, capabilities):
        st.code(coverage.evaluate_command(view.run, missing), "bash", wrap_lines=True)


def _show_phases(view: View) -> None:
    """Draw the table of training phases and their changes."""
    table, caption = results.phase_changes(view.run)
    if len(table):
        show_wrapped(table, "Phases", "phases")
    notices.show_caption(caption)


# === Faults ===


def _show_audit(run: Run) -> None:
    """List the faults that the last audit found; draw nothing without an audit or without faults."""
    try:
        audit = results.audit(run)
    except EmbryoError as error:
        notices.warn(error)
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
