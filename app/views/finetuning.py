"""Fine-tuning: how much pretraining each downstream task needs (Section 5, Figures 5, 12 and 13, Table 6)."""

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import Column, NumberColumn, TextColumn

from app import figures, notices, permalink, pickers, results, task_data, widgets
from app.tables import correlation_columns, filter_history, pick_history, show_rows, steps_in_unit
from app.view import View
from embryo_core.errors import ResultsError
from embryo_core.figures import finetuning, finetuning_examples, finetuning_tables
from embryo_core.figures.markdown import literal


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Fine-tuning", lambda run: results.evaluated_steps(run, "finetuning"))
    scores = results.tuning_scores(view.run)
    if scores.empty:
        notices.stop(
            f"Run '{view.run.name}' has not been fine-tuned yet.",
            f"python -m embryo_core finetune {view.run.name} --glue FOLDER --tasks cola mrpc rte stsb",
        )
    headline = st.container()
    tasks = [task for task in scores["task"].unique() if task != finetuning_tables.EXACT]
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with left:
        selected_tasks = pickers.pick_many("tasks", "Tasks", tasks, tasks, finetuning_tables.task_label, pills=True)
    with right, pickers.options():
        panels = pickers.pick_switch("panels_of_tasks", "A panel for each task", default=True, optional=True)
        shows_published = pickers.pick_switch("published", "Published scores of ALBERT-base", optional=True)
        pickers.pick_smoothing()
    if not selected_tasks:
        notices.note("Choose at least one task.")
        return
    figure = figures.draw(
        view, finetuning.scores, tasks=tuple(selected_tasks), panels=panels, published=shows_published
    )
    with headline:
        notices.show_headline(figure.headline)
    figures.show(figure, on_point=_open_point)
    task_scores = scores[scores["task"].map(finetuning_tables.task_of).isin(selected_tasks)]
    _show_tasks(view, task_scores)
    hidden = dict.fromkeys(tasks, "Tasks")
    most_gaining = finetuning_tables.task_of(finetuning.gaining_most(task_scores))
    options: dict[str, Any] = {"format_func": finetuning_tables.task_label, "hidden": hidden}
    task = pickers.pick_one(
        "task", "Task in detail", selected_tasks, most_gaining if most_gaining in selected_tasks else None, **options
    )
    _show_associations(view, task_scores)
    _show_task(view, task, task_scores[task_scores["task"] == task])


def _open_point(task: str, step: int) -> None:
    permalink.choose("step", step)
    if task != finetuning_tables.AVERAGE:
        permalink.choose("task", finetuning_tables.task_of(task))


def _show_tasks(view: View, scores: pd.DataFrame) -> None:
    """Draw a table with a row for each task: its scores, and the steps that reach 95 % and 99 % of the last score."""
    st.header("How much pretraining each task needs", anchor=False)
    metrics = scores.groupby("task", sort=False)["metric"].first()
    reached_steps = {}
    for task, metric in metrics.items():
        try:
            reached_steps[task] = results.tuning_reached(view.run, task, metric)
        except ResultsError as error:  # the other tasks may still be readable
            notices.warn(f"{finetuning_tables.task_label(task)}: {error}")
    step, axis = view.evaluated_step(scores["step"].unique()), view.axis
    table = finetuning_tables.task_table(scores, step, reached_steps, axis)
    best_column = {"label": "best at", "help": axis.step_heading("The highest score, at")}
    visible_table, steps = steps_in_unit(table, axis, {"best": best_column}, 64)
    show_rows(
        visible_table.drop(columns="metric").assign(metric=table["metric"]),
        "How much pretraining each task needs",
        "tasks_table",
        lambda row: permalink.choose("task", finetuning_tables.task_of(metrics.index[row])),
        {
            "task": TextColumn(width=72),
            "metric": TextColumn(width=150),
            "now": NumberColumn(view.name_step(step), format="%.3f", width=90),
            "last": NumberColumn("last step", format="%.3f", width=65),
            **steps,
            "control": NumberColumn("control", format="%.3f", width=60),
            "n": NumberColumn("examples", format="localized", width=70),
            "seeds": NumberColumn(width=50),
            **{
                percentage: TextColumn(
                    f"{percentage} at", help=axis.step_heading(f"{percentage} of the last score, at"), width=155
                )
                for percentage in ("95 %", "99 %")
            },
        },
    )
    notices.show_caption(finetuning_tables.describe_tasks(scores, view.run.step_unit))


def _show_associations(view: View, scores: pd.DataFrame) -> None:
    """Draw how each task's score correlates with masked accuracy over the steps; nothing if too few are known."""
    table, accuracy = results.tuning_associations(view.run, scores)
    if table.empty:
        return
    st.header("Does the accuracy on masked words predict the task?", anchor=False)
    columns = correlation_columns("value") | {"steps": "steps (n)", "tied": "steps with the same score"}
    labelled = table.assign(task=table["task"].map(finetuning_tables.task_label))
    st.dataframe(
        labelled, alt="Correlation with masked accuracy", hide_index=True, column_config=columns, placeholder="–"
    )
    notices.show_caption(finetuning_tables.describe_associations(table, accuracy))


# === One task ===


def _show_task(view: View, task: str, scores: pd.DataFrame) -> None:
    """Draw how the checkpoint at the chosen step was fine-tuned on a task, and the task's examples."""
    step, metric = view.evaluated_step(scores["step"].unique()), scores["metric"].iloc[0]
    name = literal(finetuning_tables.task_label(task))
    show_figure = partial(figures.plot, view, titled=True)
    draw = partial(show_figure, finetuning.tuning_curve, task=task, step=step, metric=metric)
    pickers.fold("tuning", f"How it was fine-tuned: {name}", draw)
    if seeds := results.tuning_seeds(view.run, task):
        try:
            _show_examples(view, task, step, name, seeds)
        except ResultsError as error:  # the rest of the page does not need these examples
            notices.warn(error)


def _show_examples(view: View, task: str, step: int, name: str, seeds: list[int]) -> None:
    """Pick a seed and a history; draw a task's development examples and their answers at some steps."""
    st.header(f"Examples of {name}", anchor=False)
    left, right = st.columns(2)
    with left:
        seed = int(pickers.pick_one("seed", "Seed", seeds))
    table = examples = task_data.read_examples(view.run, task, seed)
    if "history" in table:
        with right:
            history = pick_history("example_history")
        examples = filter_history(table, history)
    examples = finetuning_examples.select_columns_and_sort(examples, step, view.run.step_unit)
    texts = task_data.read_texts(view.run, task)
    if texts is not None:
        examples = texts.drop(columns="context", errors="ignore").join(examples, how="right")
    step_column = Column  # of a step; 68 pixels are enough for its number
    steps = {name: step_column(name.removeprefix("step "), width=68) for name in examples if name.startswith("step ")}
    key = f"examples_{task}_{seed}_{len(examples)}"
    st.dataframe(examples, alt=f"Examples of {task}", height=320, key=key, column_config=steps)
    notices.show_caption(finetuning_examples.describe_examples(task, table, len(examples), seed, texts is not None))
