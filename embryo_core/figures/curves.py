"""Curves over the steps, of one run or several: a line per run, seeds of a design as one line with a band.

One run has a colour and a symbol for each category. Several runs have a symbol and a lightness each; if there are many
lines, each category has a panel, and each run a colour instead of the lightness. Dashed lines are baselines.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from embryo_core import comparison
from embryo_core.curves import interval
from embryo_core.errors import FigureError
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curve_plot import plot_curves
from embryo_core.figures.figure import Caption, Figure, describe_seeds, make_figure, sentences
from embryo_core.figures.lines import Curves, Line, any_baseline, in_panels, same_changes
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run
from embryo_core.words import count_range, join_names, layer_name


def curves_figure(
    runs: Sequence[Run],
    axis: AxisChoice,
    read: Callable[[Run], pd.DataFrame],
    curves: Curves,
    name: str,
    title: str,
    caption: Callable[[pd.DataFrame], Caption],
) -> Figure:
    """Return the Figure of the curves of `runs`; the first is the run of the time bar.

    `read` returns a run's table, empty without data; `caption` describes the table of the first line. Files are named
    after the first run and `name`. Runs without data or the axis's unit are `missing` in the Figure. Raises FigureError
    if no run has data.
    """
    lines, missing = make_lines(runs, axis, read, curves)
    if not lines:
        raise FigureError(f"'{title}' has nothing to draw of {join_names([run.name for run in runs])}.")
    plotted_runs = [run for run in runs if run.name not in missing]
    full_caption = caption(lines[0].table)
    if len(plotted_runs) > 1:
        full_caption = _with_runs(full_caption, lines, in_panels(lines, curves))
    return make_figure(
        plotted_runs,
        f"{runs[0].name}-{name}",
        title,
        plot_curves(lines, curves),
        _export_tables(lines, axis),
        full_caption,
        curves.metric,
        missing=tuple(missing),
    )


def make_lines(
    runs: Sequence[Run], axis: AxisChoice, read: Callable[[Run], pd.DataFrame], curves: Curves
) -> tuple[list[Line], list[str]]:
    """Return a line for each design in the order of the runs, and the names of runs without data or the axis's unit."""
    lines: list[Line] = []
    missing = [run.name for run in runs if not axis.supports(run, runs[0])]
    for seeds in comparison.group_by_design([run for run in runs if run.name not in missing]):
        tables = {run: table for run in seeds if len(table := read(run))}
        missing += [run.name for run in seeds if run not in tables]
        if not tables:
            continue
        run, table = next(iter(tables.items()))
        if len(tables) == 1:
            table = with_smoothed(table, curves.value, axis.smoothing, [curves.by])
            rows = curves.rows(table)
            rows = rows.assign(**{column: table[column] for column in smoothing.COLUMNS if column in table})
        else:
            rows = comparison.average_seeds([curves.rows(table) for table in tables.values()])
            rows = with_smoothed(rows, "value", axis.smoothing, ["curve"])
            table = _mean_table([*tables.values()], rows, curves)
        if len(rows):
            lines.append(Line(design_name([*tables]), axis.for_run(run, runs), rows, table, len(tables)))
    return lines, missing


def _mean_table(tables: Sequence[pd.DataFrame], rows: pd.DataFrame, curves: Curves) -> pd.DataFrame:
    """Return the averaged `rows` under the column names of `tables`, with the means of their other numbers."""
    key_columns = [curves.by, "step"]
    grouped = pd.concat(tables, ignore_index=True).groupby(key_columns, sort=False)
    means = grouped.mean(numeric_only=True)
    if "layer" in means:
        means["layer"] = means["layer"].where(grouped["layer"].nunique() == 1)  # the seeds' best layers may differ
    means = means.reset_index()
    table = curves.restore_names(rows)
    other_columns = [column for column in means if column not in table]
    return table.merge(means[[*key_columns, *other_columns]], on=key_columns, how="left")


def by_layer(bold: int | None = None, **options: Any) -> Curves:
    """Return the `Curves` of layers, with further fields in `options`; the curve of the layer `bold` is thick."""
    emphasis = {} if bold is None else {bold: 1.7}
    return Curves(by="layer", label=layer_name, styles=style.layer_styles, height=420, emphasis=emphasis, **options)


def with_step(table: pd.DataFrame, curves: pd.DataFrame, step: int, by: str, before: str) -> pd.DataFrame:
    """Add a column `now`, each category's value at a step, to a table of categories, in front of column `before`."""
    step_values = curves[curves["step"] == step].set_index(by)["value"]
    table = table.copy()
    table.insert(table.columns.get_loc(before), "now", table[by].map(step_values))
    return table


def with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Add the 95 % intervals (Wilson), low and high, to a table of proportions (value, of n cases)."""
    low, high = interval(table["value"].to_numpy(), table["n"].to_numpy())
    return table.assign(low=low, high=high)


def designs(runs: Sequence[Run]) -> dict[str, tuple[Run, ...]]:
    """Return the runs of each design by the name of its line, the first run's design first."""
    return {design_name(seeds): seeds for seeds in comparison.group_by_design(runs)}


def design_name(seeds: Sequence[Run]) -> str:
    """Return the name of a line: a run, or the first seed of a design and the number of seeds."""
    return seeds[0].name if len(seeds) == 1 else f"{seeds[0].name} (mean of {len(seeds)} seeds)"


def _export_tables(lines: Sequence[Line], axis: AxisChoice) -> pd.DataFrame:
    """Return the tables of all lines with the column run and, for an axis in another unit, a column of that unit."""
    tables = []
    for line in lines:
        table = line.table.drop(columns="run", errors="ignore")
        table.insert(0, "run", line.name)
        tables.append(table if axis.unit == "step" else table.assign(**{axis.unit: line.axis.counts(table["step"])}))
    return pd.concat(tables, ignore_index=True)


def _with_runs(caption: Caption, lines: Sequence[Line], panels: bool) -> Caption:
    """Add the runs of the figure, their n, and how they are drawn to the caption of one run."""
    first = lines[0].name
    counts_by_line = ((line.name, line.rows["n"].dropna().astype(int)) for line in lines)
    runs_note = "; ".join(name if n.empty else f"{name} (n = {count_range(n)})" for name, n in counts_by_line)
    look = "colour" if panels else "lightness"
    changes = [(line.name, ", ".join(map(line.axis.describe, line.axis.changes))) for line in lines]
    changes_note = "; ".join(f"{name} {change}" for name, change in changes if change)
    seeds = "; ".join(f"{line.name}: {count_range(line.rows['seeds'])}" for line in lines if line.seeds > 1)
    mean = f"their mean, with a band of one standard error on both sides (seeds at a step: {seeds})"
    details = sentences(
        caption.details,
        f"Numbers up to here are those of {first}. Each run has its symbol and {look}: {runs_note}.",
        describe_seeds([line.seeds for line in lines], mean),
        "Dashed: the baseline, one line if all runs share it." if any_baseline(lines) else "",
        "" if same_changes(lines) else f"Vertical lines: {changes_note}.",
    )
    return replace(caption, details=details, hint=sentences(caption.hint, "Point at a curve to read all runs."))
