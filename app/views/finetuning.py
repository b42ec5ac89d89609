"""Fine-tuning: how much pretraining each downstream task needs (Section 5, Figures 5, 12 and 13, Table 6)."""

from collections.abc import Collection, Mapping

import pandas as pd
import streamlit as st

from app import figures, overlays, permalink, pickers, results, task_reads, widgets
from app.tables import show_rows
from app.view import View
from app.views import finetuning_behind
from embryo_core.corpora.word_groups import ALL
from embryo_core.errors import ResultsError
from embryo_core.figures import finetuning as charts
from embryo_core.figures.captions import finetuning as captions
from embryo_core.figures.captions import openings
from embryo_core.figures.markdown import literal
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.finetune.task_specs import SQUAD
from embryo_core.types import Run
from embryo_core.words import headed

MASKED = "mask_prediction"


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Fine-tuning")
    frame = task_reads.curves(view.run)
    if frame.empty:
        widgets.stop(
            f"Run '{view.run.name}' has not been fine-tuned yet.",
            f"python -m embryo_core finetune {view.run.name} --glue FOLDER --tasks cola mrpc rte stsb",
        )
    widgets.show_opening(openings.finetuning(frame, charts.NAMES, view.run.step_unit))
    tasks = [task for task in frame["task"].unique() if task != charts.EXACT]
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        chosen = pickers.pick_many("tasks", "Tasks", tasks, tasks, charts.label, pills=True)
    with right:
        pickers.pick_smoothing()
    if not chosen:
        st.info("Choose at least one task.", icon=":material/info:")
        return
    picked = frame[frame["task"].map(_whose).isin(chosen)]
    _curves(view, picked)
    task = _table(view, picked, chosen, dict.fromkeys(tasks, "Tasks"))
    _associations(view, picked)
    finetuning_behind.show(view, task, picked[picked["task"] == task])


def _whose(task: str) -> str:
    """The task behind a curve: SQuAD has two."""
    return SQUAD if task == charts.EXACT else task


def _curves(view: View, frame: pd.DataFrame) -> None:
    name, title = f"{view.run.name}-finetuning", "Downstream tasks over pretraining"
    one = frame["task"].map(_whose).nunique() == 1  # whose data and settings a file can name
    metric = f"finetuning:{_whose(frame['task'].iloc[0])}:1" if one else ""
    if view.compared_runs:
        _curves_of_several(view, frame, name, title, metric)
        return
    average = charts.average(frame)
    caption = captions.scores(frame, average, results.sources(view.run), view.run.step_unit)
    data = with_smoothed(_joined(view.run, frame, average), "value", view.smoothing, ["task"])
    figure = charts.tasks_figure(data, view.axis)
    figures.show_plot(figure, data, name, caption, title, view, metric, on_point=_point_chosen)


def _curves_of_several(view: View, frame: pd.DataFrame, name: str, title: str, metric: str) -> None:
    """Those of the runs beside the page's as well; GLUE averages are over the tasks that all of them have."""
    tasks = list(frame["task"].unique())
    frames = {run.name: _of_tasks(run, tasks) for run in (view.run, *view.compared_runs) if view.supports_axis(run)}
    frames = {run: rows for run, rows in frames.items() if len(rows)}
    shared = set(tasks).intersection(*(rows["task"] for rows in frames.values()))
    averages = {run: charts.average(rows[rows["task"].isin(shared)]) for run, rows in frames.items()}
    caption = captions.overlaid(frames, averages.values())

    def read(run: Run) -> pd.DataFrame:
        return _joined(run, frames[run.name], averages[run.name]) if run.name in frames else _of_tasks(run, tasks)

    overlays.show(view, read, charts.OVERLAY, name, caption, title, metric, _point_chosen, of_all=True)


def _of_tasks(run: Run, tasks: Collection[str]) -> pd.DataFrame:
    frame = task_reads.curves(run)
    return frame[frame["task"].isin(tasks)]


def _joined(run: Run, frame: pd.DataFrame, average: pd.DataFrame) -> pd.DataFrame:
    """The rows, each with what was noted of its task's data, and those of the GLUE average where there is one."""
    notes = {task: results.note(run, f"finetuning:{_whose(task)}:1") for task in frame["task"].unique()}
    noted = frame.assign(data=frame["task"].map(notes))
    return pd.concat([noted, average], ignore_index=True) if len(average) else noted


def _point_chosen(task: str, step: int) -> None:
    permalink.choose("step", step)
    if task != charts.AVERAGE:
        permalink.choose("task", _whose(task))


def _table(view: View, frame: pd.DataFrame, tasks: list[str], hidden: Mapping[str, str]) -> str:
    """Draw a row for each task; returns the one that is shown in detail. For `hidden` see `pickers.pick_one`."""
    st.header("How much pretraining each task needs", anchor=False)
    metrics = frame.groupby("task", sort=False)["metric"].first()
    reached = {}
    for task, metric in metrics.items():
        try:
            reached[task] = task_reads.reached(view.run, _whose(task), metric)
        except ResultsError as error:  # of this task alone
            st.warning(f"{literal(charts.label(task))}: {literal(str(error))}", icon=":material/warning:")
    step = view.evaluated(frame["step"].unique())
    number = st.column_config.NumberColumn
    show_rows(
        charts.task_table(frame, step, reached),
        "tasks_table",
        lambda row: permalink.choose("task", _whose(metrics.index[row])),
        {
            "now": number(view.point(step), format="%.3f"),
            "last": number("last step", format="%.3f"),
            "best": number(headed("best", view.run.step_unit), format="localized"),
            "control": number("control", format="%.3f"),
            "n": number("examples", format="localized"),
            "95 %": st.column_config.TextColumn(headed("95 % reached at", view.run.step_unit)),
            "99 %": st.column_config.TextColumn(headed("99 % reached at", view.run.step_unit)),
        },
    )
    widgets.show_caption(captions.table(charts.average(frame), frame, view.run.step_unit))
    return pickers.pick_one("task", "Task in detail", tasks, format_func=charts.label, hidden=hidden)


def _associations(view: View, frame: pd.DataFrame) -> None:
    masked, accuracy = _masked(view.run, frame["step"].unique())
    table = charts.associations(frame, masked)
    if table.empty:
        return
    st.header("Does the accuracy on masked words predict the task?", anchor=False)
    number = st.column_config.NumberColumn
    columns = {
        "value": number("Spearman's correlation", format="%.2f"),
        "low": number("from", format="%.2f"),
        "high": number("to", format="%.2f"),
        "steps": "steps (n)",
        "tied": "steps with the same score",
    }
    shown = table.assign(task=table["task"].map(charts.label))
    st.dataframe(shown, hide_index=True, column_config=columns, placeholder="–")
    widgets.show_caption(captions.associations(table, accuracy))


def _masked(run: Run, steps: Collection[int]) -> tuple[pd.DataFrame, str]:
    """The accuracy on masked words, with columns step and value, and what it is: the log's, or mask prediction.

    The log may have it of several samples of the held-out text, of which the widest over these `steps` is taken.
    """
    log, widest = results.log(run), charts.widest_sample(results.measures(run), steps)
    if len(widest):
        return widest, captions.logged(widest["n"])
    if not log.empty and "masked_lm_accuracy" in log:
        rows = log[log["split"] == "heldout"].rename(columns={"masked_lm_accuracy": "value"})
        if len(rows := rows.dropna(subset="value")):
            return rows, captions.logged(rows["n_masked"]) if "n_masked" in rows else captions.LOGGED
    scores = results.scores(run, MASKED)
    return scores[scores["group"] == ALL], captions.EVALUATED
