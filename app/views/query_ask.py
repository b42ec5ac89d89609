"""What is asked on the Query page: a text, a LAMA fact that fills it, a word to track, and what to compare it with."""

import re
from dataclasses import dataclass, replace

import streamlit as st

from app import permalink, texts, widgets
from app.views.query_fact import choose_text, pick_fact
from app.widgets import View
from embryo_core import query, runs
from embryo_core.types import Fact, Run

EXAMPLES = (
    query.EXAMPLE,
    "She put the book [MASK] the table .",
    "They [MASK] going home .",
    "He was born in [MASK] , in the [MASK] of England .",
)
COMPARISONS = {"none": "Nothing", "run": "Another run", "text": "Another sentence"}


@dataclass(frozen=True)
class Asked:
    """One question to one run; a page that compares has two."""

    view: View
    text: str
    word: str  # to be tracked; empty: none
    fact: Fact | None  # whose question the text is

    @property
    def masks(self) -> int:
        """How often [MASK], in any case, stands in the text."""
        return len(re.findall(r"\[\s*mask\s*\]", self.text, flags=re.IGNORECASE))


def ask(view: View) -> list[Asked]:
    """Draw the pickers; the questions asked, none where no text has been written yet."""
    with st.container(border=True, key="ask"):
        left, right = st.columns([3, 2], gap="large")
        with left:
            text = _pick_text()
        with right:
            fact = pick_fact(view.run, text)
        _show_examples()
        left, right = st.columns([3, 2], gap="large", vertical_alignment="bottom")
        with right:
            word = texts.pick_text(
                "word",
                "Track a word",
                placeholder="Paris",
                help="Any word: one that the vocabulary has only in pieces widens its [MASK] to as many.",
            )
        with left:
            first = Asked(view, text, word.strip(), fact)
            second = _pick_comparison(first)
    return [asked for asked in (first, second) if asked and first.text.strip() and asked.text.strip()]


# === The text ===


def _pick_text() -> str:
    """The text, kept in the URL, with examples to click; it is shown as it was typed and never read as markup."""
    label = "Text with [MASK]"
    st.session_state["query_text"] = texts.bounded("text", label)
    text = st.text_area(
        label,
        key="query_text",
        height=124,
        max_chars=texts.LIMITS["text"],
        placeholder=EXAMPLES[0],
        help="[mask] in any case is read as [MASK]. Ctrl+Enter asks.",
        on_change=lambda: choose_text(st.session_state["query_text"]),
    )
    permalink.show("text", text if 0 < len(text) <= texts.LINK else None)
    if len(text) > texts.LINK:
        st.caption(f"A text of more than {texts.LINK:,} characters is left out of the page's address.")
    return text


def _show_examples() -> None:
    """Ask, which a click outside the text does as well, and texts to click."""
    with st.container(horizontal=True, vertical_alignment="center", key="examples"):
        st.button("Ask", type="primary", key="query_ask", on_click=_ask_example_unless_text)
        for example in EXAMPLES:
            st.button(example, type="tertiary", on_click=choose_text, args=(example,))


def _ask_example_unless_text() -> None:
    if not st.session_state["query_text"].strip():  # as it is now: leaving the box to click has handed it over
        choose_text(EXAMPLES[0])


# === A comparison ===


def _pick_comparison(first: Asked) -> Asked | None:
    """The same question to another run, or another one to the same run."""
    others = {run.name: run for run in runs.list_runs() if run.name != first.view.run.name and _can_answer(run)}
    options = [name for name in COMPARISONS if name != "run" or others]
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        wanted = widgets.pick_one(
            "compare", "Compare with", options, format_func=COMPARISONS.get, segmented=True, optional=True
        )
    with right:
        if wanted == "run":
            other = others[widgets.pick_one("other", "The other run", list(others))]
            return replace(first, view=_same_step(first.view, other))
        if wanted == "text":
            text = texts.pick_text("text2", "The other sentence, with [MASK]", placeholder=EXAMPLES[0])
            return replace(first, text=text, fact=None)
    return None


def _can_answer(run: Run) -> bool:
    return any(checkpoint.has_weights for checkpoint in runs.checkpoints(run))


def _same_step(view: View, run: Run) -> View:
    """Another run at the step of this one, or at its own last before that."""
    other = replace(view, run=run, checkpoints=tuple(runs.checkpoints(run)))
    return replace(other, step=view.evaluated(other.loadable))
