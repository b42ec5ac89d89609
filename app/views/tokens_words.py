"""The Tokens page, words: those of one category at a step, with how often each was predicted."""

import streamlit as st

from app import results, texts, widgets
from app.captions import tokens as captions
from app.captions.markdown import literal
from app.widgets import View


def show(view: View, metric: str, groups: list[str], step: int) -> None:
    """Draw the pickers and the table of words behind one category."""
    heading = st.empty()
    left, right = st.columns(2)
    with left:
        group = widgets.pick_one("words", "Category", groups)
    with right:
        search = texts.pick_text("word", "Search", placeholder="part of a word")
    heading.subheader(f"Words behind “{literal(group)}” at step {step:,}", anchor=False)
    words = results.words(view.run, metric, group, step)
    if words.empty:
        st.info(f"There are no words of this category at step {step:,}.", icon=":material/info:")
        return
    found = words[words["word"].str.contains(search, case=False, regex=False)]
    table = found.assign(accuracy=found["correct"] / found["n"])[["word", "tag", "n", "correct", "accuracy"]]
    st.dataframe(
        table.sort_values(["n", "word"], ascending=[False, True]),
        hide_index=True,
        column_config={
            "n": st.column_config.NumberColumn("n", help="How often the word stands in the treebank with this tag"),
            "accuracy": st.column_config.ProgressColumn("accuracy", format="percent", min_value=0, max_value=1),
        },
    )
    st.caption(captions.words(found, words))
