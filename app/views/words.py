"""Words: the surprisal of each word of a list over pretraining, its age of acquisition, and what predicts this age."""

import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from app import figures, notices, permalink, pickers, results, widgets
from app.tables import search, show_rows, steps_in_unit
from app.view import View
from embryo_core.figures import word_ages, word_frequency, word_predictors, word_tables, words
from embryo_core.figures.word_tables import METRIC

PAIRED_FIGURES = (  # figures in two columns, by their titles
    {"Compared with children": word_predictors.children, "What predicts a word's age": word_predictors.predictors},
    {
        "Frequency, then context": word_frequency.distance,
        "Unigrams, bigrams, context": word_frequency.nearest_distributions,
    },
)


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Words", lambda run: results.evaluated_steps(run, METRIC))
    ages = results.word_ages(view.run)
    measured_words = sorted(ages.loc[ages["n"].notna(), "word"])
    if not measured_words:
        notices.stop_uncomputed(view.run, METRIC, f"Run '{view.run.name}' has no surprisals of words yet.")
    notices.show_headline(words.headline(ages, view.axis))
    word_column, curve_column = st.columns(2, gap="large")
    with word_column:
        st.header("One word", anchor=False)
        word = pickers.pick_one("listed_word", "Word", measured_words, words.default_word(ages))
        figures.plot(view, words.curve, figures.choose_step, word=word)
    with curve_column:
        st.header("Words acquired", anchor=False)
        pickers.pick_smoothing()
        figures.plot(view, words.acquired)
    st.header("Every word", anchor=False)
    _show_table(view, ages)
    st.header("Order of acquisition", anchor=False)
    figures.plot(view, word_ages.ages, _open_word)
    for figures_of_row in PAIRED_FIGURES:
        for column, (title, make) in zip(st.columns(2, gap="large"), figures_of_row.items(), strict=True):
            with column:
                st.header(title, anchor=False)
                figures.plot(view, make)


def _open_word(word: str, step: int) -> None:
    permalink.choose("listed_word", word)


def _show_table(view: View, ages: pd.DataFrame) -> None:
    """Draw a search box and a table with a row for each word that it finds: its age, or the reason why it has none."""
    query = pickers.pick_text("word_search", "Search", placeholder="a word, a category, or why there is no age")
    table = word_tables.list_words(search(ages, ("word", "category", "why"), query))
    is_measured = table["n"].notna()

    def on_click(row: int) -> None:
        if is_measured.iloc[row]:
            permalink.choose("listed_word", table["word"].iloc[row])

    step_columns = {
        "age": {"label": "age", "help": view.axis.step_heading("Acquired at")},
        "earliest": {"label": "from", "help": "95 % interval of the age"},
        "latest": {"label": "to"},
        "beyond": {"label": "context", "help": "From here significantly below frequency and bigrams"},
    }
    visible_table, steps = steps_in_unit(table, view.axis, step_columns, 63)
    show_rows(
        visible_table,
        "Every word",
        f"words_{query}",
        on_click,
        {
            **steps,
            "why": TextColumn("without an age", width=180),
            "children": NumberColumn(
                "children", help="Months at which half of the children say it", format="%.1f", width=70
            ),
            "lowest": NumberColumn("lowest", help="Lowest mean surprisal, in bits", format="%.1f", width=70),
            "n": NumberColumn("n", help="Occurrences in the text", width=50),
            "count": NumberColumn("count", help="In the training text", format="localized", width=70),
        },
        height=440,
    )
    notices.show_caption(words.describe_words(ages, table))
