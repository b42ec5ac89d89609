"""Accuracy on words for which a run added pieces, and on all other words, by part of speech and run."""

from collections.abc import Sequence

import pandas as pd

from embryo_core import results
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note, make_figure
from embryo_core.figures.rows import plot_rows
from embryo_core.findings.words import equivalent_metric
from embryo_core.groups import ALL, TAGS
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Run
from embryo_core.words import name_step, percent, quantity

NEW_PIECES, OTHER_WORDS = "new pieces", "other words"
MIN_WORDS = 5  # least number of measured words in a row


def new_words(run: Run) -> frozenset[str]:
    """Return the words for which continued pretraining added pieces; empty if the tokenizer cannot be read."""
    try:
        return frozenset(load_tokenizer(run).new_words.values())
    except EmbryoError:
        return frozenset()


def accuracy_table(run: Run, metric: str, groups: Sequence[str], tokenizer: Tokenizer) -> pd.DataFrame:
    """Return the accuracy at the last step on words with new pieces in `tokenizer` and on other words, by group.

    Columns: group (ALL first), words (NEW_PIECES or OTHER_WORDS), step, value, low, high (Wilson's 95 % interval), n.
    Empty if fewer than MIN_WORDS with new pieces were measured. Raises ResultsError.
    """
    metric, new = equivalent_metric(run, metric), {*tokenizer.new_words.values()}
    scores = results.read_scores(run, metric)
    last_step = int(scores["step"].max()) if len(scores) else 0
    rows = results.read_words(run, metric, step=last_step)
    is_new = {
        word: len(pieces := tokenizer.split_words(word)) == 1 and pieces[0] in new for word in rows["word"].unique()
    }
    word_kinds = rows["word"].map(is_new).map({True: NEW_PIECES, False: OTHER_WORDS})
    if rows.loc[word_kinds == NEW_PIECES, "n"].sum() < MIN_WORDS:
        return pd.DataFrame()
    group_rows = []
    for group in (ALL, *groups):
        words = rows if group == ALL else rows[rows["tag"].isin(TAGS.get(group, ()))]
        for kind, kind_rows in words.groupby(word_kinds):
            if (n := int(kind_rows["n"].sum())) >= MIN_WORDS:
                group_rows.append((group, kind, last_step, kind_rows["correct"].sum() / n, n))
    return with_intervals(pd.DataFrame(group_rows, columns=["group", "words", "step", "value", "n"]))


def accuracy(runs: Sequence[Run], axis: AxisChoice, metric: str, groups: tuple[str, ...]) -> Figure:
    """Return the figure of the accuracy on words with new pieces, and on other words, at each run's last step.

    Raises FigureError if no run added pieces, or no words with new pieces were measured.
    """
    owner = next((run for run in runs if new_words(run)), None)
    if owner is None:
        raise FigureError(f"None of {', '.join(run.name for run in runs)} has pieces beyond those that it began with.")
    tokenizer = load_tokenizer(owner)
    tables = {run: table for run in runs if len(table := accuracy_table(run, metric, groups, tokenizer))}
    if not tables:
        raise FigureError(f"None of the words that have pieces of their own in {owner.name} was measured.")
    frame = pd.concat([table.assign(run=run.name) for run, table in tables.items()], ignore_index=True)
    rows = frame.assign(row=frame["group"] + ", " + frame["words"])
    order = [f"{group}, {kind}" for group in (ALL, *groups) for kind in (NEW_PIECES, OTHER_WORDS)]
    rows = rows.sort_values("row", key=lambda names: names.map(order.index), kind="stable")
    steps = ", ".join(
        f"{run.name} at {name_step(int(table['step'].iloc[0]), run.step_unit)}" for run, table in tables.items()
    )
    accuracies = "; ".join(map(_describe_accuracy, tables, tables.values()))
    return make_figure(
        [*tables],
        f"{runs[0].name}-{metric}-new-pieces",
        "Words with new pieces, and others",
        plot_rows(rows, "accuracy"),
        frame,
        Caption(
            f"Words that have pieces of their own in {owner.name}: {accuracies}.",
            f"{owner.name} was given {quantity(len(tokenizer.new_words), 'piece')} for words that were split before. "
            f"Each run is at its last step: {steps}. A run without these pieces has to get all pieces of a word right. "
            f"Lines: 95 % (Wilson). Rows have at least {MIN_WORDS} words.",
            f"Words: {data_note(runs[0], equivalent_metric(runs[0], metric), 'a treebank')}.",
        ),
        metric,
        missing=tuple(run.name for run in runs if run not in tables),
    )


def _describe_accuracy(run: Run, table: pd.DataFrame) -> str:
    """Return the accuracies of an `accuracy_table` over all groups: "small gets 10 % right (20 % of all others)"."""
    values = table[table["group"] == ALL].set_index("words")["value"]
    others = f" ({percent(values[OTHER_WORDS])} of all others)" if OTHER_WORDS in values else ""
    return f"{run.name} gets {percent(values[NEW_PIECES])} right{others}"
