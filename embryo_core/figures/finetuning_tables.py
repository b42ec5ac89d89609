"""Tables of the Fine-tuning page: what each task needs, what predicts it, and answers to its examples (Section 5)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import curves, results, runs
from embryo_core.corpora.groups import ALL
from embryo_core.curves.agreement import MIN_ITEMS, rank_agreement
from embryo_core.curves.reached import Reached
from embryo_core.curves.step_scales import log_spaced
from embryo_core.errors import EmbryoError
from embryo_core.figures.figure import Caption, sentences
from embryo_core.figures.finetuning import METRICS, glue_average, label, task_of
from embryo_core.finetune.task_specs import GLUE, SQUAD, results_name
from embryo_core.types import Run, StepUnit
from embryo_core.words import point, span

MAX_STEPS = 24  # columns of steps in a table of examples
LOGGED = "the accuracy on masked words of held-out text in the training log"
EVALUATED = "the accuracy of mask prediction over all words of the treebank"

# === How much pretraining each task needs ===


def read_reached(run: Run, curve: str, metric: str) -> list[Reached | None]:
    """Return when a task reached 95 % and 99 % of its last score (see `curves.reached`). Raises ResultsError."""
    read = results.read_reached_in_spans if task_of(curve) == SQUAD else results.read_reached
    return read(run, task_of(curve), metric)


def task_table(scores: pd.DataFrame, step: int, reached: Mapping[str, Sequence[Reached | None]]) -> pd.DataFrame:
    """Return a row for each task of a `score_table`: task, metric, now, last, best, control, n, seeds, 95 %, 99 %.

    `now` is the score at a step, `best` the step of the highest score, and the shares are when they were `reached`.
    """
    rows = []
    for task, own in scores.groupby("task", sort=False):
        by_step = own.set_index("step")["value"]
        last = own.iloc[-1]
        rows.append(
            {
                "task": label(task),
                "metric": METRICS[last["metric"]],
                "now": by_step.get(step),
                "last": last["value"],
                "best": int(by_step.idxmax()),
                "control": last["control"],
                "n": int(last["n"]),
                "seeds": int(own["seeds"].max()),
                **dict(zip(("95 %", "99 %"), map(_with_interval, reached.get(task, ())), strict=False)),
            }
        )
    return pd.DataFrame(rows)


def _with_interval(found: Reached | None) -> str:
    if found is None:
        return "last score not surely above 0"
    return f"{found.step:,} ({found.earliest:,} to {found.latest:,})"


def describe_tasks(scores: pd.DataFrame, unit: StepUnit) -> Caption:
    """Return the caption of `task_table`: the GLUE average, how to read it, and tasks that end at their control."""
    reading = (
        "95 % and 99 %: the first step at which the score is at least that share of its last value, with a 95 % "
        "interval from 400 bootstrap samples of the development examples."
    )
    last = scores.groupby("task", sort=False).last()
    unlearned = [label(task) for task in last.index[last["value"] <= last["control"]]]
    left = f"At or below the control at the end, so nothing was learned to reach: {', '.join(unlearned)}."
    left, hint = left if unlearned else "", "Click a row to see a task in detail."
    average = glue_average(scores)
    if average.empty:
        return Caption(reading, left, hint=hint)
    end = average.iloc[-1]
    at = point(int(end["step"]), unit)
    summary = f"GLUE average at {at}: {end['value']:.3f}, over {end['tasks']}."
    return Caption(summary, sentences(reading, left), hint=hint)


# === Does the accuracy on masked words predict the task? ===


def read_associations(run: Run, scores: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return `associations` of a `score_table` with the run's accuracy on masked words, and what that accuracy is.

    Raises ResultsError.
    """
    masked, accuracy = read_masked_accuracy(run, scores["step"].unique())
    return associations(scores, masked), accuracy


def associations(scores: pd.DataFrame, masked: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation over the steps of each task's score with the accuracy on masked words.

    Columns: task, value, low and high (see `agreement.rank_agreement`; missing if all scores are equal), steps, and
    tied: the number of steps that share the most frequent score. `masked` has the columns step and value. Tasks with
    fewer than four steps in common with it are left out.
    """
    rows = []
    for task, own in scores.groupby("task", sort=False):
        both = own[["step", "value"]].merge(masked[["step", "value"]], on="step", suffixes=("", "_masked"))
        if len(both) < MIN_ITEMS:
            continue
        found, most = rank_agreement(both["value"], both["value_masked"]), both["value"].value_counts().max()
        rho = (found.rho, found.low, found.high) if found else (np.nan,) * 3
        rows.append((task, *rho, len(both), most if most > 1 else 0))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high", "steps", "tied"])


def read_masked_accuracy(run: Run, steps: Collection[int]) -> tuple[pd.DataFrame, str]:
    """Return the accuracy on masked words, with columns step and value, and what it is.

    It is that of the training log, of the widest sample of held-out text over these `steps` if the log has several;
    else that of mask prediction. Raises ResultsError.
    """
    widest = widest_sample(_read_measures(run), steps)
    if len(widest):
        return widest, _logged(widest["n"])
    log = pd.DataFrame(runs.read_log(run))
    if not log.empty and "masked_lm_accuracy" in log:
        rows = log[log["split"] == "heldout"].rename(columns={"masked_lm_accuracy": "value"})
        if len(rows := rows.dropna(subset="value")):
            return rows, _logged(rows["n_masked"]) if "n_masked" in rows else LOGGED
    scores = results.read_scores(run, "mask_prediction")
    return scores[scores["group"] == ALL], EVALUATED


def _read_measures(run: Run) -> pd.DataFrame:
    """Read the log's accuracies by position; none if they cannot be read."""
    try:
        return pd.DataFrame(runs.read_measures(run), columns=runs.Measured._fields)
    except EmbryoError:
        return pd.DataFrame(columns=runs.Measured._fields)


def _logged(n: pd.Series) -> str:
    return f"{LOGGED} (n = {span(n)} masked pieces at a step)"


def widest_sample(measures: pd.DataFrame, steps: Collection[int]) -> pd.DataFrame:
    """Return the accuracy, masked as in training, of one sample of the shortest sequences: step, value, n.

    It is the sample that most of the `steps` have, of several the largest, since accuracies of two samples cannot be
    compared. `measures` is the table of `runs.read_measures`; the result is empty if nothing was masked so.
    """
    rows = measures[measures["masking"] == "training"]
    rows = rows[rows["length"] == rows["length"].min()].drop_duplicates(["step", "sample", "first"])
    right = (rows["accuracy"] * rows["n"]).groupby([rows["step"], rows["sample"]]).sum().reset_index(name="right")
    covered = right["step"].isin(steps).groupby(right["sample"]).sum()
    widest = max(covered.index, key=lambda sample: (covered[sample], sample), default=None)
    found = right[right["sample"] == widest]
    return found.assign(value=found["right"] / found["sample"], n=found["sample"])[["step", "value", "n"]]


def describe_associations(table: pd.DataFrame, accuracy: str) -> Caption:
    """Return the caption of `associations` with this accuracy; it names tasks whose scores are mostly tied."""
    tied = [
        f"{label(row.task)} has the same score at {row.tied:,} of {row.steps:,} steps"
        for row in table.itertuples()
        if 2 * row.tied > row.steps
    ]
    return Caption(
        f"Spearman's correlation, over the steps, of each task's score with {accuracy}, with a 95 % interval (Bonett "
        "and Wright; n is the number of steps; if two orders are equal, it has no width).",
        sentences(
            f"{'; '.join(tied)}: such ranks say next to nothing." if tied else "",
            "Near 1, steps with a higher accuracy also score higher on the task. The interval takes steps as "
            "independent, which those of one run are not.",
        ),
    )


# === Answers to the development examples ===


def read_seeds(run: Run, task: str) -> list[int]:
    """Return the seeds of a task's fine-tunings, sorted. Raises ResultsError."""
    scores = results.read_task_scores(run, task)
    return sorted(scores.loc[scores["predictor"] == "model", "seed"].unique().tolist())


def read_examples(run: Run, task: str, seed: int, contexts: pd.Series | None = None) -> pd.DataFrame:
    """Return what one seed answered to each development example at each step.

    Classes and questions have their history (see `answer_histories`, `span_histories`), values have none; `contexts`
    are the paragraphs of questions by id, if they are known. Raises ResultsError.
    """
    if task == SQUAD:
        spans = results.read_spans(run, task)
        return span_histories(spans[spans["seed"] == seed], contexts)
    answers = results.read_answers(run, task)
    answers = answers[answers["seed"] == seed]
    if {"spearman", "pearson"} & set(results.read_task_scores(run, task)["metric"]):
        return answered_values(answers)
    labels = results.read_sources(run).get(results_name(task, seed), {}).get("labels")
    return answer_histories(answers, labels if isinstance(labels, list) else ())


def answer_histories(answers: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
    """Return the answers of one seed by example: gold, history (by the rules for facts), a column for each step.

    `answers` has the columns step, example, gold and answer, the latter two indices of the `labels` if these are known.
    """
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    history = curves.classify_histories(table.eq(gold, axis=0))
    if labels:
        names = dict(enumerate(labels))
        table, gold = table.stack().map(names).unstack(), gold.map(names)
    return _by_example(table, gold=gold, history=history)


def answered_values(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of one seed to a regression, in which nothing is right or wrong: gold, a column per step."""
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    return _by_example(table.astype(float).round(2), gold=gold.astype(float).round(2))  # float32 has 2.0799999 for 2.08


def span_histories(spans: pd.DataFrame, contexts: pd.Series | None) -> pd.DataFrame:
    """Return the answers of one seed by the question's id: history, a column for each step.

    A column has the answers if the paragraphs, `contexts` by id, are known, else F1. Right is an exact match.
    """
    shown = spans["f1"].astype(float).round(2)
    if contexts is not None:
        where = zip(spans["question"].map(contexts).fillna(""), spans["start"], spans["end"], strict=True)
        shown = pd.Series([context[start:end] or "(none)" for context, start, end in where], spans.index)
    table = spans.assign(shown=shown).pivot(index="question", columns="step", values="shown")
    right = spans.pivot(index="question", columns="step", values="exact").to_numpy() == 1
    return _by_example(table, history=curves.classify_histories(right))


def _by_example(table: pd.DataFrame, **before: Any) -> pd.DataFrame:
    """Return a table whose columns are steps, with these columns before them."""
    return pd.concat([pd.DataFrame(before, index=table.index), table], axis=1)


def with_some_steps(table: pd.DataFrame, chosen: int, unit: StepUnit) -> pd.DataFrame:
    """Return a table of examples with at most MAX_STEPS steps, evenly on a log axis, and the chosen one."""
    steps = sorted(column for column in table if not isinstance(column, str))
    shown = sorted({*log_spaced(steps, MAX_STEPS), *({chosen} & {*steps})})
    others = [column for column in table if isinstance(column, str)]
    return table[[*others, *shown]].rename(columns={step: point(step, unit) for step in shown})


def describe_examples(task: str, table: pd.DataFrame, listed: int, seed: int, with_texts: bool) -> Caption:
    """Return the caption of a table of examples: how many are `listed`, their histories, and where their texts are."""
    by = "the id of their question" if task == SQUAD else "their row in the validation file"
    steps = sum(not isinstance(column, str) for column in table)
    which = "each step" if steps <= MAX_STEPS else f"the chosen step and {MAX_STEPS} of the {steps:,} steps"
    histories = ""
    if "history" in table:
        counted = ", ".join(f"{count:,} {name}" for name, count in table["history"].value_counts().items())
        histories = (
            f"Of {len(table):,}: {counted}; {listed:,} are listed. Learned: right from some step on; forgotten: right "
            "over one stretch of steps only, then wrong; oscillating: right over several stretches."
        )
    matches = "" if with_texts else " Each step's column has F1, because the paragraphs were not found."
    return Caption(
        f"Development examples by {by}, with what {which} answered (seed {seed}).",
        sentences(
            histories,
            f"Right is an exact match.{matches}" if task == SQUAD else "",
            "" if with_texts else _where_texts(task),
        ),
    )


def _where_texts(task: str) -> str:
    """Return where the texts are searched for; results do not hold them."""
    folder = f"corpora/glue/{task}" if task in GLUE else f"corpora/{task}"
    fetched = f"python -m embryo_core fetch {'glue' if task in GLUE else SQUAD} downloads them"
    how = fetched if task in (*GLUE, SQUAD) else "put them there"
    return (
        "Their texts are not in the results. They are shown if the data that were scored are in "
        f"{folder} of a data folder, or where you fine-tuned on them; {how}."
    )
