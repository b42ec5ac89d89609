"""Section 5: downstream performance grows fast, then hardly."""

import pandas as pd

from embryo_core import results
from embryo_core.findings.evidence import Curve, Evidence
from embryo_core.findings.finding import Comparison, Finding, Tested
from embryo_core.finetune.forms import GLUE

EARLY = 0.25  # the share of the run within which most of the last score is reached


def gains_flatten(evidence: Evidence) -> Tested:
    """Each task of GLUE: how long before a quarter of the run it has reached 95 % of its last score."""
    scores = results.read_task_scores(evidence.run)
    scores = scores[(scores["predictor"] == "model") & scores["task"].isin(GLUE)]
    found = []
    for task, rows in scores.groupby("task"):
        last, metric = int(rows["step"].max()), GLUE[task].metrics[0]
        at, _ = results.read_reached(evidence.run, task, metric)  # 95 %, and 99 %
        if at is not None and rows["step"].nunique() > 1:
            evidence.note(metric, task, -1, _curve(rows[rows["metric"] == metric]))
            share, low, high = (EARLY - step / last for step in (at.step, at.latest, at.earliest))
            found.append(Comparison(task, share, low, high, "of the run", int(rows["n"].max())))
    return Tested(found)


def _curve(rows: pd.DataFrame) -> Curve:
    """The mean of a score over the seeds."""
    means = rows.groupby("step").agg(value=("value", "mean"), n=("n", "max"))
    return Curve(means.index.to_numpy(), means["value"].to_numpy(), means["n"].to_numpy())


FINDINGS = (
    Finding(
        name="gains_flatten",
        claim="Downstream performance grows fast, then hardly.",
        place="Section 5, Figure 5",
        predicts="A quarter of the run makes at least 95 % of a task's last score.",
        page="Fine-tuning",
        view={},
        metrics=(),
        command="finetune --glue FOLDER",
        test=gains_flatten,
    ),
)
