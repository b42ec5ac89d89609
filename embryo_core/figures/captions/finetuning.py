"""What the captions of the Fine-tuning page say: what was trained and scored, and the controls."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from embryo_core.figures.finetuning import COLUMNS, METRICS, label, published
from embryo_core.figures.markdown import literal
from embryo_core.finetune.task_specs import GLUE, SQUAD, RateChoice
from embryo_core.results import of_other_data
from embryo_core.types import StepUnit
from embryo_core.words import point, span

LOGGED = "the accuracy on masked words of held-out text in the training log"
EVALUATED = "the accuracy of mask prediction over all words of the treebank"


def logged(n: pd.Series) -> str:
    """`LOGGED`, with how many masked pieces it is of at each step."""
    return f"{LOGGED} (n = {span(n)} masked pieces at a step)"


def curve(noted: Mapping[str, Any]) -> str:
    """What the curves of a fine-tuning are, and how its learning rate was chosen where that says little.

    `noted` is what sources.json has of it.
    """
    words = (
        "One line per fine-tuning of this checkpoint: the mean training loss since the point before, and the score on "
        "the development set after every epoch."
    )
    choice = RateChoice.read(noted)
    if choice is None or not choice.is_tied:
        return words
    best = [f"{rate:g}" for rate, score in choice.tried.items() if score == max(choice.tried.values())]
    by = "it has the lowest loss of these" if choice.losses else "it is the smallest of these"
    return (
        f"{words} The trials of the learning rates {', '.join(best)} had the same score, so {choice.learning_rate:g} "
        f"was not chosen by it: {by}."
    )


def associations(table: pd.DataFrame, accuracy: str) -> str:
    """How to read the correlations with this accuracy, and which tasks' scores are mostly tied."""
    tied = [
        f"{literal(label(row.task))} has the same score at {row.tied:,} of {row.steps:,} steps"
        for row in table.itertuples()
        if 2 * row.tied > row.steps
    ]
    warning = f" {'; '.join(tied)}: what its ranks say is next to nothing." if tied else ""
    return (
        f"Spearman's correlation, over the steps, of each task's score with {accuracy}, with a 95 % interval (Bonett "
        f"and Wright; n is the number of steps; where two orders are equal, it has no width).{warning} Near 1, steps "
        "with a higher accuracy also score higher on the task. The interval takes steps as independent, which those of "
        "one run are not."
    )


def scores(
    frame: pd.DataFrame,
    average: pd.DataFrame,
    sources: Mapping[str, Mapping[str, Any]],
    unit: StepUnit,
) -> str:
    """What the curves are: metrics, development examples, seeds, controls, and how the models were tuned.

    The GLUE average may be empty.
    """
    counted = "; ".join(
        f"{literal(label(task))}: {METRICS[rows['metric'].iloc[0]]} on {rows['n'].max():,} examples"
        for task, rows in frame.groupby("task", sort=False)
    )
    least, most = int(frame["seeds"].min()), int(frame["seeds"].max())
    seeds = f"{'up to ' if least < most else ''}{most} seeds" if most > 1 else "a single seed: no spread is known"
    bands = " Bands span the seeds, lines are their mean." if most > 1 else ""
    own = {name: noted for name, noted in sources.items() if _is_of(name, frame)}
    protocols = " and ".join(sorted({str(noted.get("protocol", "unknown")) for noted in own.values()}))
    others = ", ".join(map(_named, of_other_data(own, sources)))
    left_out = f" Left out, as data or settings are not those of the task's first seed: {others}." if others else ""
    averaged = "" if average.empty else f"; GLUE average over {average['tasks'].iloc[0]}"
    lines = any(published(task, rows) is not None for task, rows in frame.groupby("task"))
    albert = " Dashes and dots: ALBERT-base, version 1, as google-research/albert published it." if lines else ""
    return (
        f"Each checkpoint, fine-tuned as a whole and scored on the development set (protocol {literal(protocols)}; "
        f"{seeds}{averaged}). {counted}.{bands} The large marker is the best step. Dashed: a control that reads no "
        f"text. {_random_weights(frame, unit)}{albert}{left_out}"
    )


def overlaid(frames: Mapping[str, pd.DataFrame], averages: Iterable[pd.DataFrame]) -> str:
    """The same of several runs by name, with their GLUE averages, which may be empty and are of the same tasks."""
    every = pd.concat(frames.values())
    metrics = "; ".join(
        f"{literal(label(task))}: {METRICS[rows['metric'].iloc[0]]}" for task, rows in every.groupby("task", sort=False)
    )
    seeds = "; ".join(f"{literal(run)} {span(frame['seeds'])}" for run, frame in frames.items())
    random = [literal(run) for run, frame in frames.items() if not frame["step"].min()]
    first = f" The first points of {', '.join(random)} are of random weights, fine-tuned alike." if random else ""
    among = next((average["tasks"].iloc[0] for average in averages if len(average)), "")
    average = f" GLUE averages are over the tasks that all of them have: {among}." if among else ""
    return (
        f"Each checkpoint, fine-tuned as a whole and scored on the development set. {metrics}. Seeds: {seeds}; lines "
        f"are their mean, bands span them.{average} Baselines are controls that read no text.{first}"
    )


def _random_weights(frame: pd.DataFrame, unit: StepUnit) -> str:
    """Whether random weights are among the points."""
    first = int(frame["step"].min())
    if first:
        begin = point(first, unit)
        return f"Random weights, another control, were not fine-tuned: the first are those of {begin}."
    begin = point(0, unit).capitalize()
    return f"{begin}, random weights fine-tuned in the same way, is another control."


def _named(evaluation: str) -> str:
    """The task and seed of "finetuning:<task>:<seed>"."""
    task, _, seed = evaluation.removeprefix("finetuning:").rpartition(":")
    return f"{literal(label(task))} with seed {literal(seed)}"


def _is_of(name: str, frame: pd.DataFrame) -> bool:
    return name.startswith("finetuning:") and name.split(":")[1] in set(frame["task"])


def table(average: pd.DataFrame, frame: pd.DataFrame, unit: StepUnit) -> str:
    """How to read the table; the average over GLUE's tasks, and which these are; tasks that end at their control."""
    words = (
        "95 % and 99 %: the first step at which the score is at least that share of its last value, with a 95 % "
        "interval from 400 bootstrap samples of the development examples. Click a row to see a task in detail."
    )
    last = frame.groupby("task", sort=False).last()
    if unlearned := [literal(label(task)) for task in last.index[last["value"] <= last["control"]]]:
        words += f" At or below the control at the end, so nothing was learned to reach: {', '.join(unlearned)}."
    if average.empty:
        return words
    last = average.iloc[-1]
    at = point(int(last["step"]), unit)
    return f"GLUE average at {at}: {last['value']:.3f}, over {last['tasks']}. {words}"


def examples(task: str, table: pd.DataFrame, listed: pd.DataFrame, seed: int, with_texts: bool) -> str:
    """What the table shows, how many examples had which history, and where their texts are."""
    by = "the id of their question" if task == SQUAD else "their row in the validation file"
    steps = sum(not isinstance(column, str) for column in table)
    which = "each step" if steps <= COLUMNS else f"the chosen step and {COLUMNS} of the {steps:,} steps"
    words = f"Development examples by {by}, with what {which} answered (seed {seed})."
    if "history" in table:
        counted = ", ".join(f"{count:,} {name}" for name, count in table["history"].value_counts().items())
        words += (
            f" Of {len(table):,}: {counted}; {len(listed):,} are listed. Learned: right from some step on; forgotten: "
            "right over one stretch of steps only, then wrong; oscillating: right over several stretches."
        )
    if task == SQUAD:
        words += " Right is an exact match" + (
            "." if with_texts else "; each step's column holds F1, as the paragraphs are not at hand."
        )
    return words if with_texts else f"{words} {_where_texts(task)}"


def _where_texts(task: str) -> str:
    """Where the texts are searched for; the results do not hold them."""
    folder = f"corpora/glue/{task}" if task in GLUE else f"corpora/{task}"
    fetched = "`python -m embryo_core fetch {}`".format("glue" if task in GLUE else SQUAD)
    how = f"{fetched} brings them" if task in (*GLUE, SQUAD) else "put them there"
    return (
        "Their texts are not in the results: they are shown where the data that they were scored on are in "
        f"{literal(folder)} of a data folder, or where you fine-tuned on them here; {how}."
    )
