"""Correlates of the ages of words: the order in which children say them, and predictors such as frequency."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from embryo_core import comparison
from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.regression import regress
from embryo_core.errors import FigureError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import design_name
from embryo_core.figures.figure import Caption, Figure, describe_seeds, make_figure, sentences
from embryo_core.figures.rows import places, plot_rows
from embryo_core.figures.word_ages import AGE_DEFINITION, UNKNOWN
from embryo_core.figures.word_tables import METRIC, age_table
from embryo_core.figures.words import describe_data
from embryo_core.groups import ALL
from embryo_core.types import Run

MEAN_OF_SEEDS = "their mean, with a line of one standard error on both sides; n adds up"


# === Comparison with children ===


def children_table(run: Run) -> pd.DataFrame:
    """Correlate a run's ages of words with children's, over all words and in each category.

    Columns: group, rho (Spearman's), low, high (95 %), n; NaN for fewer than four words. Raises ResultsError.
    """
    table = age_table(run).dropna(subset=["age", "children"])
    table = table.assign(category=table["category"].fillna(UNKNOWN))
    rows = []
    for group in [ALL, *sorted(table["category"].unique())]:
        group_rows = table if group == ALL else table[table["category"] == group]
        agreement = rank_agreement(group_rows["age"].tolist(), group_rows["children"].tolist())
        estimate = (agreement.rho, agreement.low, agreement.high) if agreement else (np.nan,) * 3
        rows.append((group, *estimate, len(group_rows)))
    return pd.DataFrame(rows, columns=["group", "rho", "low", "high", "n"])


def children(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the rank correlation of the ages of words with children's, by category and run."""
    tables = _tables_by_design(runs, lambda run: children_table(run).dropna(subset="rho"), "group", "rho")
    if not tables:
        raise FigureError(
            "No category has four words with both an age and an age of children, so there is no correlation."
        )
    seeds, table = next(iter(tables.items()))
    all_words = table.set_index("group").loc[ALL]
    order = {1: "the order", -1: "the reverse of the order"}.get(int(all_words["significant"]), "")
    agreement_text = f"words tend to come in {order} in which children say them"
    verdict = agreement_text if order else "whether the orders agree is not clear"
    interval = "95 %" if len(seeds) == 1 else "one standard error"
    caption = Caption(
        f"Spearman's rho of {design_name(seeds)} with children is {all_words['rho']:.2f} ({interval}: "
        f"{all_words['low']:.2f} to {all_words['high']:.2f}, n = {int(all_words['n'])}): {verdict}.",
        sentences(
            f"{AGE_DEFINITION} Children: the month at which half of them say the word, as listed.",
            "Words without one of the two are left out. Lines: 95 % (Bonett and Wright, 2000).",
            describe_seeds([*map(len, tables)], MEAN_OF_SEEDS),
        ),
    )
    title, names = "Ages of words, compared with children's", {"group": "row", "rho": "value"}
    return _plot_designs(runs, tables, names, "Spearman's rho", "children", title, caption)


# === Predictors ===


def predictor_table(run: Run) -> pd.DataFrame:
    """Regress log10 of a run's ages on properties of the words; empty if there are too few words.

    Columns: predictor, value (decades of steps per standard deviation, or against the largest category), low, high
    (95 %), n, r2. Words that lack a predictor are left out, and so is a predictor that most words lack. Raises
    ResultsError.
    """
    table = age_table(run).dropna(subset="age")
    numbers = pd.DataFrame(
        {
            "log frequency": np.log10(table["count"].astype(float)),
            "pieces": table["pieces"].astype(float),
            "concreteness": table["concreteness"].astype(float),
        }
    )
    numbers = numbers.loc[:, numbers.notna().mean() > 0.5]
    is_complete = numbers.notna().all(axis=1)
    classes = table.loc[is_complete, "category"].fillna(UNKNOWN).tolist()
    predictors = {str(name): column.to_numpy() for name, column in numbers[is_complete].items()}
    fit = regress(np.log10(table.loc[is_complete, "age"].to_numpy(float)), predictors, classes)
    if fit is None:
        return pd.DataFrame(columns=["predictor", "value", "low", "high", "n", "r2"])
    rows = pd.DataFrame([vars(coefficient) for coefficient in fit.coefficients])
    return rows.rename(columns={"name": "predictor"}).assign(n=fit.n, r2=fit.r2)


def predictors(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of what predicts the ages of words, for each design."""
    tables = _tables_by_design(runs, predictor_table, "predictor", "value")
    if not tables:
        raise FigureError("Too few words have an age and all predictors, so there is no regression.")
    first = next(iter(tables.values()))
    significant = first.loc[first["significant"] != 0, "predictor"]
    fits = "; ".join(
        f"{design_name(seeds)}: R² = {table['r2'].iloc[0]:.2f}, n = {table['n'].iloc[0]}"
        for seeds, table in tables.items()
    )
    caption = Caption(
        f"Predictors of a word's age, all others held fixed: {'; '.join(significant) or 'none is significant'}.",
        sentences(
            "Linear regression of log10 of the age; above 0 is later. Numbers are in standard deviations, categories "
            "relative to the largest. Lines: 95 % (Student's).",
            f"Frequency is that in the training text. Words without a predictor are left out. {fits}.",
            describe_seeds([*map(len, tables)], MEAN_OF_SEEDS),
        ),
    )
    title, names = "Predictors of the age of words", {"predictor": "row"}
    return _plot_designs(runs, tables, names, "change of log10 of the age", "predictors", title, caption)


# === Designs of runs ===


def _tables_by_design(
    runs: Sequence[Run], read: Callable[[Run], pd.DataFrame], key: str, value: str
) -> dict[tuple[Run, ...], pd.DataFrame]:
    """Return the table of each design, read by `read` and averaged over its seeds; keys are the runs with a table.

    `low` and `high` of a mean are one standard error from it, `seeds` is the number of seeds, and n is the sum. The
    column `significant` is 1 if the intervals of all seeds are above 0, -1 if all are below, else 0.
    """
    by_design = {}
    for seeds in comparison.group_by_design(runs):
        tables = {
            run: table.assign(significant=(table["low"] > 0).astype(int) - (table["high"] < 0))
            for run in seeds
            if len(table := read(run))
        }
        if not tables:
            continue
        rows = pd.concat(tables.values()).groupby(key, sort=False)
        means = rows.mean().assign(n=rows["n"].sum(), seeds=rows.size())
        error, sign = rows[value].sem(), rows["significant"].min().where(rows["significant"].nunique() == 1, 0)
        means = means.assign(low=means[value] - error, high=means[value] + error, significant=sign).reset_index()
        by_design[tuple(tables)] = means if len(tables) > 1 else next(iter(tables.values()))
    return by_design


def _plot_designs(
    runs: Sequence[Run],
    tables: Mapping[tuple[Run, ...], pd.DataFrame],
    names: Mapping[str, str],
    x_title: str,
    suffix: str,
    title: str,
    caption: Caption,
) -> Figure:
    """Return the figure of the tables of some designs; `names` maps their columns to the columns of `plot_rows`."""
    plotted_runs = [run for seeds in tables for run in seeds]
    run_tables = [rows.assign(run=design_name(seeds)).drop(columns="significant") for seeds, rows in tables.items()]
    table = pd.concat(run_tables, ignore_index=True)
    rows = table.rename(columns=dict(names))
    if len(tables) == 1:
        rows["row"] = [f"{row.row} (n = {row.n})" for row in rows.itertuples()]
    table["place"] = places(rows)
    missing = tuple(run.name for run in runs if run not in plotted_runs)
    caption = replace(caption, data=describe_data(plotted_runs[0]))
    plot = plot_rows(rows, x_title)
    return make_figure(
        plotted_runs, f"{plotted_runs[0].name}-words-{suffix}", title, plot, table, caption, METRIC, missing=missing
    )
