"""Tables of the Fine-tuning page: scores, the steps at which tasks reach their last score, and predictors."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from embryo_core import results, runs
from embryo_core.curves.agreement import MIN_ITEMS, rank_agreement
from embryo_core.curves.reached import ReachedStep
from embryo_core.figures import positions
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.figure import Caption, data_note, sentences
from embryo_core.findings.words import PREDICTION, equivalent_metric
from embryo_core.finetune.task_specs import GLUE, SQUAD, results_name
from embryo_core.groups import ALL
from embryo_core.types import Run, StepUnit
from embryo_core.words import count_range, name_step

AVERAGE = "glue average"
EXACT = "squad exact match"  # second curve of SQuAD, next to its F1
# a task's score is the first of these metrics that it has
MAIN_METRICS = ("matthews", "f1", "spearman", "accuracy", "exact")
TASK_NAMES = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "stsb": "STS-B",
    "qqp": "QQP",
    "mnli": "MNLI",
    "qnli": "QNLI",
    "rte": "RTE",
    SQUAD: "SQuAD",
    EXACT: "SQuAD EM",
    AVERAGE: "GLUE average",
}
METRIC_NAMES = {
    "matthews": "Matthews' correlation",
    "f1": "F1",
    "spearman": "Spearman's correlation",
    "pearson": "Pearson's correlation",
    "accuracy": "accuracy",
    "exact": "exact match",
}
LOGGED_ACCURACY = "the accuracy on masked words of held-out text in the training log"
EVALUATED_ACCURACY = "the accuracy of mask prediction over all words of the treebank"


def task_label(task: str) -> str:
    """Return the usual spelling of a task's name."""
    return TASK_NAMES.get(task, task)


def task_of(curve: str) -> str:
    """Return the task of a curve; SQuAD has two curves."""
    return SQUAD if curve == EXACT else curve


# === Scores over pretraining ===


def read_scores(run: Run, tasks: Collection[str] | None = None) -> pd.DataFrame:
    """Return the `score_table` of a run for some tasks, by default all, with a note on the data of each row.

    Raises ResultsError.
    """
    table = score_table(results.read_task_scores(run))
    if tasks is not None:
        table = table[table["task"].map(task_of).isin(tasks)]
    notes = {task: data_note(run, results_name(task_of(task), 1)) for task in table["task"].unique()}
    return table.assign(data=table["task"].map(notes))


def score_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each task's score over the steps: task, metric, step, value, low, high, seeds, n, control.

    The value is the mean over the seeds, `low` and `high` the ends of their range, missing for a single seed. `control`
    is the score of a predictor that reads no text. SQuAD's exact match is a separate task, EXACT.
    """
    exact = scores[scores["metric"] == "exact"].assign(task=EXACT)
    rows = pd.concat([scores, exact], ignore_index=True)
    rows = rows[rows["metric"].isin(MAIN_METRICS)]
    rank = rows["metric"].map(MAIN_METRICS.index)
    main = rows[rank == rank.groupby(rows["task"]).transform("min")]
    is_model = main["predictor"] == "model"
    grouped = main[is_model].groupby(["task", "metric", "step"])
    table = grouped.agg(
        value=("value", "mean"), low=("value", "min"), high=("value", "max"), seeds=("seed", "nunique"), n=("n", "max")
    )
    table.loc[table["seeds"] < 2, ["low", "high"]] = np.nan
    control = main[~is_model].groupby(["task", "metric", "step"])["value"].mean().rename("control")
    return table.join(control).reset_index()


def glue_average(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score of the GLUE tasks of a `score_table` at the steps that all of them have.

    Columns: step, value, control, task (AVERAGE), tasks (names of the averaged tasks). Empty for fewer than two GLUE
    tasks.
    """
    glue = table[table["task"].isin(GLUE)]
    glue_tasks = glue if glue["task"].nunique() > 1 else glue[:0]
    common_steps = glue_tasks[glue_tasks.groupby("step")["task"].transform("size") == glue_tasks["task"].nunique()]
    means = common_steps.groupby("step")[["value", "control"]].mean().reset_index()
    task_names = set(glue["task"].unique())
    return means.assign(task=AVERAGE, tasks=", ".join(task_label(task) for task in GLUE if task in task_names))


# === How much pretraining each task needs ===


def read_reached(run: Run, curve: str, metric: str) -> list[ReachedStep | None]:
    """Return when a task reached 95 % and 99 % of its last score (see `curves.reached`). Raises ResultsError."""
    return results.read_reached(run, task_of(curve), metric, spans=task_of(curve) == SQUAD)


def task_table(
    scores: pd.DataFrame, step: int, reached: Mapping[str, Sequence[ReachedStep | None]], axis: StepAxis
) -> pd.DataFrame:
    """Return a row for each task of a `score_table`: task, metric, now, last, best, control, n, seeds, 95 %, 99 %.

    `now` is the score at a step, `best` the step of the highest score; the last two columns have the steps in
    `reached`, with their 95 % intervals.
    """
    rows = []
    for task, task_scores in scores.groupby("task", sort=False):
        by_step = task_scores.set_index("step")["value"]
        last = task_scores.iloc[-1]
        is_unlearned = last["value"] <= last["control"]
        rows.append(
            {
                "task": task_label(task),
                "metric": METRIC_NAMES[last["metric"]],
                "now": by_step.get(step),
                "last": last["value"],
                "best": int(by_step.idxmax()),
                "control": last["control"],
                "n": int(last["n"]),
                "seeds": int(task_scores["seeds"].max()),
                **{
                    level: "not above the control" if is_unlearned else _with_interval(first_step, axis)
                    for level, first_step in zip(("95 %", "99 %"), reached.get(task, ()))
                },
            }
        )
    return pd.DataFrame(rows)


def _with_interval(reached: ReachedStep | None, axis: StepAxis) -> str:
    if reached is None:
        return "not significantly above 0"
    step, earliest, latest = map(axis.number_without_unit, (reached.step, reached.earliest, reached.latest))
    return f"{step} ({earliest} to {latest})"


def describe_tasks(scores: pd.DataFrame, unit: StepUnit) -> Caption:
    """Return the caption of `task_table`: the GLUE average, an explanation, and tasks that end at their control."""
    reading = (
        "95 % and 99 %: the first step at which the score is at least that fraction of its last value, with a 95 % "
        "interval from 400 bootstrap samples of the development examples."
    )
    last = scores.groupby("task", sort=False).last()
    unlearned = [task_label(task) for task in last.index[last["value"] <= last["control"]]]
    unlearned_note = f"At or below the control at the end, so without such a step: {', '.join(unlearned)}."
    unlearned_note, hint = unlearned_note if unlearned else "", "Click a row to see a task in detail."
    average = glue_average(scores)
    if average.empty:
        return Caption(reading, unlearned_note, hint=hint)
    last_row = average.iloc[-1]
    step_name = name_step(int(last_row["step"]), unit)
    summary = f"GLUE average at {step_name}: {last_row['value']:.3f}, over {last_row['tasks']}."
    return Caption(summary, sentences(reading, unlearned_note), hint=hint)


# === Does the accuracy on masked words predict the task? ===


def read_associations(run: Run, scores: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the `associations` of scores with the accuracy on masked words, and its name. Raises ResultsError."""
    masked, accuracy = read_masked_accuracy(run, scores["step"].unique())
    return associations(scores, masked), accuracy


def associations(scores: pd.DataFrame, masked: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation over the steps of each task's score with the accuracy on masked words.

    Columns: task, value, low and high (see `agreement.rank_agreement`; missing if all scores are equal), steps, and
    tied: the number of steps that share the most frequent score. `masked` has the columns step and value. Tasks with
    fewer than four steps in common with it are left out.
    """
    rows = []
    for task, task_scores in scores.groupby("task", sort=False):
        merged = task_scores[["step", "value"]].merge(masked[["step", "value"]], on="step", suffixes=("", "_masked"))
        if len(merged) < MIN_ITEMS:
            continue
        agreement = rank_agreement(merged["value"], merged["value_masked"])
        max_ties = merged["value"].value_counts().max()
        rho = (agreement.rho, agreement.low, agreement.high) if agreement else (np.nan,) * 3
        rows.append((task, *rho, len(merged), max_ties if max_ties > 1 else 0))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high", "steps", "tied"])


def read_masked_accuracy(run: Run, steps: Collection[int]) -> tuple[pd.DataFrame, str]:
    """Return the accuracy on masked words, with columns step and value, and its name.

    It comes from the training log (from the sample of held-out text that covers most of these `steps`, if there are
    several), else from mask prediction, or next-word prediction for a decoder. Raises ResultsError.
    """
    widest = widest_sample(positions.measure_table(run), steps)
    if len(widest):
        return widest, _describe_logged(widest["n"])
    log = pd.DataFrame(runs.read_log(run))
    if not log.empty and "masked_lm_accuracy" in log:
        rows = log[log["split"] == "heldout"].rename(columns={"masked_lm_accuracy": "value"})
        if len(rows := rows.dropna(subset="value")):
            return rows, _describe_logged(rows["n_masked"]) if "n_masked" in rows else LOGGED_ACCURACY
    scores = results.read_scores(run, metric := equivalent_metric(run, PREDICTION))
    return scores[scores["group"] == ALL], EVALUATED_ACCURACY.replace("mask prediction", metric.replace("_", " "))


def _describe_logged(n: pd.Series) -> str:
    return f"{LOGGED_ACCURACY} (n = {count_range(n)} masked pieces at a step)"


def widest_sample(measures: pd.DataFrame, steps: Collection[int]) -> pd.DataFrame:
    """Return the accuracy, masked as in training, of one sample of the shortest sequences: step, value, n.

    It is the sample that covers most of the `steps`, and the largest of several such samples, since accuracies of two
    samples cannot be compared. `measures` is the table of `runs.read_measures`; the result is empty without such a
    sample.
    """
    rows = measures[measures["masking"] == "training"]
    rows = rows[rows["length"] == rows["length"].min()].drop_duplicates(["step", "sample", "first"])
    right_counts = (
        (rows["accuracy"] * rows["n"]).groupby([rows["step"], rows["sample"]]).sum().reset_index(name="right")
    )
    covered_steps = right_counts["step"].isin(steps).groupby(right_counts["sample"]).sum()
    widest = max(covered_steps.index, key=lambda sample: (covered_steps[sample], sample), default=None)
    table = right_counts[right_counts["sample"] == widest]
    return table.assign(value=table["right"] / table["sample"], n=table["sample"])[["step", "value", "n"]]


def describe_associations(table: pd.DataFrame, accuracy: str) -> Caption:
    """Return the caption of `associations` with this accuracy; it names tasks whose scores are mostly tied."""
    tied_tasks = [
        f"{task_label(row.task)} has the same score at {row.tied:,} of {row.steps:,} steps"
        for row in table.itertuples()
        if 2 * row.tied > row.steps
    ]
    return Caption(
        f"Spearman's correlation, over the steps, of each task's score with {accuracy}, with a 95 % interval (Bonett "
        "and Wright; n is the number of steps; if two orders are equal, it has no width).",
        sentences(
            f"{'; '.join(tied_tasks)}: such ranks are nearly meaningless." if tied_tasks else "",
            "Near 1, steps with a higher accuracy also score higher on the task. The interval treats steps as "
            "independent, which those of one run are not.",
        ),
    )
