"""Section 5: downstream performance grows fast at first, then hardly at all."""

from embryo_core import results
from embryo_core.findings.evidence import Curve, Evidence
from embryo_core.findings.finding import Comparison, Finding, TestOutcome
from embryo_core.finetune.task_specs import GLUE

EARLY_SHARE = 0.25  # share of the run within which most of the last score should be reached


def gains_flatten(evidence: Evidence) -> TestOutcome:
    """Compare for each task of GLUE how long before a quarter of the run it reached 95 % of its last score.

    A task whose last score is not above a constant answer's, or not significantly above 0 (see `results.read_reached`),
    cannot be compared and is named instead. A score may have been reached at any time since the previous evaluated
    step, so the interval extends to it.
    """
    scores = results.read_task_scores(evidence.run)
    comparisons: list[Comparison] = []
    unlearned: list[str] = []
    uncertain: list[str] = []
    for task, rows in scores[scores["task"].isin(GLUE)].groupby("task"):
        metric = GLUE[task].metrics[0]
        rows = rows[rows["metric"] == metric]
        baseline = rows[rows["predictor"] != "model"]["value"].max()
        means = rows[rows["predictor"] == "model"].groupby("step").agg(value=("value", "mean"), n=("n", "max"))
        model = Curve(*(means.reset_index()[name].to_numpy() for name in ("step", "value", "n")))
        if len(model.steps) < 2:
            continue
        reached, _ = results.read_reached(evidence.run, task, metric)  # 95 %, and 99 %
        if reached is None or model.values[-1] <= baseline:
            (unlearned if model.values[-1] <= baseline else uncertain).append(task)
            continue
        evidence.note(metric, task, -1, model)
        previous_step = max((step for step in model.steps if step < reached.earliest), default=0)
        share, low, high = (
            float(EARLY_SHARE - step / model.steps[-1]) for step in (reached.step, reached.latest, previous_step)
        )
        comparisons.append(Comparison(task, share, low, high, "share of the run", model.cases))
    left_out = {"Not above one answer for all at the end": unlearned, "Not significantly above 0 at the end": uncertain}
    statistic = " ".join(f"{reason}: {', '.join(tasks)}." for reason, tasks in left_out.items() if tasks)
    return TestOutcome(comparisons, statistic, final=bool(statistic))


FINDINGS = (
    Finding(
        name="gains_flatten",
        claim="Downstream performance grows fast, then hardly.",
        section="Section 5, Figure 5",
        predicts="A quarter of the run makes at least 95 % of a task's last score.",
        page="Fine-tuning",
        view={},
        metrics=(),
        command="finetune --glue FOLDER",
        test=gains_flatten,
        needs=frozenset({"trainable"}),
    ),
)
