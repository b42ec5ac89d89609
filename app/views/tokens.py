"""Tokens: when each part of speech is learned, and the words behind a point (Section 3, Figures 1, 7 and 8)."""

from collections.abc import Collection

import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn, ProgressColumn

from app import figures, notices, permalink, pickers, results, tables, widgets
from app.components import messages
from app.view import View
from app.views.compare import pick_rule
from embryo_core import query
from embryo_core.errors import FigureError
from embryo_core.figures import acquisition, new_pieces, tokens
from embryo_core.figures.markdown import literal
from embryo_core.findings.words import equivalent_metric
from embryo_core.groups import describe_tag
from embryo_core.metric import Metric
from embryo_core.metrics import METRICS
from embryo_core.types import Run

PAGE_NAME = "tokens"  # `Metric.page` of the metrics shown here
MAX_PILLS = 12  # largest number of categories offered as pills instead of a list
SENTENCES = {  # a cloze sentence for each tag; written for this project
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
ANY_TAG = "It is about [MASK] ."  # the sentence for a tag without one


def show() -> None:
    """Draw the page."""
    metrics = {metric.name: metric for metric in METRICS if metric.page == PAGE_NAME}
    view = widgets.begin_page("Tokens", lambda run: _evaluated_steps(run, metrics))
    titles = {name: tokens.title_of(name) for name, metric in metrics.items() if _applies(view.run, metric)}
    figure_area = st.container()  # for the figure, which is above its controls
    choices = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    if not titles:
        notices.require(view.run, {"words"})
    with choices:
        metric = pickers.pick_one("metric", "Task", dict(sorted(titles.items())), segmented=True)
    scores = results.scores(view.run, metric)
    if scores.empty:
        notices.stop_uncomputed(view.run, metric, f"{titles[metric]} has not been computed for '{view.run.name}' yet.")
    category_sets = tokens.category_sets(scores)
    with choices:
        family = pickers.pick_one("family", "By", list(category_sets), format_func=str.capitalize, segmented=True)
        is_rescaled = pickers.pick_rescaled("Accuracy")
        with pickers.options():
            bands = pickers.pick_switch("bands", "95 % bands", default=True)
            pickers.pick_smoothing()
    groups = _pick_categories(family, category_sets[family])
    options = {"metric": metric, "groups": tuple(groups)}
    try:
        figure = figures.draw(view, tokens.accuracy, **options, rescaled=is_rescaled, bands=bands)
    except FigureError:
        notices.note("Choose at least one category that has results.")
        return
    with figure_area:
        notices.show_headline(figure.headline)
        figures.show(figure, on_point=_open_point, titled=True)
    left, right = st.columns([4, 3], gap="large")
    with left:
        _show_words(view, metric, figure.first_table)
    with right:
        st.header("Order of acquisition", anchor=False)
        figures.plot(view, acquisition.acquisition, **options, rule=pick_rule())
    if any(map(new_pieces.new_words, view.drawn_runs)):
        st.header("Words with new pieces", anchor=False)
        figures.plot(view, new_pieces.accuracy, **options)


def _applies(run: Run, metric: Metric) -> bool:
    """Return whether to offer a metric: it has results, or the run's models have the outputs that it needs."""
    return not results.scores(run, metric.name).empty or metric.needs <= results.capabilities(run)


def _evaluated_steps(run: Run, metrics: Collection[str]) -> set[int]:
    """Return the steps with results of the metric in the URL, or else of the first of these in alphabetical order."""
    requested = permalink.get("metric") or ""
    return results.evaluated_steps(run, equivalent_metric(run, requested if requested in metrics else min(metrics)))


def _pick_categories(family: str, categories: list[str]) -> list[str]:
    name, default = family.replace(" ", "_"), tokens.default_categories(family, categories)
    is_few = len(categories) <= MAX_PILLS
    return pickers.pick_many(name, "Categories", categories, default, describe_tag, pills=is_few, bulk=True)


def _open_point(group: str, step: int) -> None:
    permalink.choose_all(words=group, step=step)


# === Words of a category ===


def _show_words(view: View, metric: str, figure_rows: pd.DataFrame) -> None:
    """Draw the words of one category, by default the one that changed most, or the words that a search finds.

    `figure_rows` are those of the figure above, whose categories are offered and searched.
    """
    groups, step = list(figure_rows["group"].unique()), view.evaluated_step(figure_rows["step"].unique())
    heading = st.empty()
    left, right = st.columns(2)
    with left:
        group = pickers.pick_one("words", "Category", groups, tokens.most_changed(figure_rows, 1)[0], describe_tag)
    with right:
        search = pickers.pick_text("search", "Search in the chosen categories", placeholder="part of a word").strip()
    where = "the chosen categories" if search else f"“{literal(describe_tag(group))}”"
    heading.header(f"Words behind {where} at {view.name_step(step)}", anchor=False)
    words = _read_words(view, metric, groups if search else [group], step)
    if words.empty:
        notices.note(f"There are no words of this category at {view.name_step(step)}.")
        return
    matches = tables.search(words, ["word"], search)
    _show_word_table(
        view.run, matches.sort_values(["n", "word"], ascending=[False, True]), f"{group}_{search}", bool(search)
    )
    notices.show_caption(tokens.describe_words(matches, words))


def _read_words(view: View, metric: str, groups: list[str], step: int) -> pd.DataFrame:
    """Return the words of these categories at a step, with the columns category and accuracy added."""
    tables = [results.words(view.run, metric, group, step).assign(category=group) for group in groups]
    words = pd.concat(tables, ignore_index=True)
    return words.assign(accuracy=words["correct"] / words["n"])


def _show_word_table(run: Run, words: pd.DataFrame, key: str, with_category: bool) -> None:
    """Draw the words, and a button that asks about the chosen one, initially the first.

    Choosing does not ask by itself, since the arrow keys choose too.
    """
    columns = ["word", "accuracy", "n", "correct", "tag"] + ["category"] * with_category
    selection = st.dataframe(
        words.assign(tag=words["tag"].map(describe_tag))[columns],
        alt="Words of the chosen category",
        hide_index=True,
        key=f"words_{key}",
        on_select="rerun",
        selection_mode="single-cell",
        column_config={
            "accuracy": ProgressColumn("accuracy", format="percent", min_value=0, max_value=1),
            "n": NumberColumn("n", help="How often the treebank has the word with this tag"),
        },
    )
    if len(words):
        word, tag = words[["word", "tag"]].iloc[messages.clicked_row(selection, len(words)) or 0]
        st.button(f"Ask “{literal(word)}”", help="Opens the Query page", on_click=_ask, args=(run, word, tag))


def _ask(run: Run, word: str, tag: str) -> None:
    """Open the Query page with a sentence and track the word in it; decoders get the text before the word."""
    text = SENTENCES.get(tag, ANY_TAG)
    if "next_words" in results.capabilities(run):
        text = query.before_mask(text) or query.before_mask(ANY_TAG)
    permalink.open_page("query", text=text, word=word, subject="")
