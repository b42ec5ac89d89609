"""Texts of every page: headlines, captions, notices and errors, and messages that end the page."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from app import permalink, results
from embryo_core import runs
from embryo_core.errors import EmbryoError, QueryError, TooCostly
from embryo_core.figures.coverage import evaluate_command
from embryo_core.figures.figure import Caption
from embryo_core.figures.markdown import literal
from embryo_core.metrics import get_metrics
from embryo_core.types import Run

LACKING = {  # what models cannot do without a capability, as a part of a message
    "masked_words": "predict no masked words",
    "next_words": "predict no next words",
    "words": "predict no words",
    "replaced_tokens": "do not detect replaced tokens",
    "states": "do not output the states of their layers",
    "attentions": "do not output the attention weights of every head",
}


def stop(message: str, command: str = "") -> None:
    """Show one sentence and, if given, a command that solves the problem; end the page."""
    note(message)
    if command:
        st.code(command, language="bash", wrap_lines=True)
    permalink.publish()
    st.stop()


def stop_uncomputed(run: Run, metric: str, message: str) -> None:
    """End the page with a message and the command that computes a metric, or with why the run's models cannot."""
    (uncomputed_metric,) = get_metrics([metric])
    require(run, uncomputed_metric.needs)
    stop(message, evaluate_command(run, [metric]))


def require(run: Run, needs: Iterable[str]) -> None:
    """End the page if the run's models lack one of the capabilities `needs` (engine/capabilities.py)."""
    if lacking := sorted(set(needs) - results.capabilities(run)):
        lacking_text = " and ".join(LACKING[capability] for capability in lacking)
        stop(f"The models of run '{run.name}' {lacking_text}, which this page needs.")


def note(text: object) -> None:
    """Show a notice as plain text."""
    st.info(literal(str(text)), icon=":material/info:")


def warn(text: object) -> None:
    """Show a sentence or an error as a warning, in plain text."""
    st.warning(literal(str(text)), icon=":material/warning:")


def show_caption(caption: Caption | str, **appearance: Any) -> None:
    """Show the summary of a caption, and the rest of it behind an info mark, as plain text."""
    caption = Caption(caption) if isinstance(caption, str) else caption
    st.caption(literal(caption.summary), help=literal(caption.rest) or None, **appearance)


def show_headline(sentence: str) -> None:
    """Show the sentence that opens a page; nothing if it is empty."""
    if sentence:
        st.markdown(f"**{literal(sentence)}**", width="stretch")


def show_problems(run: Run, sentences: Iterable[str]) -> None:
    """Show each problem as a warning, but in small print if it is only about checkpoints without weights."""
    on_purpose = runs.explain_missing_weights(runs.checkpoints(run))
    for sentence in sentences:
        if sentence in on_purpose:
            st.caption(literal(sentence))
        else:
            warn(sentence)


@contextmanager
def explaining() -> Iterator[None]:
    """Show an error of the block (EmbryoError) as one sentence, and continue with the page."""
    try:
        yield
    except QueryError as error:
        warn(error)
        if isinstance(error, TooCostly):
            st.code(error.command, language="bash", wrap_lines=True)
    except EmbryoError as error:
        st.error(literal(str(error)), icon=":material/error:")
