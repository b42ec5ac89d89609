"""Which metrics have been computed at which checkpoints of a run, and the command that computes the rest."""

from collections.abc import Collection, Sequence

import pandas as pd
import plotly.graph_objects as go

from embryo_core import results
from embryo_core import runs as run_files
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.figure import Caption, Figure, make_figure, sentences
from embryo_core.metrics import METRICS, get_metrics
from embryo_core.types import Run
from embryo_core.words import quantity

ROW_HEIGHT, MARGIN_HEIGHT = 24, 110  # pixels: of a metric's row, and around the rows


def coverage(runs: Sequence[Run], axis: AxisChoice, capabilities: frozenset[str]) -> Figure:
    """Return the figure of which metrics have been computed at which checkpoints of the first run.

    It has the metrics that the run's `capabilities` allow. Raises FigureError if all of them have been computed.
    """
    run = runs[0]
    steps = [checkpoint.step for checkpoint in run_files.checkpoints(run)]
    all_steps = results.steps_by_metric(run)
    computed = {metric.name: all_steps[metric.name] for metric in METRICS if metric.needs <= capabilities}
    rows = [("checkpoint", step, step in steps) for step in sorted({*run.planned_steps, *steps})]
    rows += [(metric.replace("_", " "), step, step in done) for metric, done in computed.items() for step in steps]
    table = pd.DataFrame(rows, columns=["metric", "step", "done"])
    if table["done"].all():
        raise FigureError(f"All metrics have been computed for '{run.name}'.")
    without_weights = run_files.steps_without_weights(run)
    result_count = len(without_weights & set().union(*all_steps.values()))
    caption = describe_coverage(run, len(steps), len(without_weights), result_count, missing_metrics(run, capabilities))
    plot = plot_coverage(table, axis.for_run(run, runs))
    return make_figure([run], f"{run.name}-coverage", "What has been computed", plot, table, caption)


def missing_metrics(run: Run, capabilities: frozenset[str]) -> list[str]:
    """Return the names of the metrics that these capabilities allow but that some checkpoint with weights lacks."""
    loadable = {checkpoint.step for checkpoint in run_files.checkpoints(run) if checkpoint.has_weights}
    computed_steps = results.steps_by_metric(run)
    return [
        metric.name
        for metric in METRICS
        if metric.needs <= capabilities and not loadable <= computed_steps[metric.name]
    ]


def evaluate_command(run: Run, missing: Sequence[str]) -> str:
    """Return the command that computes these metrics, with an option for each source of data that they need."""
    sources = dict.fromkeys(source for metric in get_metrics(missing) for source in metric.sources)
    data = " ".join(f"--{source} PATH" for source in sources)
    return f"python -m embryo_core evaluate {run.name} --metrics {' '.join(missing)} {data}"


def plot_coverage(table: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Return the plot of a table of metric, step and done: a row for each metric, with a mark for each checkpoint."""
    figure = go.Figure()
    for is_computed, label in ((True, "computed"), (False, "not computed")):
        rows = table[table["done"] == is_computed]
        figure.add_scatter(
            x=axis.values(rows["step"]),
            y=rows["metric"],
            name=label,
            mode="markers",
            marker={
                "symbol": "line-ns" if is_computed else "x-thin",
                "size": 16 if is_computed else 7,
                "line": {"width": 2.5 if is_computed else 1.5, "color": style.GREEN if is_computed else style.GREY},
            },
            customdata=rows["step"],
            hovertemplate=f"%{{y}}, {axis.hover_step('customdata')}: {label}<extra></extra>",
        )
    axis.draw(figure, list(table["step"]))
    metrics = list(dict.fromkeys(table["metric"]))
    style.finish(figure, "", height=MARGIN_HEIGHT + ROW_HEIGHT * len(metrics))
    figure.update_yaxes(categoryorder="array", categoryarray=metrics[::-1], showgrid=False)
    return figure


def describe_coverage(
    run: Run, checkpoint_count: int, weightless_count: int, result_count: int, missing: Collection[str]
) -> Caption:
    """Return the caption: the number of checkpoints, how many have no weights, and whether metrics are missing."""
    scope, details = "every checkpoint", ""
    if weightless_count:
        extent = "none" if not result_count else "all" if result_count == weightless_count else f"{result_count}"
        details = f"Without weights (hollow on the time bar): {weightless_count}, {extent} of them with results."
        scope = "every checkpoint with weights"
    note = "To compute what is missing, run the command below." if missing else f"All metrics are computed at {scope}."
    return Caption(
        f"{quantity(checkpoint_count, 'checkpoint')} of {len(run.planned_steps):,} planned.",
        sentences(details, note),
    )
