"""What is asked on the Query page: a text, a LAMA fact that fills it, a word to track, and what to compare it with."""

from dataclasses import dataclass, replace

import streamlit as st

from app import permalink, pickers, results, texts, widgets
from app.view import View
from app.views.query_fact import choose_text, pick_fact
from embryo_core import query, runs
from embryo_core.errors import ResultsError
from embryo_core.figures.markdown import literal
from embryo_core.types import Fact, Run

EXAMPLES = (query.EXAMPLE, "She put the book [MASK] the table .", "They [MASK] going home .")  # of any run
TWO_MASKS = "He was born in [MASK] , in the [MASK] of England ."
NOT_YET = " (not learned yet)"
IN_EXPANDER = ("template", "subject", "word", "compare")  # choices in the URL that open it
COMPARISONS = {"none": "Nothing", "run": "Another run", "text": "Another sentence", "both": "Both"}


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
        return query.count_masks(self.text)


def ask(view: View) -> list[Asked]:
    """Draw the pickers; the questions asked, at first the run's own example, none where the text is empty."""
    examples = _examples(view.run)
    with st.container(border=True, key="ask"):
        text = _pick_text(next(iter(examples)))
        _show_examples(examples)
        with st.expander("A fact, a word to track, a comparison", expanded=any(map(permalink.get, IN_EXPANDER))):
            fact, word, questions = _pick_more(view, text)
    asked = [replace(question, fact=fact if question.text == text else None, word=word) for question in questions]
    return [question for question in asked if text.strip() and question.text.strip()]


def _pick_more(view: View, text: str) -> tuple[Fact | None, str, list[Asked]]:
    """A fact that the text may be, a word to track, and the questions compared."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        fact = pick_fact(view.run, text)
    with right:
        word = texts.pick_text(
            "word",
            "Track a word",
            placeholder="Paris",
            help="Any word; a word of several pieces turns its [MASK] into as many masks.",
        )
    return fact, word.strip(), _pick_comparison(Asked(view, text, "", None))


# === The text ===


def _examples(run: Run) -> dict[str, str]:
    """Texts to click, and what their buttons say: the run's own examples, else those of any run."""
    try:
        found = results.examples(run)
    except ResultsError as error:  # one's own text can be asked all the same
        st.warning(literal(str(error)), icon=":material/warning:")
        found = []
    said = {one.text: one.text + (NOT_YET if one.since is None else "") for one in found}
    return (said or dict(zip(EXAMPLES, EXAMPLES))) | {TWO_MASKS: TWO_MASKS}


def _pick_text(default: str) -> str:
    """The text, kept in the URL, with examples to click; it is shown as it was typed and never read as markup."""
    label = "Text with [MASK]"
    shown = texts.bounded("text", label, default)
    key = pickers.served("query_text", shown)

    def written() -> None:
        if (text := st.session_state[key]) != shown:
            choose_text(text)

    text = st.text_area(
        label,
        key=key,
        height=68,
        max_chars=texts.LIMITS["text"],
        placeholder=EXAMPLES[0],
        help="[mask] in upper or lower case is read as [MASK]. Ctrl+Enter asks.",
        on_change=written,
    )
    permalink.show("text", text if len(text) <= texts.LINK and text != default else None)
    if len(text) > texts.LINK:
        widgets.show_caption(f"A text of more than {texts.LINK:,} characters is left out of the page's address.")
    return text


def _show_examples(examples: dict[str, str]) -> None:
    """The button Ask, and texts to click; a click outside the text asks as well."""
    with st.container(horizontal=True, vertical_alignment="center", key="examples"):
        st.button("Ask", type="primary", key="query_ask")
        for example, said in examples.items():
            st.button(literal(said), type="tertiary", on_click=choose_text, args=(example,))


# === A comparison ===


def _pick_comparison(first: Asked) -> list[Asked]:
    """The first question, and what stands beside it: another run's answer, another sentence, or both."""
    others = {run.name: run for run in runs.list_runs() if run.name != first.view.run.name and _can_answer(run)}
    options = [name for name in COMPARISONS if name in ("none", "text") or others]
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        wanted = pickers.pick_one(
            "compare", "Compare with", options, format_func=COMPARISONS.get, segmented=True, optional=True
        )
    views, asked = [first.view], [first.text]
    with right:
        if wanted in ("run", "both"):
            other = others[pickers.pick_one("other", "The other run", list(others))]
            views.append(_same_step(first.view, other))
            if (step := views[-1].step) > first.view.step:
                before, instead = first.view.point(first.view.step), views[-1].point(step)
                words = f"'{other.name}' has no weights up to {before}; it is asked at {instead}."
                st.info(literal(words), icon=":material/info:")
        if wanted in ("text", "both"):
            asked.append(texts.pick_text("text2", "The other sentence, with [MASK]", placeholder=EXAMPLES[0]))
            if not asked[-1].strip():
                st.info("The other sentence is empty, so there is nothing to compare with.", icon=":material/edit:")
    return [replace(first, view=view, text=text) for text in asked for view in views]


def _can_answer(run: Run) -> bool:
    return any(checkpoint.has_weights for checkpoint in runs.checkpoints(run))


def _same_step(view: View, run: Run) -> View:
    """Another run at the step of this one, or at its own last before that, or else at its first."""
    other = replace(view, run=run, checkpoints=tuple(runs.checkpoints(run)))
    return replace(other, step=view.evaluated(other.loadable))
