"""Figures of the Fine-tuning page: scores of tasks over pretraining, and the curve of one fine-tuning (Section 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import results
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.figures.finetuning_tables import EXACT, METRIC_NAMES, glue_average, read_scores, task_label
from embryo_core.finetune.task_specs import SQUAD, RateChoice, results_name
from embryo_core.results import incomparable_evaluations
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step

PANELS_PER_ROW, PANELS_WIDTH = 4, 1280  # panels in a row, and width of the figure in pixels
MAX_TICKS = 8  # largest number of evaluations of a fine-tuning with a tick each
# ALBERT-base, version 1, on the development sets: README.md of google-research/albert (31 October 2019).
PUBLISHED_SCORES = {"mnli": 0.816, "sst2": 0.903}
PUBLISHED_SQUAD = {  # F1 of versions 1.1 and 2.0
    SQUAD: (0.893, 0.800),
    EXACT: (0.823, 0.771),
}

# === Scores over pretraining ===


def scores(
    runs: Sequence[Run], axis: AxisChoice, tasks: Sequence[str], panels: bool = False, published: bool = False
) -> Figure:
    """Return the figure of tasks' scores over pretraining, with the range of their seeds, and their controls.

    With `panels` each task has a panel; with `published`, the figure of a single run has the scores of ALBERT-base as
    lines. If there are several GLUE tasks, another curve is their average, over the tasks that all runs have.
    """
    tables = {run: read_scores(run, tasks) for run in runs}
    drawn_runs = [run for run in runs if len(tables[run]) and axis.supports(run, runs[0])]
    described_run, published = (drawn_runs or runs)[0], published and len(drawn_runs) == 1
    task_sets = [{*table["task"]} for table in tables.values() if len(table)]
    common_tasks = set.intersection(*task_sets) if task_sets else set()
    averages = {run: glue_average(table[table["task"].isin(common_tasks)]) for run, table in tables.items()}

    def read(run: Run) -> pd.DataFrame:
        return pd.concat([tables[run], averages[run]], ignore_index=True) if len(averages[run]) else tables[run]

    curves = replace(CURVES, metric=results_name(tasks[0], 1) if len(tasks) == 1 else "finetuning")
    if panels and len(tasks) > 1:
        curves = replace(curves, panels_per_row=PANELS_PER_ROW, width=PANELS_WIDTH)
    figure = curves_figure(
        runs,
        axis,
        read,
        curves,
        "finetuning",
        "Downstream tasks over pretraining",
        lambda _: describe_scores(
            tables[described_run],
            averages[described_run],
            results.read_sources(described_run),
            described_run.step_unit,
            published,
        ),
    )
    _enlarge_best(figure.plot)
    if published:
        _add_published_scores(figure.plot, figure.table, axis.for_run(described_run).values([*figure.table["step"]]))
    return replace(figure, headline=headline(tables[described_run], axis.for_run(described_run, runs)))


def _enlarge_best(plot: go.Figure) -> None:
    """Give the highest score of each curve a large marker."""
    for trace in plot.data:
        if trace.customdata is not None:
            values = np.array(trace.y, float)
            best = np.argmax(np.where(np.isnan(values), -np.inf, values))  # the first of equal scores, as in the table
            trace.marker.size = np.where(np.arange(len(values)) == best, 11, 6)


def task_styles(tasks: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and symbol of each curve; SQuAD's two curves share a colour, so that nine colours suffice."""
    looks = list(zip(style.PALETTE, style.SYMBOLS, strict=True))
    styles = {task: looks[i % len(looks)] for i, task in enumerate(task for task in tasks if task != EXACT)}
    colour, _ = styles.get(SQUAD, looks[len(styles) % len(looks)])
    return styles | ({EXACT: (colour, "cross-open")} if EXACT in tasks else {})


CURVES = Curves(
    by="task",
    baseline="control",
    label=task_label,
    styles=task_styles,
    y_title="score on the development set",
    tickformat=".2~f",
    decimals=".3f",
    unit="examples",
    band="seeds",
    baseline_name="a control that reads no text",
    height=460,
)


def published_score(task: str, rows: pd.DataFrame) -> float | None:
    """Return the published score of ALBERT-base on the data of these rows of a `score_table`; None if unknown."""
    if task in PUBLISHED_SQUAD:
        first, second = PUBLISHED_SQUAD[task]
        # The control shows the version: an empty answer is right for half of the questions of 2.0, but in 1.1 only for
        # those with the gold answer ".".
        return second if rows["control"].iloc[-1] > 0.1 else first
    return PUBLISHED_SCORES.get(task)


def _add_published_scores(plot: go.Figure, table: pd.DataFrame, x: Sequence[float]) -> None:
    curves = {trace.name: trace for trace in plot.data if trace.customdata is not None}
    for task, rows in table.groupby("task", sort=False):
        if (value := published_score(task, rows)) is None:
            continue
        name = task_label(task)
        curve, colour = curves[name], curves[name].marker.color
        line: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 1.5, "dash": "dashdot"}}
        if min(x) == max(x):  # the line would have no length
            line = {
                "mode": "markers",
                "marker": {"symbol": "line-ew", "size": 40, "line": {"color": colour, "width": 2}},
            }
        plot.add_scatter(
            x=[min(x), max(x)],
            y=[value, value],
            name=f"{name}, ALBERT-base",
            hovertemplate=f"{name}, ALBERT-base as published: %{{y:.3f}}<extra></extra>",
            xaxis=curve.xaxis,
            yaxis=curve.yaxis,
            **line,
        )


def gaining_most(table: pd.DataFrame) -> str:
    """Return the task of a `score_table` with the largest gain (over its control if no task has two steps)."""
    return str(_gains(table)["gain"].idxmax())


def _gains(table: pd.DataFrame) -> pd.DataFrame:
    """Return each task's first and last score, last step, and gain (over its control if no task has two steps)."""
    by_task = table.sort_values("step").groupby("task", sort=False)
    scores = by_task.agg(
        first=("value", "first"), last=("value", "last"), control=("control", "last"), step=("step", "last")
    )
    has_steps = by_task["step"].nunique().max() > 1
    return scores.assign(gain=(scores["last"] - scores["first" if has_steps else "control"]).fillna(0), rises=has_steps)


def headline(table: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on the score that gains most or, with one step each, is farthest above its control."""
    gains = _gains(table)
    best = gains.loc[gains["gain"].idxmax()]
    if not best["rises"] and not best["gain"] > 0:
        return f"No score is above its control, which reads no text, at {axis.step_in_unit(int(best['step']))}."
    if not best["rises"]:
        scores = f"{best['last']:.3f}, not {best['control']:.3f}"
        return f"{task_label(best.name)} is farthest above its control, which reads no text: {scores}."
    if best["gain"] <= 0:
        return "No score is higher at the last step than at the first."
    return f"{task_label(best.name)} gains most from pretraining: {best['first']:.3f} to {best['last']:.3f}."


def describe_scores(
    table: pd.DataFrame,
    average: pd.DataFrame,
    sources: Mapping[str, Mapping[str, Any]],
    unit: StepUnit,
    published: bool = False,
) -> Caption:
    """Return the caption of `scores`: metrics, examples, seeds, controls, and how the models were tuned.

    `table` is a `score_table`, `average` its `glue_average`, and `sources` comes from `results.read_sources`. With
    `published`, published scores are drawn.
    """
    min_seeds, max_seeds = int(table["seeds"].min()), int(table["seeds"].max())
    seeds = f"{'up to ' if min_seeds < max_seeds else ''}{max_seeds} seeds"
    seeds = seeds if max_seeds > 1 else "a single seed: unknown range"
    protocols, others = _describe_protocols({*table["task"]}, sources)
    average_note = "" if average.empty else f"; GLUE average over {average['tasks'].iloc[0]}"
    published = published and any(published_score(task, rows) is not None for task, rows in table.groupby("task"))
    counts = "; ".join(
        f"{task_label(task)}: {METRIC_NAMES[rows['metric'].iloc[0]]} on {int(rows['n'].max()):,} examples"
        for task, rows in table.groupby("task", sort=False)
    )
    return Caption(
        f"Each checkpoint, fine-tuned as a whole and scored on the development set (protocol {protocols}; {seeds}"
        f"{average_note}).",
        sentences(
            "Bands span the seeds, lines are their mean." if max_seeds > 1 else "",
            "The large marker is the best checkpoint. Dashed, or a stroke at the right: a control that reads no text.",
            _describe_random_weights(int(table["step"].min()), unit),
            "Dashes and dots: ALBERT-base, version 1, as google-research/albert published it." if published else "",
            f"Left out, because data or settings differ from the task's first seed: {others}." if others else "",
        ),
        f"{counts}.",
        "Click a point to see the task at that step below.",
    )


def _describe_protocols(tasks: set[str], sources: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """Return the protocols of the fine-tunings on these tasks, and those not comparable with a task's first seed."""
    task_sources = {
        name: source
        for name, source in sources.items()
        if name.startswith("finetuning:") and name.split(":")[1] in tasks
    }
    protocols = " and ".join(sorted({str(source.get("protocol", "unknown")) for source in task_sources.values()}))
    incomparable = (name.split(":")[1:] for name in incomparable_evaluations(task_sources, sources))
    return protocols, ", ".join(f"{task_label(':'.join(task))} with seed {seed}" for *task, seed in incomparable)


def _describe_random_weights(first: int, unit: StepUnit) -> str:
    """Return a sentence on whether random weights (step 0) were fine-tuned; `first` is the first step that was."""
    if first:
        return f"Random weights, a second control, were not fine-tuned: the first ones are at {name_step(first, unit)}."
    return f"{name_step(first, unit).capitalize()}, random weights fine-tuned in the same way, is a second control."


# === One fine-tuning ===


def tuning_curve(runs: Sequence[Run], axis: AxisChoice, task: str, step: int, metric: str) -> Figure:
    """Return the figure of loss and development score during the first run's fine-tunings on a task at a step."""
    run = runs[0]
    curve = results.read_tuning(run, task, step)
    name = results_name(task, 1)
    return make_figure(
        (run,),
        f"{run.name}-{task}-tuning",
        f"Fine-tuning on {task_label(task)}, {name_step(step, run.step_unit)}",
        plot_tuning_curve(curve, metric),
        curve,
        describe_tuning(results.read_sources(run).get(name, {})),
        name,
        suffix=f"step{step}",
    )


def plot_tuning_curve(curve: pd.DataFrame, metric: str) -> go.Figure:
    """Plot loss and score over the updates, two lines for each seed; `curve` comes from `results.read_tuning`."""
    plot = go.Figure()
    for seed, rows in curve.groupby("seed"):
        for column, name, colour, dash in (
            ("dev_score", f"{METRIC_NAMES[metric]}, development", style.BLUE, "solid"),
            ("train_loss", "training loss", style.VERMILION, "dot"),
        ):
            plot.add_scatter(
                x=rows["update"],
                y=rows[column],
                name=f"{name}, seed {seed}",
                mode="lines+markers",
                line={"color": colour, "dash": dash},
                hovertemplate=f"seed {seed}, update %{{x:,}}: %{{y:.3f}}<extra>{name}</extra>",
            )
    plot.update_xaxes(title={"text": "updates of the fine-tuning"}, rangemode="tozero")
    if (updates := sorted(curve["update"].unique().tolist())) and len(updates) <= MAX_TICKS:
        plot.update_xaxes(tickvals=[0, *updates], tickformat=",")
    return style.finish(plot, "loss, score", height=320)


def describe_tuning(source: Mapping[str, Any]) -> Caption:
    """Return the caption of `tuning_curve`, with the choice among tied learning rates.

    `source` is the entry of the fine-tuning in sources.json.
    """
    summary = (
        "One line per fine-tuning of this checkpoint: the mean training loss since the point before, and the score on "
        "the development set after every epoch and at the end."
    )
    choice = RateChoice.read(source)
    if choice is None or not choice.is_tied:
        return Caption(summary)
    best_rates = [f"{rate:g}" for rate, score in choice.tried.items() if score == max(choice.tried.values())]
    reason = "it has the lowest loss of these" if choice.losses else "it is the smallest of these"
    return Caption(
        summary,
        f"The trials of the learning rates {', '.join(best_rates)} had the same score; {choice.learning_rate:g} was "
        f"chosen because {reason}.",
    )
