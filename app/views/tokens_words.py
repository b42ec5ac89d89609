"""The Tokens page, words: those of one category at a step, or a search among all, each with a question about it."""

import pandas as pd
import streamlit as st

from app import permalink, pickers, results, tables, widgets
from app.components import messages
from app.view import View
from embryo_core import query
from embryo_core.figures import tags, tokens
from embryo_core.figures.markdown import literal
from embryo_core.types import Run

SENTENCES = {  # in which a word of this tag is asked; written for this project
    "CC": "He came [MASK] she left .",
    "DT": "[MASK] house is very old .",
    "IN": "The book is [MASK] the table .",
    "JJ": "It was a very [MASK] day .",
    "JJR": "It is [MASK] than before .",
    "JJS": "It is the [MASK] of all .",
    "NN": "The [MASK] was very good .",
    "NNP": "She comes from [MASK] .",
    "NNPS": "She comes from the [MASK] .",
    "NNS": "The [MASK] were very good .",
    "PDT": "[MASK] the houses are old .",
    "PRP": "Then [MASK] went home .",
    "PRP$": "She took [MASK] book .",
    "RB": "She did it [MASK] .",
    "VB": "They want to [MASK] it .",
    "VBD": "She [MASK] it yesterday .",
    "VBG": "They are [MASK] it now .",
    "VBN": "It was [MASK] last year .",
    "VBP": "They [MASK] it every day .",
    "VBZ": "She [MASK] it every day .",
}
ANY_TAG = "It is about [MASK] ."


def show(view: View, metric: str, groups: list[str], default: str, step: int) -> None:
    """Draw the pickers and the words of one of the `groups`, at first the `default`, or those searched for."""
    heading = st.empty()
    left, right = st.columns(2)
    with left:
        group = pickers.pick_one("words", "Category", groups, default, tags.named)
    with right:
        search = pickers.pick_text("search", "Search in the chosen categories", placeholder="part of a word").strip()
    where = "the chosen categories" if search else f"“{literal(tags.named(group))}”"
    heading.header(f"Words behind {where} at {view.point(step)}", anchor=False)
    words = _words(view, metric, groups if search else [group], step)
    if words.empty:
        st.info(f"There are no words of this category at {view.point(step)}.", icon=":material/info:")
        return
    found = tables.search(words, ["word"], search)
    _table(view.run, found.sort_values(["n", "word"], ascending=[False, True]), f"{group}_{search}", bool(search))
    widgets.show_caption(tokens.describe_words(found, words))


def _words(view: View, metric: str, groups: list[str], step: int) -> pd.DataFrame:
    """Return the words of these categories, with the column category."""
    found = [results.words(view.run, metric, group, step).assign(category=group) for group in groups]
    words = pd.concat(found, ignore_index=True)
    return words.assign(accuracy=words["correct"] / words["n"])


def _table(run: Run, words: pd.DataFrame, key: str, with_category: bool) -> None:
    """Draw the words, and a button that asks the chosen one, at first the first: an arrow key only chooses."""
    columns = ["word", "accuracy", "n", "correct", "tag"] + ["category"] * with_category
    chosen = st.dataframe(
        words.assign(tag=words["tag"].map(tags.named))[columns],
        alt="Words of the chosen category",
        hide_index=True,
        key=f"words_{key}",
        on_select="rerun",
        selection_mode="single-cell",
        column_config={
            "accuracy": st.column_config.ProgressColumn("accuracy", format="percent", min_value=0, max_value=1),
            "n": st.column_config.NumberColumn("n", help="How often the treebank has the word with this tag"),
        },
    )
    if len(words):
        word, tag = words[["word", "tag"]].iloc[messages.clicked_row(chosen, len(words)) or 0]
        st.button(f"Ask “{literal(word)}”", help="Opens the Query page", on_click=_ask, args=(run, word, tag))


def _ask(run: Run, word: str, tag: str) -> None:
    """Open the Query page with a sentence and track the word in it; decoders get the text before the word."""
    text = SENTENCES.get(tag, ANY_TAG)
    if "next_words" in results.given(run):
        text = query.before_mask(text) or query.before_mask(ANY_TAG)
    permalink.lead_to("query", text=text, word=word, subject="")
