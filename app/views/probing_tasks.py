"""The Probing page, all tasks: their scores over the steps, their expected layers, and two against each other."""

from functools import partial

import pandas as pd
import streamlit as st

from app import curve_reads, figures, overlays, permalink, pickers, results
from app.view import View
from embryo_core.figures import probing as charts
from embryo_core.figures import probing_scores
from embryo_core.figures.captions import probing as captions
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run


def show(view: View, frame: pd.DataFrame, layer: str | int, rescaled: bool, bands: bool) -> None:
    """Draw the scores of all tasks in one layer over the steps."""
    st.header("F1 of the probes over the steps", anchor=False)
    measured = curve_reads.task_curves(view.run, layer, rescaled)
    name, title = f"{view.run.name}-probing", "F1 of the probes over the steps"
    caption = captions.tasks(measured, frame, layer, results.sources(view.run), rescaled, bands)
    if view.compared_runs:
        read = partial(curve_reads.task_curves, layer=layer, rescaled=rescaled)
        curves = charts.overlay_curves(rescaled)
        overlays.show(view, read, curves, name, caption, title, captions.METRIC, _task_chosen, bands)
        return
    data = with_smoothed(measured, "shown", view.smoothing, ["task"])
    figure = figures.drawn(charts.tasks_figure, data, view.axis, rescaled, bands)
    figures.show_plot(figure, data, name, caption, title, view, captions.METRIC, on_point=_task_chosen)


def _task_chosen(task: str, step: int) -> None:
    permalink.choose("step", step)
    if task != probing_scores.MASKED:
        permalink.choose("probe_task", task)
        permalink.choose("probing", "layers")  # the section that shows it


def show_expected(view: View, frame: pd.DataFrame, bands: bool) -> None:
    """Draw in which layer each task is found, over the steps."""
    st.header("Expected layer", anchor=False)
    measured = probing_scores.expected_layers(frame)
    if measured.empty:
        st.info("No layer is above the majority baseline at any step.", icon=":material/info:")
        return
    name, caption = f"{view.run.name}-expected-layer", captions.expected(frame, bands, not view.compared_runs)
    if view.compared_runs:
        curves, metric = charts.OVERLAY_EXPECTED, captions.METRIC
        overlays.show(view, _expected, curves, name, caption, "Expected layer", metric, _task_chosen, bands)
        return
    table = with_smoothed(measured, "expected", view.smoothing, ["task"])
    figures.show_plot(
        charts.expected_figure(table, sorted(set(frame["step"])), int(frame["layer"].max()), view.axis, bands),
        table,
        name,
        caption,
        "Expected layer",
        view,
        captions.METRIC,
        on_point=_task_chosen,
    )


def _expected(run: Run) -> pd.DataFrame:
    return probing_scores.expected_layers(results.probe_scores(run))


def show_two(view: View, frame: pd.DataFrame, layer: str | int) -> None:
    """Draw the path of two tasks through the steps."""
    st.header("Two tasks against each other", anchor=False)
    tasks = list(frame["task"].unique())
    if len(tasks) < 2:
        st.info("Only one task has been probed; a second one is needed.", icon=":material/info:")
        return
    x, y = _pick_two(tasks)
    table = probing_scores.path(probing_scores.of_layer(frame, layer), x, y)
    if table.empty:
        st.info("There is no step at which both tasks have been probed.", icon=":material/info:")
        return
    step = view.evaluated(table["step"])
    figures.show_plot(
        charts.path_figure(table, x, y, view.run.step_unit),
        table,
        f"{view.run.name}-{x}-{y}",
        captions.two_tasks(table, frame, layer, step, view.run.step_unit),
        f"{probing_scores.label(x)} and {probing_scores.label(y)}",
        view,
        captions.METRIC,
        on_point=_step_chosen,
    )


def _step_chosen(step: int) -> None:
    permalink.choose("step", step)


def _pick_two(tasks: list[str]) -> tuple[str, str]:
    left, right = st.columns(2)
    with left:
        x = pickers.pick_one("x_task", "Horizontal axis", tasks, format_func=probing_scores.label)
    with right:
        others = [task for task in tasks if task != x]
        usual = next((task for task in ("srl", "coref") if task in others), others[0])
        return x, pickers.pick_one("y_task", "Vertical axis", others, usual, probing_scores.label)
