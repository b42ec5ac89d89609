"""Overview: what the run is, how its losses and accuracies went, and what has been computed of it."""

from html import escape

import pandas as pd
import streamlit as st

from app import results, widgets
from app.charts import overview
from app.charts.style import short
from app.views import card
from embryo_core import runs
from embryo_core.engine.capabilities import gives
from embryo_core.metrics import METRICS

CURVES = {  # quantity of the log: heading, axis, what is counted, what the caption adds
    "masked_lm_loss": (
        "Masked-word loss",
        "loss (nats per masked piece)",
        "n_masked",
        "Cross-entropy of the masked pieces.",
    ),
    "masked_lm_accuracy": (
        "Masked-word accuracy",
        "accuracy (masked pieces)",
        "n_masked",
        "Share of masked pieces predicted exactly.",
    ),
    "sentence_order_accuracy": (
        "Sentence-order accuracy",
        "accuracy (sentence pairs)",
        "n_sequences",
        "Swapped or not; chance is 50 %.",
    ),
}
CASES = {"n_masked": "masked pieces", "n_sequences": "sentence pairs"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Overview")
    _card(view)
    log = results.log(view.run)
    columns = [place for _ in range(2) for place in st.columns(2, gap="large")]
    for place, quantity in zip(columns, CURVES):
        with place:
            _training_curve(view, log, quantity)
    with columns[3]:
        st.subheader("What has been computed", anchor=False)
        _coverage(view)


def _training_curve(view: widgets.View, log: pd.DataFrame, quantity: str) -> None:
    title, unit, n, caption = CURVES[quantity]
    st.subheader(title, anchor=False)
    if log.empty or quantity not in log:
        st.info(f"The run's log.jsonl holds no {quantity} yet.", icon=":material/info:")
        return
    counts = log[n] if n in log else pd.Series(pd.NA, log.index)
    data = log[["split", "step", quantity]].assign(n=counts)[log[quantity].notna()]
    heldout = data.loc[data["split"] == "heldout", "n"].dropna()
    caption += " Training: mean over the batches since the point before."
    if len(heldout):
        caption += f" Held-out: the same {int(heldout.iloc[-1]):,} {CASES[n]}, never trained on, at every checkpoint."
    figure = overview.training_curve(data, quantity, unit, view.log, view.step)
    widgets.show_figure(figure, data, f"{view.run.name}-{quantity}", caption)


def _coverage(view: widgets.View) -> None:
    given = gives(runs.checkpoints(view.run)[-1])
    sources = {metric.name: metric.source for metric in METRICS if metric.needs <= given}
    done = {metric: results.done(view.run, metric) for metric in sources}
    rows = [("checkpoint", step, step in view.steps) for step in sorted({*view.run.planned_steps, *view.steps})]
    rows += [(metric.replace("_", " "), step, step in steps) for metric, steps in done.items() for step in view.steps]
    data = pd.DataFrame(rows, columns=["metric", "step", "done"])
    missing = [metric for metric, steps in done.items() if not steps.issuperset(view.steps)]
    caption = f"{len(view.steps)} checkpoints of {len(view.run.planned_steps)} planned. " + (
        "Computed at every checkpoint: all metrics." if not missing else "To compute what is missing:"
    )
    widgets.show_figure(overview.coverage(data, view.log, view.step), data, f"{view.run.name}-coverage", caption)
    if missing:
        data_of = " ".join(f"--{source} PATH" for source in dict.fromkeys(sources[metric] for metric in missing))
        command = f"python -m embryo_core evaluate {view.run.name} --metrics {' '.join(missing)} {data_of}"
        st.code(command, "bash", wrap_lines=True)


# === The card ===


def _card(view: widgets.View) -> None:
    """The facts of the run, as pretraining wrote them in run.json and the manifests."""
    with st.container(border=True, key="card"):
        with st.container(horizontal=True, gap="large"):
            for label, value in _figures(view).items():
                st.metric(label, value, width="content")
        rows = "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in card.describe(view.run))
        st.html(f"<dl>{rows}</dl>")


def _figures(view: widgets.View) -> dict[str, str]:
    last = runs.checkpoints(view.run)[-1]
    log = results.log(view.run)
    heldout = pd.Series(dtype=float)
    if "masked_lm_accuracy" in log:
        heldout = log.loc[(log["split"] == "heldout") & (log["step"] <= view.step), "masked_lm_accuracy"]
    return {
        "Checkpoints": f"{len(view.steps)} of {len(view.run.planned_steps)} planned",
        "Last step": f"{last.step:,}",
        "Tokens seen": short(last.tokens),
        "Sequences seen": short(last.sequences),
        f"Held-out accuracy, step {view.step:,}": f"{heldout.iloc[-1]:.1%}" if len(heldout) else "–",
    }
