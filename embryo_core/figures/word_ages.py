"""The figure of words by their age of acquisition."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import comparison
from embryo_core.curves.agreement import rank_agreement
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.figure import Caption, Figure, describe_seeds, make_figure, sentences
from embryo_core.figures.rows import error_bar
from embryo_core.figures.word_tables import METRIC, age_table
from embryo_core.figures.words import category_styles, describe_data, describe_estimate
from embryo_core.types import Run
from embryo_core.words import quantity

UNKNOWN = "no category"
AGE_DEFINITION = "Age: the step at which a word's surprisal is halfway from chance to its lowest."


def _read_tables(runs: Sequence[Run], axis: AxisChoice) -> dict[str, pd.DataFrame]:
    """Return the words with an age, in whole steps, of each run that the axis supports and that has such words.

    Raises FigureError if no run has any.
    """
    by_run = {run.name: age_table(run).dropna(subset="age") for run in runs if axis.supports(run, runs[0])}
    tables = {
        name: table.assign(category=table["category"].fillna(UNKNOWN), age=table["age"].round().astype(int))
        for name, table in by_run.items()
        if len(table)
    }
    if not tables:
        raise FigureError(f"No word of {', '.join(run.name for run in runs)} has an age, so there is nothing to draw.")
    return tables


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
    step_ranges = [(axis.for_run(run, runs), map(int, _age_range(tables[run.name]))) for run in plotted_runs]
    counts = [count for run_axis, steps in step_ranges for count in run_axis.counts([*steps])]
    step_axis.set_ends(plot, min(counts), max(counts))
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
            describe_seeds([*map(len, comparison.group_by_design(runs))]),
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
