"""The Fine-tuning page, behind one task: the curves of its fine-tunings at a step, and the answers to its examples."""

import pandas as pd
import streamlit as st

from app import figures, results, widgets
from app.captions import finetuning as captions
from app.captions.markdown import literal
from app.charts import finetuning as charts
from app.charts.knowledge import HISTORIES
from app.widgets import View

ANY = "any"


def show(view: View, task: str, frame: pd.DataFrame) -> None:
    """Draw the fine-tunings of a task, whose scores are `frame`, at the chosen step, and its examples."""
    step, metric, name = view.evaluated(frame["step"]), frame["metric"].iloc[0], literal(charts.label(task))
    with st.expander(f"How it was fine-tuned: {name}, step {step:,}"):
        curve = results.tuning(view.run, task, step)
        figures.show(
            charts.curve_figure(curve, metric),
            curve,
            f"{view.run.name}-{task}-tuning",
            captions.CURVE,
            f"Fine-tuning on {charts.label(task)}, step {step:,}",
            view,
            f"finetuning:{task}:1",
            at=f"step{step}",
        )
    answers = results.task_answers(view.run, task)
    if metric in ("spearman", "pearson") or answers.empty:
        return
    st.header(f"Examples of {name}", anchor=False)
    left, right = st.columns(2)
    with left:
        seed = widgets.pick_one("seed", "Seed", sorted(set(answers["seed"])))
    with right:
        history = widgets.pick_one("example_history", "History", (ANY, *HISTORIES))
    table = charts.histories(answers, int(seed))
    listed = table if history == ANY else table[table["history"] == history]
    st.dataframe(listed, hide_index=True, height=320, key=f"examples_{task}_{seed}_{history}")
    widgets.show_caption(captions.examples(table, listed, int(seed)))
