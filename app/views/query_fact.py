"""What is asked on the Query page, a LAMA fact: a relation and a subject that fill in the text."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app import permalink, pickers, results
from embryo_core.figures import knowledge
from embryo_core.types import Fact, Run


def pick_fact(run: Run, text: str) -> Fact | None:
    """A fact that the run was asked; choosing one fills in the text, and it counts while the text is its question.

    Where a link names a relation or a subject that is not here, or a subject that its text does not ask, that is told.
    """
    templates = results.templates(run)
    if not templates:
        st.caption("LAMA's templates can be chosen here once the run has been evaluated with metric world_knowledge.")
        return None
    relation = _pick_optional(
        "template",
        "LAMA relation",
        sorted(templates, key=knowledge.label),
        lambda name: f"{knowledge.label(name)}: {templates[name]}",
        "a template to fill in",
        lambda chosen: (permalink.choose("template", chosen), permalink.choose("subject", "")),
    )
    known = _facts(run, relation, templates[relation]) if relation else {}
    wanted = known.get(permalink.get("subject") or "")
    asked_for = wanted is None or wanted.question == text.strip()
    if not asked_for and not permalink.of_link("subject"):
        permalink.choose("subject", "")
    chosen = _pick_optional(
        "subject",
        "Subject",
        list(known),
        lambda name: f"{known[name].subject} → {known[name].object}",
        f"one of {len(known):,}, type to search" if relation else "choose a relation first",
        lambda name: choose_text(known[name].question if name else text, name),
        asked_for,
    )
    if not asked_for:
        pickers.tell_unknown("subject", [f"{wanted.subject} → {wanted.object}"], why="not what the text asks for")
    return known.get(chosen or "")


def _facts(run: Run, relation: str, template: str) -> dict[str, Fact]:
    """The facts of a relation that the run was asked, by their id, in the order of subjects."""
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
    choose: Callable[[str], Any],
    counts: bool = True,
) -> str | None:
    """One of the options or none, which stays out of the URL; `choose` gets the user's choice, or "".

    The choice in the URL is none where it does not count.
    """
    key = f"query_{name}"
    wanted = permalink.get(name)
    st.session_state[key] = wanted if counts and wanted in options else None
    chosen = st.selectbox(
        label,
        options,
        index=None,
        key=key,
        format_func=format_func,
        placeholder=placeholder,
        disabled=not options,
        on_change=lambda: choose(st.session_state[key] or ""),
    )
    permalink.show(name, chosen)
    if wanted and wanted not in options:
        pickers.tell_unknown(name, [wanted])
    return chosen


def choose_text(text: str, subject: str = "") -> None:
    """Ask this text: the question of a fact, where its subject is given."""
    permalink.choose("text", text)
    permalink.choose("subject", subject)
