"""The order in which categories are acquired: a row per category, with a mark and its interval for each run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import comparison, results
from embryo_core.comparison import Rule
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import designs
from embryo_core.figures.figure import Caption, Figure, describe_seeds, make_figure, name_measures, sentences
from embryo_core.figures.rows import set_rows, shift
from embryo_core.findings.words import equivalent_metric
from embryo_core.groups import describe_tag
from embryo_core.types import Run, StepUnit
from embryo_core.words import count_range, percent

BAR_NOTE = "Line: interval of the step, from the 95 % intervals of the accuracy, from the evaluated step before it on."
RULE_DESCRIPTIONS: dict[Rule, str] = {
    "half": "First step from which the accuracy stays at or above half of its last value. Dips within its 95 % "
    f"interval do not count. {BAR_NOTE}",
    "paper": "First step from which the accuracy stays at or above a tenth of its last value, for categories that "
    "rise from zero. Of those that rise at the same checkpoint, the one with the steeper rescaled slope is faster, as "
    "in Appendix C.4 of the paper; docs/metrics.md has the rule. Dips within the 95 % interval do not count. "
    f"{BAR_NOTE}",
    "chance": "First step from which the accuracy stays at or above halfway from chance, one half, to its last value. "
    f"Dips within its 95 % interval do not count. {BAR_NOTE}",
}
TIES_NOTE = "were acquired between the same two checkpoints"
PAPER_TIES_NOTE = "rise at the same checkpoint with slopes that cannot be distinguished"
MEAN_OF_SEEDS = (
    "the mark is their mean onset, the line the mean of their intervals, at least one standard error long on each side"
)


def acquisition(
    runs: Sequence[Run],
    axis: AxisChoice,
    metric: str,
    groups: Sequence[str],
    rule: Rule = "half",
    name: str = "",
    label: Callable[[str], str] = str,
    unit: str = "words",
) -> Figure:
    """Return the figure of when each run acquires each category, by a rule; seeds of a design are averaged.

    `name` is the prefix of its files' names, by default the first run and the metric; `label` returns the displayed
    name of a category, and `unit` says what n counts. Raises FigureError if no category is above 0, or above chance, at
    the last step.
    """
    runs_by_line, run_onsets, table = _read_onsets(runs, axis, metric, groups, rule)
    table["group"] = table["group"].map(label)
    if table["onset"].isna().all():
        floor = "chance" if rule == "chance" else "0"
        raise FigureError(f"No category has an accuracy above {floor} at the last step, so there is no order yet.")
    axes = {line: axis.for_run(runs_by_line[line][0], runs) for line in table["run"].unique()}
    plotted_runs = [run for line in axes for run in runs_by_line[line]]
    seeds = sentences(
        describe_seeds([len(runs_by_line[line]) for line in axes], MEAN_OF_SEEDS),
        *(_describe_spread(line, run_onsets, runs_by_line[line]) for line in axes),
    )
    return make_figure(
        plotted_runs,
        f"{name or f'{runs[0].name}-{metric}'}-acquisition",
        f"Order of acquisition: {name_measures(plotted_runs, metric)}",
        plot_acquisition(table, axes, _evaluated_range(runs[0], metric, table)),
        table.assign(metric=[equivalent_metric(runs_by_line[line][0], metric) for line in table["run"]]),
        _caption(table, rule, seeds, unit),
        metric,
        missing=tuple(run.name for run in runs if run not in plotted_runs),
    )


def _read_onsets(
    runs: Sequence[Run], axis: AxisChoice, metric: str, groups: Sequence[str], rule: Rule
) -> tuple[dict[str, tuple[Run, ...]], pd.DataFrame, pd.DataFrame]:
    """Return the runs of each design whose unit the axis supports, and the onsets of all runs and of all designs."""
    supported_runs = [run for run in runs if axis.supports(run, runs[0])]
    runs_by_line, run_onsets = designs(supported_runs), comparison.acquisitions(supported_runs, metric, groups, rule)
    run_onsets["before"] = _evaluated_before(run_onsets, {run.name: run for run in supported_runs}, metric)
    return runs_by_line, run_onsets, comparison.average_acquisitions(run_onsets, _name_runs(runs_by_line))


def _name_runs(runs_by_line: Mapping[str, Sequence[Run]]) -> dict[str, list[str]]:
    return {line: [run.name for run in seeds] for line, seeds in runs_by_line.items()}


def _evaluated_before(table: pd.DataFrame, runs: Mapping[str, Run], metric: str) -> pd.Series:
    """Return the last step evaluated before each `earliest` step (or the first one), at which a bar begins."""
    bar_starts = table["earliest"].copy()
    for name, rows in table.dropna(subset="earliest").groupby("run"):
        steps = np.unique(results.read_scores(runs[name], equivalent_metric(runs[name], metric))["step"])
        bar_starts[rows.index] = steps[np.maximum(np.searchsorted(steps, rows["earliest"].astype(int)) - 1, 0)]
    return bar_starts


def agreement(
    runs: Sequence[Run], axis: AxisChoice, metric: str, groups: Sequence[str], rule: Rule = "half"
) -> pd.DataFrame:
    """Return the rank agreement of designs with each other and with the paper, and of the seeds of each design.

    Columns are those of `comparison.agreements`.
    """
    runs_by_line, run_onsets, table = _read_onsets(runs, axis, metric, groups, rule)
    agreements = comparison.agreements(table)
    seed_agreements = comparison.seed_agreements(run_onsets, _name_runs(runs_by_line).values())
    return pd.concat([agreements, seed_agreements], ignore_index=True) if len(seed_agreements) else agreements


def _describe_spread(line: str, run_onsets: pd.DataFrame, seeds: Sequence[Run]) -> str:
    """Return a sentence on how far the orders of a design's `seeds` agree; "" without two orders to compare."""
    rho = comparison.seed_agreements(run_onsets, [[run.name for run in seeds]])["rho"].dropna()
    if rho.empty:
        return ""
    spread = f"; {rho.min():.2f} to {rho.max():.2f}" if len(rho) > 1 else ""
    return f"The orders of the {len(seeds)} seeds of {line} agree at a rank correlation of {rho.mean():.2f}{spread}."


def _caption(table: pd.DataFrame, rule: Rule, seeds: str, unit: str) -> Caption:
    is_compared = table["run"].nunique() > 1
    counts = {run: count_range(rows["n"]) for run, rows in table.groupby("run", sort=False)}
    runs_note = "; ".join(f"{run} (n = {n})" for run, n in counts.items())
    without_onset = [
        f"{row.group} in {row.run}" if is_compared else row.group for row in table[table["onset"].isna()].itertuples()
    ]
    first, *rest = RULE_DESCRIPTIONS[rule].split(". ")
    return Caption(
        f"{first}.",
        sentences(
            ". ".join(rest),
            ""
            if is_compared
            else f"Categories that share a place (=) {PAPER_TIES_NOTE if rule == 'paper' else TIES_NOTE}.",
            seeds,
            f"Without an onset: {', '.join(without_onset)}." if without_onset else "",
        ),
        f"{unit.capitalize()} per category: {runs_note}."
        if is_compared
        else f"n = {next(iter(counts.values()))} {unit} per category.",
    )


# === Plot ===


def _evaluated_range(run: Run, metric: str, table: pd.DataFrame) -> tuple[int, int]:
    """Return the first and last step at which a run was evaluated by a metric, or else those of the table's onsets."""
    evaluated_steps = results.read_scores(run, equivalent_metric(run, metric))["step"]
    if len(evaluated_steps):
        return int(evaluated_steps.min()), int(evaluated_steps.max())
    with_onset = table.dropna(subset="onset")
    return int(with_onset["earliest"].min()), int(with_onset["latest"].fillna(with_onset["onset"]).max())


def plot_acquisition(table: pd.DataFrame, axes: Mapping[str, StepAxis], steps: Sequence[int]) -> go.Figure:
    """Return the plot of onsets by design; `axes` has the axis of each design, in the order of the legend.

    Rows are in the order of the first design. If there is only one, labels of rows begin with their places, and rows
    that share a place have a grey background. The axis covers `steps`.
    """
    with_onset, figure = table.dropna(subset="onset"), go.Figure()
    rows_by_line = {line: with_onset[with_onset["run"] == line] for line in axes}
    order = list(dict.fromkeys(group for rows in rows_by_line.values() for group in rows["group"]))
    labels = [*map(describe_tag, order)]
    for i, (line, rows) in enumerate(rows_by_line.items()):
        heights = [len(order) - 1 - order.index(group) - shift(i, len(axes)) for group in rows["group"]]
        _add_intervals(figure, rows, heights, axes[line], i, len(axes))
    first_axis = next(iter(axes.values()))
    _set_axis_range(figure, rows_by_line, axes, steps)
    first_axis.mark_step(figure, max(steps))
    style.finish(figure, "", height=100 + (16 + 14 * len(axes)) * max(1, len(order)))
    if len(axes) > 1:
        return set_rows(figure, labels)
    first_axis.mark_changes(figure, steps)
    for _, rows in with_onset.reset_index(drop=True).groupby("place"):
        if len(rows) > 1:  # rows that share a place
            top, bottom = len(with_onset) - 1 - rows.index.min(), len(with_onset) - 1 - rows.index.max()
            rectangle = {"x0": 0, "x1": 1, "y0": bottom - 0.45, "y1": top + 0.45}
            fill = {"fillcolor": style.with_opacity(style.GREY, 0.14), "line_width": 0, "layer": "below"}
            figure.add_shape(type="rect", xref="paper", yref="y", **rectangle, **fill)
    marks = with_onset["place"].duplicated(keep=False).map({True: "=", False: "."})
    return set_rows(figure, [f"{rank}{mark} {name}" for rank, mark, name in zip(with_onset["place"], marks, labels)])


def _set_axis_range(
    figure: go.Figure, rows_by_line: Mapping[str, pd.DataFrame], axes: Mapping[str, StepAxis], steps: Sequence[int]
) -> None:
    """Set the axis to run from the first of `steps` to the last, or to the ends of the bars beyond."""
    first_axis = next(iter(axes.values()))
    counts = first_axis.counts([min(steps), max(steps)])
    for line, rows in rows_by_line.items():
        if len(rows):
            counts += axes[line].counts([int(rows["before"].min()), int(rows["latest"].fillna(rows["onset"]).max())])
    first_axis.set_ends(figure, min(counts), max(counts), margin=0.02)


def _add_intervals(
    figure: go.Figure, rows: pd.DataFrame, heights: Sequence[float], axis: StepAxis, i: int, run_count: int
) -> None:
    """Add an interval and a mark for each category of the i-th of several `run_count`.

    Their colour is the category's, or the run's if the category has none.
    """
    if rows.empty:
        return
    name = style.escape_text(rows["run"].iloc[0])
    run_colour = style.PALETTE[i % len(style.PALETTE)] if run_count > 1 else style.GREY
    colours = [style.GROUPS.get(group, run_colour) for group in rows["group"]]
    for row, height, colour in zip(rows.itertuples(), heights, colours, strict=True):
        ends = [row.before, row.onset if pd.isna(row.latest) else row.latest]
        line = {"color": style.with_opacity(colour, 0.45), "width": 3}
        trace_settings = {"legendgroup": name, "showlegend": False, "hoverinfo": "skip"}
        figure.add_scatter(x=axis.values(ends), y=[height] * 2, mode="lines", line=line, **trace_settings)
    symbols = (
        [style.SYMBOL_OF.get(group, "circle") for group in rows["group"]] if run_count == 1 else style.run_look(i)[0]
    )
    figure.add_scatter(
        x=axis.values(rows["onset"]),
        y=list(heights),
        mode="markers",
        name=name,
        legendgroup=name,
        showlegend=run_count > 1,
        marker={"symbol": symbols, "size": 10, "color": colours},
        text=[_hover_text(row, name if run_count > 1 else "", axis) for row in rows.itertuples()],
        hovertemplate="%{text}<extra></extra>",
    )


def _hover_text(row: Any, run: str, axis: StepAxis) -> str:
    label = f"<b>{style.escape_text(describe_tag(row.group))}</b>" + (f", {run}" if run else "")
    end = "or later" if pd.isna(row.latest) else f"to {axis.step_in_unit(int(row.latest))}"
    start = axis.step_in_unit(int(row.before))
    onset = axis.step_in_unit(int(row.onset))
    text = f"{label}: {onset} ({start} {end})<br>last accuracy {percent(row.last)}, n = {row.n:,}"
    if pd.isna(getattr(row, "slope", None)):  # the rule has no slope
        return text
    per = "steps" if axis.step_unit == StepUnit.UPDATES else axis.step_unit
    return f"{text}<br>slope {row.slope:.3g} per 1,000 {per} (95 %: {row.slope_low:.3g} to {row.slope_high:.3g})"
