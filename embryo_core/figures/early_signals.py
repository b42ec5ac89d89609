"""Early signals: how well a measure at each step predicts the final ranking of the runs by each task."""

from collections.abc import Sequence

import pandas as pd

from embryo_core import comparison
from embryo_core.comparison import MIN_RUNS
from embryo_core.curves import held_from
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curve_plot import plot_curves
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.figures.finetuning_tables import read_scores, task_label
from embryo_core.figures.lines import Curves, Line
from embryo_core.types import Run
from embryo_core.words import count_range, percent

MIN_RHO = 0.9  # least rank correlation of an early signal
MAX_VISIBLE_TASKS = 5  # tasks that are visible at first; clicks in the legend show more
CURVES = Curves(
    by="task",
    value="rho",
    y_title="rank correlation with the last value",
    tickformat="",
    decimals=".2f",
    unit="runs",
    from_zero=False,
)


def common_measures(runs: Sequence[Run]) -> list[str]:
    """Return the measures that at least three runs have. Raises ResultsError, BrokenRun."""
    names = [name for run in runs for name in comparison.measures(run)]
    return [name for name in dict.fromkeys(names) if names.count(name) >= MIN_RUNS]


def early_signals(runs: Sequence[Run], axis: AxisChoice, measure: str) -> Figure:
    """Return the figure of how far the order of `runs` by a measure at each step agrees with their final order by task.

    Seeds of a design are separate runs. Runs that count steps in another unit than the first are `missing`. Raises
    FigureError for fewer than three runs with common steps, and ResultsError.
    """
    missing = tuple(run.name for run in runs if run.step_unit != runs[0].step_unit)
    runs = [run for run in runs if run.name not in missing]
    table = comparison.early_signals({run.name: _read_values(run) for run in runs}, measure)
    if table.empty:
        raise FigureError(f"Fewer than three of these runs have '{measure}' at common steps.")
    step_axis = axis.for_run(runs[0], runs)
    rows = CURVES.rows(table)
    rows.loc[rows["n"] <= MIN_RUNS, ["low", "high"]] = float("nan")
    plot = plot_curves([Line(measure, step_axis, rows, table)], CURVES)
    hidden_tasks = [*map(style.escape_text, clearest_tasks(table, measure)[MAX_VISIBLE_TASKS:])]
    plot.update_traces({"visible": "legendonly"}, lambda trace: trace.legendgroup in hidden_tasks)
    caption = Caption(
        f"Spearman's rho between the runs ranked by {measure} at a step and ranked by each task's last value.",
        sentences(
            "Band: 95 % interval over the runs; three runs have none." if table["n"].max() > MIN_RUNS else "",
            "The CSV also has the proportion of pairs of runs that are in the same order as in the end.",
            "Seeds of one design count as separate runs, so the runs are not independent."
            if len(comparison.group_by_design(runs)) < len(runs)
            else "",
        ),
        f"n = {count_range(table['n'])} runs.",
        f"The figure shows the {MAX_VISIBLE_TASKS} tasks with the earliest signal; click others in the legend."
        if hidden_tasks
        else "",
    )
    name = f"{runs[0].name}-early-{measure}".replace(" ", "-").replace(":", "")
    headline = _headline(table[table["task"] == measure], measure, step_axis)
    return make_figure(
        runs, name, f"Early signals: {measure}", plot, table, caption, headline=headline, missing=missing
    )


def clearest_tasks(table: pd.DataFrame, measure: str) -> list[str]:
    """Return the tasks of `comparison.early_signals`: the measure itself, then the earliest and clearest.

    Tasks whose curve repeats the curve of a task before them come last.
    """

    def sort_key(task: str) -> tuple[bool, float, float]:
        rows_of_task = table[table["task"] == task]
        first_step = held_from(rows_of_task["step"].to_numpy(), rows_of_task["rho"], MIN_RHO)
        return task != measure, float("inf") if first_step is None else first_step, -rows_of_task["rho"].mean()

    task_order = sorted(table["task"].unique(), key=sort_key)
    is_repeated = table.pivot(index="task", columns="step", values="rho").loc[task_order].duplicated()
    return [*is_repeated.index[~is_repeated], *is_repeated.index[is_repeated]]


def _headline(rows: pd.DataFrame, measure: str, axis: StepAxis) -> str:
    """Return a sentence on when the order by a measure comes close to its final order; "" for a single step."""
    step = held_from(rows["step"].to_numpy(), rows["rho"], MIN_RHO)
    if step is None or len(rows) < 2:
        return ""
    if step == rows["step"].iloc[-1]:
        previous = axis.step_in_unit(int(rows["step"].iloc[-2]))
        rho = rows["rho"].iloc[-2]
        return f"At {previous}, the order of the runs by {measure} has not settled: rank correlation {rho:.2f}."
    at_step = rows.set_index("step").loc[step]
    return (
        f"From {axis.step_in_unit(step)} on, {measure} ranks the {at_step['n']:.0f} runs almost as at the end: rank "
        f"correlation at least {MIN_RHO}, {percent(at_step['agree'], 0)} of {at_step['pairs']:.0f} pairs in their "
        "final order."
    )


def _read_values(run: Run) -> dict[str, pd.Series]:
    """Return the values of each measure and fine-tuned task of a run by step."""
    series = {name: table.iloc[:, 0].sort_index() for name, table in comparison.measures(run).items()}
    for task, rows in read_scores(run).groupby("task"):
        series[f"fine-tuning: {task_label(str(task))}"] = rows.set_index("step")["value"].sort_index()
    return series
