"""The form of the Query page: a text, a LAMA fact that fills it in, a word to track, and a comparison."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from app import notices, permalink, pickers, results
from app.view import View
from embryo_core import query, runs
from embryo_core.errors import ResultsError
from embryo_core.figures import knowledge
from embryo_core.figures.markdown import literal
from embryo_core.types import Fact, Run
from embryo_core.words import without_treebank_spaces

NOT_YET = " (not learned yet)"  # end of the label of an example whose answer the run never learned
IN_EXPANDER = ("template", "subject", "word", "compare")  # names in the URL whose values open the expander
COMPARISONS = {"none": "Nothing", "run": "Another run", "text": "Another sentence", "both": "Both"}


@dataclass(frozen=True)
class Form:
    """The wording of the form: labels and messages about the text, and examples that fit any run."""

    label: str
    help: str
    other: str  # the label of a second text
    wanted: str  # description of the expected text, for the message about an empty one
    examples: tuple[str, ...]  # offered if the run has no stored examples
    always: tuple[str, ...] = ()  # offered next to the run's


FILL = Form(
    "Text with [MASK] to fill",
    "The models of this run predict masked words. [mask] in upper or lower case is read as [MASK]. Ctrl+Enter asks.",
    "The other sentence, with [MASK]",
    "a sentence with [MASK] for the word to be predicted",
    (query.EXAMPLE, "She put the book [MASK] the table .", "They [MASK] going home ."),
    ("He was born in [MASK] , in the [MASK] of England .",),
)
CONTINUE = Form(
    "Text to continue",
    "The models of this run predict next words: they are asked for the word after the text. Ctrl+Enter asks.",
    "The other sentence, to continue",
    "the beginning of a sentence",
    (query.START, "She put the book on the", "They were going"),
)


def form_of(run: Run) -> Form:
    """Return the form for a run: to continue a text if its models predict next words, else to fill masks."""
    return CONTINUE if "next_words" in results.capabilities(run) else FILL


@dataclass(frozen=True)
class Request:
    """One question to one run; a page that compares has several."""

    view: View
    text: str
    word: str = ""  # word to track
    fact: Fact | None = None  # the fact that the text asks for
    number: int = 1  # of its place on the page

    @property
    def masks(self) -> int:
        """Return the number of words to predict: the number of masks, or 1 for a text to continue."""
        return max(1, query.count_masks(self.text))


def pick_requests(view: View) -> list[Request]:
    """Draw the form, initially with the run's first example, and return its questions; none if the text is empty."""
    examples = _examples(view.run)
    with st.container(border=True, key="ask"):
        text = _pick_text(form_of(view.run), next(iter(examples)))
        _show_examples(examples)
        is_expanded = any(map(permalink.get, IN_EXPANDER))
        expander = st.expander(
            "A fact, a word to track, a comparison", expanded=is_expanded, key="query_more", on_change="rerun"
        )
        requests = [Request(view, text)]
        if expander.open or is_expanded:
            with expander:
                requests = _pick_more(view, text)
    with_text = [request for request in requests if text.strip() and request.text.strip()]
    return [replace(request, number=number) for number, request in enumerate(with_text, start=1)]


def _pick_more(view: View, text: str) -> list[Request]:
    """Draw the pickers of a fact, a word to track and a comparison; return the questions."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        fact = _pick_fact(view.run, text)
    with right:
        word = pickers.pick_text(
            "word",
            "Track a word",
            placeholder="Paris",
            help="Any word; one of several pieces has the product of their probabilities, each given those before it.",
        )
    requests = _pick_comparison(Request(view, text, word.strip()))
    return [
        replace(request, fact=fact if fact and request.text == question_of(request.view.run, fact) else None)
        for request in requests
    ]


# === The text ===


def _examples(run: Run) -> dict[str, str]:
    """Return {text: label of its button}: the run's own examples, or those of the form if it has none."""
    try:
        examples = results.examples(run)
    except ResultsError as error:  # not fatal: the reader's own text can still be asked
        notices.warn(error)
        examples = []
    labels = {example.text: example.text + (NOT_YET if example.since is None else "") for example in examples}
    form = form_of(run)
    return (labels or {text: text for text in form.examples}) | {text: text for text in form.always}


def _pick_text(form: Form, default: str) -> str:
    """Draw the text box; its text is kept in the URL, shown as it was typed and never rendered as Markdown."""
    shown_text = pickers.chosen_text("text", form.label, default)
    key = pickers.widget_key("query_text", shown_text)

    def on_written() -> None:
        if (text := st.session_state[key]) != shown_text:
            choose_text(text)

    text = st.text_area(
        form.label,
        key=key,
        height=68,
        max_chars=pickers.MAX_CHARACTERS["text"],
        placeholder=form.examples[0],
        help=form.help,
        on_change=on_written,
    )
    permalink.put_in_url("text", text if len(text) <= pickers.MAX_LINK and text != default else None)
    if len(text) > pickers.MAX_LINK:
        notices.show_caption(f"A text of more than {pickers.MAX_LINK:,} characters is left out of the page's address.")
    return text


def _show_examples(examples: dict[str, str]) -> None:
    """Draw the button "Ask" and the examples; a click outside the text box asks too, since it submits the text."""
    with st.container(horizontal=True, vertical_alignment="center", key="examples"):
        st.button("Ask", type="primary", key="query_ask")
        st.caption("Try", width="content")
        for example, label in examples.items():
            st.button(literal(without_treebank_spaces(label)), on_click=choose_text, args=(example,))


def choose_text(text: str, subject: str = "") -> None:
    """Choose the text to ask; `subject` is the id of the fact whose question it is, or ""."""
    permalink.choose("text", text)
    permalink.choose("subject", subject)


# === A fact ===


def _pick_fact(run: Run, text: str) -> Fact | None:
    """Draw the pickers of a LAMA fact on which the run was evaluated, and return it; choosing one fills in the text.

    The fact stays chosen while the text is its question. A message reports a link whose relation or subject is unknown,
    or whose subject is not the one that its text asks for.
    """
    templates = results.templates(run)
    if not templates:
        st.caption("LAMA's templates can be chosen here once the run has been evaluated with metric world_knowledge.")
        return None

    relation = _pick_optional(
        "template",
        "LAMA relation",
        sorted(templates, key=knowledge.relation_label),
        lambda name: f"{knowledge.relation_label(name)}: {templates[name]}",
        "a template to fill in",
        lambda _: permalink.choose("subject", ""),
    )
    facts_by_subject = _facts(run, relation, templates[relation]) if relation else {}
    linked_fact = facts_by_subject.get(permalink.get("subject") or "")
    asked_for = linked_fact is None or question_of(run, linked_fact) == text.strip()
    if not asked_for and not permalink.came_with_link("subject"):
        permalink.choose("subject", "")
    choice = _pick_optional(
        "subject",
        "Subject",
        list(facts_by_subject),
        lambda name: f"{facts_by_subject[name].subject} → {facts_by_subject[name].object}",
        f"one of {len(facts_by_subject):,}, type to search" if relation else "choose a relation first",
        lambda name: choose_text(question_of(run, facts_by_subject[name]) if name else text, name or ""),
        asked_for,
    )
    if linked_fact and not asked_for:
        pickers.report_unknown(
            "subject", [f"{linked_fact.subject} → {linked_fact.object}"], why="not the fact that the text asks for"
        )
    return facts_by_subject.get(choice or "")


def question_of(run: Run, fact: Fact) -> str:
    """Return the text that asks a run's models for the object of a fact."""
    return query.reword(fact.question, results.capabilities(run))


def _facts(run: Run, relation: str, template: str) -> dict[str, Fact]:
    """Return the evaluated facts of a relation by id, in the order of their subjects."""
    facts = results.fact_histories(run)
    rows = facts[facts["relation"] == relation].sort_values("subject")
    ids, subjects, objects = (rows[name].tolist() for name in ("fact", "subject", "object"))
    return {id: Fact(id, relation, template, subject, object) for id, subject, object in zip(ids, subjects, objects)}


def _pick_optional(
    name: str,
    label: str,
    options: Sequence[str],
    format_func: Callable[[str], str],
    placeholder: str,
    then: Callable[[str | None], object],
    is_valid: bool = True,
) -> str | None:
    """Draw a picker of one option or none, and return the choice; `then` as in `pickers.draw_widget`.

    If `is_valid` is False, the choice in the URL is ignored.
    """
    requested = permalink.get(name)
    value = requested if is_valid and requested in options else None
    appearance: dict[str, Any] = {"format_func": format_func, "placeholder": placeholder, "disabled": not options}
    choice = pickers.draw_widget(name, value, st.selectbox, label, options, index=None, then=then, **appearance)
    permalink.put_in_url(name, choice)
    if requested and requested not in options:
        pickers.report_unknown(name, [requested])
    return choice


# === A comparison ===


def _pick_comparison(request: Request) -> list[Request]:
    """Draw the pickers of a comparison; return `request` and the questions to another run, of another text, or both."""
    other_runs = [run for run in runs.list_runs() if run.name != request.view.run.name]
    any_other = any(map(_can_answer, other_runs))  # stops at the first, so that a question does not read every run
    options = [name for name in COMPARISONS if name in ("none", "text") or any_other]
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        comparison = pickers.pick_one(
            "compare", "Compare with", options, format_func=COMPARISONS.__getitem__, segmented=True, optional=True
        )
    views, sentences = [request.view], [request.text]
    with right:
        if comparison in ("run", "both"):
            answering_runs = {run.name: run for run in other_runs if _can_answer(run)}
            other_run = answering_runs[pickers.pick_one("other", "The other run", list(answering_runs))]
            views.append(_same_step(request.view, other_run))
            if (step := views[-1].step) > request.view.step:
                step_name, used_step_name = request.view.name_step(request.view.step), views[-1].name_step(step)
                notices.note(f"'{other_run.name}' has no weights up to {step_name}; it is asked at {used_step_name}.")
        if comparison in ("text", "both"):
            form = form_of(request.view.run)
            sentences.append(pickers.pick_text("text2", form.other, placeholder=form.examples[0]))
            if not sentences[-1].strip():
                st.info("The other sentence is empty, so there is nothing to compare with.", icon=":material/edit:")
    first_run, *_ = views
    return [
        replace(
            request, view=view, text=text if view is first_run else query.reword(text, results.capabilities(view.run))
        )
        for text in sentences
        for view in views
    ]


def _can_answer(run: Run) -> bool:
    return any(checkpoint.has_weights for checkpoint in runs.checkpoints(run))


def _same_step(view: View, run: Run) -> View:
    """Return the view of another run at its last step with weights up to the view's step, else at its first."""
    other_view = replace(view, run=run, checkpoints=tuple(runs.checkpoints(run)))
    return replace(other_view, step=view.evaluated_step(other_view.loadable))
