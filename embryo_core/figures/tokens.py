"""Figures of the Tokens page: accuracy by category over the steps (Section 3, Figures 1, 7 and 8)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import comparison, results
from embryo_core.curves import baselines
from embryo_core.errors import EmbryoError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note, describe_lines, name_measures, sentences
from embryo_core.findings.words import VERB_FORMS, equivalent_metric
from embryo_core.groups import SINGLE_TAGS, UNIVERSAL_TAGS, describe_tag
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run, StepUnit
from embryo_core.words import join_names, list_steps, percent, sentence_case

SETS = {
    "parts of speech": tuple(style.PARTS_OF_SPEECH),
    "verb forms": tuple(style.VERB_FORMS),
    "single tags": SINGLE_TAGS,
    "universal tags": UNIVERSAL_TAGS,
    "frequency bands": tuple(style.FREQUENCY_BANDS),
}
PAPER_CATEGORIES = {"verb forms": VERB_FORMS, "single tags": tuple(style.PAPER_TAGS)}  # Table 4, Figure 1
TASK_DEFINITIONS = {
    "mask_prediction": "every word is masked as a whole and predicted from its sentence; all its pieces must match",
    "next_word_prediction": "every word is predicted from the words before it in its sentence; each of its pieces must "
    "be the best after the true ones",
    "replaced_token_accuracy": "a word is right if the discriminator calls its pieces original in the sentence, and "
    "replaced where the generator's samples took their place",
    "token_reconstruction": "every word is left in its sentence and predicted from its own states; all its pieces must "
    "match",
}
ONE_WORD_FRACTION = 0.9  # fraction of a category's right answers above which a single word determines its curve
MIN_ANSWERS = 10  # least number of right answers for which that fraction is reported


# === Tables ===


def category_sets(scores: pd.DataFrame) -> dict[str, list[str]]:
    """Return the sets of categories to choose from: those of SETS that have scores, else one set of all categories."""
    groups = scores["group"].dropna().unique().tolist()
    sets: dict[str, list[str]] = {}
    missing = set(groups)
    for name, categories in SETS.items():
        if missing & set(categories):
            sets[name] = list(categories)
        missing -= set(categories)
    return sets or {"categories": groups}


def default_categories(name: str, groups: Sequence[str]) -> list[str]:
    """Return the default categories of a set: those that the paper draws, else all."""
    return [group for group in groups if group in PAPER_CATEGORIES.get(name, groups)]


def accuracy_table(run: Run, metric: str, groups: Sequence[str], rescaled: bool = False) -> pd.DataFrame:
    """Return a row for each category and step: group, step, n, accuracy, low, high, shown, shown_low, shown_high.

    `accuracy` with its Wilson 95 % interval is as measured, in [0, 1]. `shown` is the same or, if `rescaled`, divided
    by the accuracy at the last step; a category that ends at 0 is then left out. Metrics that predict words also have
    answer, baseline and shown_baseline: the accuracy of always giving a category's most frequent word.
    """
    metric = equivalent_metric(run, metric)
    table = accuracy_curves(results.read_scores(run, metric), groups, rescaled)
    if table.empty or metric not in TASK_DEFINITIONS or metric == "replaced_token_accuracy":
        return table
    return with_baselines(
        table, baselines.word_baselines(results.read_word_counts(run, metric), is_cased(run)), rescaled
    )


def accuracy_curves(scores: pd.DataFrame, groups: Sequence[str], rescaled: bool) -> pd.DataFrame:
    """Return the columns of `accuracy_table` from group to shown_high, for scores with group, step, value and n."""
    rows = scores[scores["group"].isin(groups)].astype({"group": "str", "value": float}).sort_values("step")
    rows = with_intervals(rows[["group", "step", "n", "value"]]).rename(columns={"value": "accuracy"})
    last_values = rows.groupby("group")["accuracy"].transform("last")
    measured_columns = rows[["accuracy", "low", "high"]]
    rows[["shown", "shown_low", "shown_high"]] = (
        measured_columns.div(last_values, axis=0) if rescaled else measured_columns
    )
    rows = rows[last_values > 0] if rescaled else rows
    return rows.sort_values("group", key=lambda names: names.map([*groups].index), kind="stable", ignore_index=True)


def with_baselines(table: pd.DataFrame, baseline_rows: pd.DataFrame, rescaled: bool) -> pd.DataFrame:
    """Add the columns answer, baseline and shown_baseline; `baseline_rows` as in `baselines.word_baselines`."""
    baseline_rows = baseline_rows.set_index("group")
    baseline_values = table["group"].map(baseline_rows["value"])
    last_values = table.groupby("group")["accuracy"].transform("last")
    return table.assign(
        answer=table["group"].map(baseline_rows["answer"]),
        baseline=baseline_values,
        shown_baseline=baseline_values / last_values if rescaled else baseline_values,
    )


def most_changed(table: pd.DataFrame, count: int) -> list[str]:
    """Return the categories of an `accuracy_table` with the widest ranges of measured accuracy."""
    accuracy = table.groupby("group", sort=False)["accuracy"]
    return (accuracy.max() - accuracy.min()).nlargest(count).index.tolist()


def is_cased(run: Run) -> bool:
    """Return whether the model distinguishes capital letters; True if its tokenizer cannot be read."""
    try:
        return load_tokenizer(run).cased
    except EmbryoError:
        return True


def merge_case(words: pd.DataFrame, cased: bool) -> pd.DataFrame:
    """Return counts of words (see `results.read_words`), merged across case for an uncased model."""
    if cased or words.empty:
        return words
    key = ["metric", "step", "tag", "word", "band"]
    lowered = words.assign(word=words["word"].str.lower())
    return lowered.groupby(key, dropna=False, sort=False, as_index=False)[["n", "correct"]].sum()


def commonest_answers(words: pd.DataFrame) -> pd.DataFrame:
    """Return, for each step of one category's `words`, the word most often right: step, word, right, share, of_words.

    `right` counts all right predictions, `share` is that word's part of them and `of_words` its part of all words.
    Steps without a right prediction are left out.
    """
    by_word = words.groupby(["step", "word"], as_index=False)[["n", "correct"]].sum()
    totals = by_word.groupby("step")[["n", "correct"]].transform("sum")
    by_word = by_word.assign(
        right=totals["correct"],
        share=by_word["correct"] / totals["correct"].replace(0, np.nan),
        of_words=by_word["n"] / totals["n"],
    )
    with_share = by_word.dropna(subset="share")
    best_rows = with_share.loc[with_share.groupby("step")["share"].idxmax()]
    return best_rows[["step", "word", "right", "share", "of_words"]].reset_index(drop=True)


# === Accuracy by category ===


def accuracy(
    runs: Sequence[Run],
    axis: AxisChoice,
    metric: str,
    groups: Sequence[str],
    rescaled: bool = False,
    bands: bool = True,
) -> Figure:
    """Return the figure of a metric's accuracy in some categories, each with its 95 % interval and baseline."""
    run, name = runs[0], name_measures(runs, metric).removesuffix(" accuracy").capitalize()
    curves = Curves(
        by="group",
        metric=metric,
        value="shown",
        low="shown_low",
        high="shown_high",
        baseline="shown_baseline",
        label=describe_tag,
        styles=lambda names: {name: (style.colour(name), style.SYMBOL_OF.get(name, "circle")) for name in names},
        y_title="accuracy relative to the last step" if rescaled else "accuracy (words)",
        tickformat=".1f" if rescaled else ".0%",
        decimals=".2f" if rescaled else ".1%",
        unit="words",
        baseline_name="always the most frequent word",
        describe_baseline=_describe_baseline,
        bands=bands,
    )
    figure = curves_figure(
        runs,
        axis,
        lambda line_run: accuracy_table(line_run, metric, groups, rescaled),
        curves,
        metric,
        f"{name} accuracy by category{', relative to the last step' if rescaled else ''}",
        lambda table: _accuracy_caption(run, metric, table, groups, rescaled, bands),
    )
    table = figure.first_table
    if table["step"].nunique() < 2:
        return figure
    return replace(figure, headline=_headline(comparison.acquisition(table), axis.for_run(run, runs)))


def title_of(metric: str) -> str:
    """Return the name of a metric of words for a heading."""
    return metric.removesuffix("_accuracy").replace("_", " ").capitalize()


def _describe_baseline(row: Any) -> str:
    return f"always “{style.escape_text(row.answer)}” is right for {percent(row.baseline)} of {row.n:,} words"


def _accuracy_caption(
    run: Run, metric: str, table: pd.DataFrame, groups: Sequence[str], rescaled: bool, bands: bool
) -> Caption:
    metric = equivalent_metric(run, metric)
    name, task = title_of(metric), TASK_DEFINITIONS.get(metric)
    counts = table.groupby("group")["n"].last().sort_values()
    smallest, largest = (f"{counts.iloc[i]:,} ({counts.index[i]})" for i in (0, -1))
    baseline_note = (
        "Dashed, or a stroke at the right: the accuracy of always answering the category's most frequent word, counted "
        "on the same words. This baseline knows the category; the model does not."
    )
    missing_groups = [group for group in groups if group not in counts.index]
    reason = "0 at the last step" if rescaled else "not evaluated"
    return Caption(
        f"{name}: {task}." if task else f"{name}.",
        sentences(
            describe_lines(
                "band: its 95 % interval (Wilson)" if bands else "",
                "divided by the accuracy at the last step, as in the paper" if rescaled else "",
            ),
            baseline_note if "baseline" in table and table["baseline"].notna().any() else "",
            f"Left out: {', '.join(missing_groups)}, {reason}." if missing_groups else "",
            _describe_single_words(run, metric, counts.index) if rescaled else "",
        ),
        f"Data: {data_note(run, metric, 'the treebank given to the evaluation')}; n = {smallest} to {largest} words "
        "per category.",
        "Click a point to see the words behind it below.",
    )


def _describe_single_words(run: Run, metric: str, groups: Sequence[str]) -> str:
    """Return a sentence on categories whose right answers are nearly all one word, with the steps; "" without any."""
    cased = is_cased(run)
    answer_tables = [
        commonest_answers(merge_case(results.read_words(run, metric, group), cased)).assign(group=group)
        for group in groups
    ]
    return describe_single_words(pd.concat(answer_tables, ignore_index=True), run.step_unit)


def describe_single_words(answers: pd.DataFrame, unit: StepUnit) -> str:
    """Return a sentence on categories with one word for nearly all right answers; "" without any.

    `answers` are the `commonest_answers` of each category, with a column group.
    """
    dominated_rows = answers[(answers["share"] > ONE_WORD_FRACTION) & (answers["right"] >= MIN_ANSWERS)]
    remarks = []
    for (group, word), rows in dominated_rows.groupby(["group", "word"], sort=False):
        steps = list_steps(sorted(rows["step"].astype(int)), unit)
        of_words = rows["of_words"].iloc[-1]
        remarks.append(f"{group} at {steps}: “{word}”, {100 * of_words:.0f} % of the category's words")
    if not remarks:
        return ""
    return f"One word is more than {100 * ONE_WORD_FRACTION:.0f} % of all right answers: {'; '.join(remarks)}."


def _headline(order: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on the categories that reach half of their last accuracy first and last."""
    with_onset = order.dropna(subset="onset")
    if with_onset.empty:
        return "No category is above 0 at the last step."
    onsets = with_onset["onset"]
    first, last = (with_onset[onsets == end] for end in (onsets.min(), onsets.max()))
    begin, end = (axis.step_in_unit(int(rows["onset"].iloc[0])) for rows in (first, last))
    if len(first) == len(with_onset):
        return f"{_name_plural(with_onset['group'])} reach half their final accuracy by {begin}."
    return (
        f"{_name_plural(first['group'])} come first (half their final accuracy by {begin}); "
        f"{_name_plural(last['group'], first=False)} last ({end.removeprefix('step ')})."
    )


def _name_plural(groups: Sequence[str], first: bool = True) -> str:
    """Return categories in a sentence: parts of speech in the plural, other categories by name."""
    names_text = join_names(
        [f"{group}s" if group in style.PARTS_OF_SPEECH else describe_tag(group) for group in groups]
    )
    return sentence_case(names_text) if first else names_text


def describe_words(matches: pd.DataFrame, words: pd.DataFrame) -> Caption:
    """Return the caption: how many of a category's `words` are in `matches`, and how often these were right."""
    return Caption(
        f"{matches['word'].nunique():,} of {words['word'].nunique():,} words; {matches['correct'].sum():,} of "
        f"{matches['n'].sum():,} occurrences predicted correctly.",
        hint="Click a word to follow it on the Query page.",
    )
