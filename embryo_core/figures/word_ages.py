"""Figures of the ages of words: their order, their correlation with children's, and their predictors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import compare
from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.regression import regress
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.acquisition import ONE_SEED_NOTE
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import design_name
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.figures.rows import error_bar, places, plot_rows
from embryo_core.figures.word_tables import METRIC, age_table
from embryo_core.figures.words import category_styles, describe_data, describe_estimate
from embryo_core.groups import ALL
from embryo_core.types import Run
from embryo_core.words import quantity

UNKNOWN = "no category"
FREQUENCY, PIECES, CONCRETENESS = "log frequency", "pieces", "concreteness"
AGE_DEFINITION = "Age: the step at which a word's surprisal is halfway from chance to its lowest."


def _read_tables(runs: Sequence[Run], axis: AxisChoice) -> dict[str, pd.DataFrame]:
    """Return the words with an age, in whole steps, of each run that the axis supports and that has such words.

    Raises FigureError if no run has any.
    """
    by_run = {run.name: age_table(run).dropna(subset="age") for run in runs if axis.supports(run)}
    tables = {
        name: table.assign(category=table["category"].fillna(UNKNOWN), age=table["age"].round().astype(int))
        for name, table in by_run.items()
        if len(table)
    }
    if not tables:
        raise FigureError(f"No word of {', '.join(run.name for run in runs)} has an age, so there is nothing to draw.")
    return tables


# === In the order of acquisition ===


def ages(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the ages of words with their intervals, in the order of the first run."""
    tables = _read_tables(runs, axis)
    plotted_runs = [run for run in runs if run.name in tables]
    first = tables[plotted_runs[0].name]
    low, high = _age_range(first)
    tables[plotted_runs[0].name] = first.assign(
        **{"from": first["earliest"].clip(lower=low).round().astype(int)},
        to=first["latest"].clip(upper=high).round().astype(int),
    )
    rank = {word: i for i, word in enumerate(first["word"], 1)}
    plot = _plot_ages(plotted_runs, [axis.for_run(run, runs) for run in plotted_runs], tables, rank)
    step_axis = axis.for_run(plotted_runs[0], runs)
    step_axis.set_range(plot, [int(low), int(high)])
    step_axis.mark_step(plot, int(high))
    table = pd.concat([table.assign(run=name) for name, table in tables.items()], ignore_index=True)
    table.insert(0, "place", table["word"].map(rank))
    name, title = f"{plotted_runs[0].name}-words-ages", "Words by their age of acquisition"
    missing = tuple(run.name for run in runs if run not in plotted_runs)
    return make_figure(
        plotted_runs, name, title, plot, table, _describe_ages(plotted_runs, tables), METRIC, missing=missing
    )


def _plot_ages(
    runs: Sequence[Run], axes: Sequence[StepAxis], tables: Mapping[str, pd.DataFrame], rank: Mapping[str, int]
) -> go.Figure:
    """Plot the ages of the words with a `rank`, in the colours of their categories.

    Only the first run has intervals and a legend of categories; other runs are fainter and have a symbol each.
    """
    plot = go.Figure()
    looks = category_styles([str(category) for table in tables.values() for category in table["category"]])
    for i, (run, axis) in enumerate(zip(runs, axes, strict=True)):
        ranked_rows = tables[run.name][tables[run.name]["word"].isin(list(rank))]
        for category, rows in ranked_rows.groupby("category"):
            colour, symbol = looks[str(category)]
            error_bars = {}
            if i == 0:
                age, low, high = (np.array(axis.values(rows[end])) for end in ("age", "from", "to"))
                error_bars = {"error_x": error_bar(age, low, high, style.with_opacity(colour, 0.35))}
            plot.add_scatter(
                x=axis.values(rows["age"]),
                y=rows["word"].map(rank),
                mode="markers",
                name=style.escape_text(str(category)) if i == 0 else style.escape_text(run.name),
                legendgroup=str(category) if i == 0 else run.name,
                showlegend=i == 0 or category == ranked_rows["category"].iloc[0],
                marker={"symbol": symbol if i == 0 else style.run_look(i)[0], "size": 7, "color": colour},
                opacity=1 if i == 0 else 0.45,
                customdata=[[row.word, row.age, _hover_text(row, run, axis)] for row in rows.itertuples()],
                hovertemplate="%{customdata[2]}<extra></extra>",
                **error_bars,
            )
    return style.finish(plot, "words, by their age in the run", height=560)


def _describe_ages(runs: Sequence[Run], tables: Mapping[str, pd.DataFrame]) -> Caption:
    first_run, word_count = runs[0], len(tables[runs[0].name])
    order_text = (
        f"{quantity(word_count, 'word').capitalize()} of {first_run.name} with an age, from the first acquired to the "
        "last."
    )
    agreements = [_describe_agreement(tables, first_run.name, run.name) for run in runs[1:]]
    is_compared = len(runs) > 1
    return Caption(
        agreements[0] if is_compared else order_text,
        sentences(
            order_text if is_compared else "",
            AGE_DEFINITION,
            "Lines: 95 % intervals, from resampled occurrences of the word.",
            "Fainter marks: the same words in other runs." if is_compared else "",
            *agreements[1:],
            ONE_SEED_NOTE if is_compared and 1 in map(len, compare.group_by_design(runs)) else "",
        ),
        describe_data(first_run),
        "Click a word for its curve.",
    )


def _age_range(table: pd.DataFrame) -> tuple[float, float]:
    """Return the first and the last step of all ages and their intervals."""
    steps = table[["earliest", "age", "latest"]].to_numpy(float)
    return float(steps[np.isfinite(steps)].min()), float(steps[np.isfinite(steps)].max())


def _hover_text(row: Any, run: Run, axis: StepAxis) -> str:
    children_note = f"<br>children: {row.children:.1f} months" if pd.notna(row.children) else ""
    label = f"<b>{style.escape_text(row.word)}</b>, {style.escape_text(row.category)}<br>{style.escape_text(run.name)}"
    return f"{label}: {describe_estimate(row._asdict(), axis)}{children_note}"


def _describe_agreement(tables: Mapping[str, pd.DataFrame], first: str, second: str) -> str:
    common_words = tables[first].merge(tables[second], on="word", suffixes=("", "_other"))
    agreement = rank_agreement(common_words["age"].tolist(), common_words["age_other"].tolist())
    if agreement is None:
        return f"The orders of {first} and {second} cannot be compared: {quantity(len(common_words), 'word')} in both."
    return (
        f"The orders of {first} and {second} agree with Spearman's rho = {agreement.rho:.2f} (95 %: "
        f"{agreement.low:.2f} to {agreement.high:.2f}) over {quantity(agreement.n, 'word')}."
    )


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

    def caption(tables: Mapping[tuple[Run, ...], pd.DataFrame]) -> Caption:
        seeds, table = next(iter(tables.items()))
        all_words = table.set_index("group").loc[ALL]
        order = {1: "the order", -1: "the reverse of the order"}.get(int(all_words["significant"]), "")
        agreement_text = f"words tend to come in {order} in which children say them"
        verdict = agreement_text if order else "whether the orders agree is not clear"
        interval = "95 %" if len(seeds) == 1 else "one standard error"
        return Caption(
            f"Spearman's rho of {design_name(seeds)} with children is {all_words['rho']:.2f} ({interval}: "
            f"{all_words['low']:.2f} to {all_words['high']:.2f}, n = {int(all_words['n'])}): {verdict}.",
            sentences(
                f"{AGE_DEFINITION} Children: the month at which half of them say the word, as listed.",
                "Words without one of the two are left out. Lines: 95 % (Bonett and Wright, 2000).",
                _describe_seeds(tables),
            ),
        )

    tables = _tables_by_design(runs, lambda run: children_table(run).dropna(subset="rho"), "group", "rho")
    if not tables:
        raise FigureError(
            "No category has four words with both an age and an age of children, so there is no correlation."
        )
    title, names = "Ages of words, compared with children's", {"group": "row", "rho": "value"}
    return _plot_designs(runs, tables, names, "Spearman's rho", "children", title, caption(tables))


# === Predictors ===


def predictor_table(run: Run) -> pd.DataFrame:
    """Regress log10 of a run's ages on properties of the words; empty if there are too few words.

    Columns: predictor, value (decades of steps per standard deviation, or against the largest category), low, high
    (95 %), n, r2. Words that lack a predictor are left out, and so is a predictor that most words lack. Raises
    ResultsError.
    """
    table = age_table(run).dropna(subset="age")
    numbers = {
        FREQUENCY: np.log10(table["count"].astype(float)),
        PIECES: table["pieces"].astype(float),
        CONCRETENESS: table["concreteness"].astype(float),
    }
    numbers = {name: column for name, column in numbers.items() if column.notna().mean() > 0.5}
    is_complete = pd.Series(True, table.index)
    for column in numbers.values():
        is_complete &= column.notna()
    classes = table.loc[is_complete, "category"].fillna(UNKNOWN).tolist()
    predictors = {name: column[is_complete].to_numpy() for name, column in numbers.items()}
    fit = regress(np.log10(table.loc[is_complete, "age"].to_numpy(float)), predictors, classes)
    rows = (
        [
            (coefficient.name, coefficient.value, coefficient.low, coefficient.high, fit.n, fit.r2)
            for coefficient in fit.coefficients
        ]
        if fit
        else []
    )
    return pd.DataFrame(rows, columns=["predictor", "value", "low", "high", "n", "r2"])


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
            _describe_seeds(tables),
        ),
    )
    title, names = "Predictors of the age of words", {"predictor": "row"}
    return _plot_designs(runs, tables, names, "change of log10 of the age", "predictors", title, caption)


# === Comparison of runs ===


def _tables_by_design(
    runs: Sequence[Run], read: Callable[[Run], pd.DataFrame], key: str, value: str
) -> dict[tuple[Run, ...], pd.DataFrame]:
    """Return the table of each design, read by `read` and averaged over its seeds; keys are the runs with a table.

    `low` and `high` of a mean are one standard error from it, `seeds` is the number of seeds, and n is the sum. The
    column `significant` is 1 if the intervals of all seeds are above 0, -1 if all are below, else 0.
    """
    by_design = {}
    for seeds in compare.group_by_design(runs):
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


def _describe_seeds(tables: Mapping[tuple[Run, ...], Any]) -> str:
    """Return the part of the caption on seeds; "" for one run."""
    counts = [*map(len, tables)]
    mean_note = "Several seeds: their mean, with a line of one standard error on both sides; n adds up."
    single_note = "A mark of a single seed does not show the variation between seeds."
    return sentences(mean_note if max(counts) > 1 else "", single_note if min(counts) == 1 < sum(counts) else "")


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
