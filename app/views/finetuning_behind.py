"""The Fine-tuning page, behind one task: the curves of its fine-tunings at a step, and the answers to its examples."""

import pandas as pd
import streamlit as st

from app import figures, pickers, results, task_reads, widgets
from app.view import View
from embryo_core.curves import HISTORIES
from embryo_core.errors import ResultsError
from embryo_core.figures import finetuning as charts
from embryo_core.figures.captions import finetuning as captions
from embryo_core.figures.markdown import literal
from embryo_core.finetune.task_specs import results_name

ANY = "any"


def show(view: View, task: str, frame: pd.DataFrame) -> None:
    """Draw the fine-tunings of a task, whose scores are `frame`, at the chosen step, and its examples."""
    step, metric, name = view.evaluated(frame["step"].unique()), frame["metric"].iloc[0], literal(charts.label(task))
    with st.expander(f"How it was fine-tuned: {name}"):  # a label with the step would close it at each
        curve = task_reads.tuning(view.run, task, step)
        figures.show_plot(
            charts.curve_figure(curve, metric),
            curve,
            f"{view.run.name}-{task}-tuning",
            captions.curve(results.sources(view.run).get(results_name(task, 1), {})),
            f"Fine-tuning on {charts.label(task)}, {view.point(step)}",
            view,
            results_name(task, 1),
            at=f"step{step}",
        )
    if seeds := task_reads.seeds(view.run, task):
        try:
            _examples(view, task, step, name, seeds)
        except ResultsError as error:  # of this task alone
            st.warning(literal(str(error)), icon=":material/warning:")


def _examples(view: View, task: str, step: int, name: str, seeds: list[int]) -> None:
    st.header(f"Examples of {name}", anchor=False)
    left, right = st.columns(2)
    with left:
        seed = int(pickers.pick_one("seed", "Seed", seeds))
    table = listed = task_reads.examples(view.run, task, seed)
    if "history" in table:
        with right:
            history = pickers.pick_one("example_history", "History", (ANY, *HISTORIES))
        listed = table if history == ANY else table[table["history"] == history]
    listed, texts = charts.with_some_steps(listed, step, view.run.step_unit), task_reads.texts(view.run, task)
    if texts is not None:
        listed = texts.drop(columns="context", errors="ignore").join(listed, how="right")
    st.dataframe(listed, height=320, key=f"examples_{task}_{seed}_{len(listed)}")
    widgets.show_caption(captions.examples(task, table, listed, seed, texts is not None))

