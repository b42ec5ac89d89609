"""The Fine-tuning page, behind one task: the curves of its fine-tunings at a step, and the answers to its examples."""

import pandas as pd
import streamlit as st

from app import figures, pickers, results, widgets
from app.captions import finetuning as captions
from app.captions.markdown import literal
from app.charts import finetuning as charts
from app.view import View
from embryo_core.curves import HISTORIES
from embryo_core.errors import CorpusError
from embryo_core.finetune.forms import SQUAD, evaluation

ANY = "any"


def show(view: View, task: str, frame: pd.DataFrame) -> None:
    """Draw the fine-tunings of a task, whose scores are `frame`, at the chosen step, and its examples."""
    step, metric, name = view.evaluated(frame["step"].unique()), frame["metric"].iloc[0], literal(charts.label(task))
    with st.expander(f"How it was fine-tuned: {name}"):  # a label with the step would close it at each
        curve = results.tuning(view.run, task, step)
        figures.show(
            charts.curve_figure(curve, metric),
            curve,
            f"{view.run.name}-{task}-tuning",
            captions.CURVE,
            f"Fine-tuning on {charts.label(task)}, step {step:,}",
            view,
            evaluation(task, 1),
            at=f"step{step}",
        )
    answers = (results.task_spans if task == SQUAD else results.task_answers)(view.run, task)
    if answers.empty:
        return
    st.header(f"Examples of {name}", anchor=False)
    left, right = st.columns(2)
    with left:
        seed = int(pickers.pick_one("seed", "Seed", sorted(set(answers["seed"]))))
    texts = _texts(view, task)
    table = _table(view, task, metric, answers[answers["seed"] == seed], texts)
    listed = table
    if "history" in table:
        with right:
            history = pickers.pick_one("example_history", "History", (ANY, *HISTORIES))
        listed = table if history == ANY else table[table["history"] == history]
    if texts is not None:
        listed = texts.drop(columns="context", errors="ignore").join(listed, how="right")
    st.dataframe(listed, height=320, key=f"examples_{task}_{seed}_{len(listed)}")
    widgets.show_caption(captions.examples(task, table, listed, seed, texts is not None))


def _texts(view: View, task: str) -> pd.DataFrame | None:
    """The texts of the examples, where their data are at hand and can be read."""
    try:
        return results.task_texts(view.run, task)
    except CorpusError:
        return None


def _table(
    view: View, task: str, metric: str, answers: pd.DataFrame, texts: pd.DataFrame | None
) -> pd.DataFrame:
    """What each step answered to each example."""
    if task == SQUAD:
        return charts.span_histories(answers, None if texts is None else texts["context"])
    if metric in ("spearman", "pearson"):
        return charts.values(answers)
    labels = results.sources(view.run).get(evaluation(task, int(answers["seed"].iloc[0])), {}).get("labels")
    return charts.histories(answers, labels if isinstance(labels, list) else ())
