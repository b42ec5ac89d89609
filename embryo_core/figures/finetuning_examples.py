"""Tables of the Fine-tuning page: the answers to a task's development examples at every step."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from embryo_core import curves, results
from embryo_core.curves.step_scales import log_spaced
from embryo_core.figures.figure import Caption, sentences
from embryo_core.finetune.task_specs import GLUE, SQUAD, results_name
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step

MAX_STEPS = 24  # largest number of columns of steps in a table of examples
PARTLY_ANSWERED = "not answered at every step"  # in place of a history


def read_seeds(run: Run, task: str) -> list[int]:
    """Return the seeds of a task's fine-tunings, sorted. Raises ResultsError."""
    scores = results.read_task_scores(run, task)
    return sorted(scores.loc[scores["predictor"] == "model", "seed"].unique().tolist())


def read_examples(run: Run, task: str, seed: int, contexts: pd.Series | None = None) -> pd.DataFrame:
    """Return one seed's answer to each development example at each step.

    Answers of classification tasks and SQuAD have a history (see `answer_histories`, `span_histories`), values of
    regression tasks do not. `contexts` are the paragraphs of questions by id, if known. Raises ResultsError.
    """
    if task == SQUAD:
        spans = results.read_spans(run, task)
        return span_histories(spans[spans["seed"] == seed], contexts)
    answers = results.read_answers(run, task)
    answers = answers[answers["seed"] == seed]
    if {"spearman", "pearson"} & set(results.read_task_scores(run, task)["metric"]):
        return answered_values(answers)
    labels = results.read_sources(run).get(results_name(task, seed), {}).get("labels")
    return answer_histories(answers, [*map(str, labels)] if isinstance(labels, list) else ())


def answer_histories(answers: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
    """Return the answers of one seed by example: gold, history, a column for each step.

    `answers` has the columns step, example, gold and answer; the latter two are indices of `labels`, if given.
    Histories are those of `curves.classify_histories`; an example without an answer at some step is PARTLY_ANSWERED.
    """
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    history = _classify(table.eq(gold, axis=0), table)
    if labels:
        names = dict(enumerate(labels))
        table, gold = table.stack().map(names).unstack(), gold.map(names)
    return _by_example(table, gold=gold, history=history)


def answered_values(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of one seed to a regression task, without a history: gold, a column for each step."""
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    # float32 stores 2.0799999 for 2.08
    return _by_example(table.astype(float).round(2), gold=gold.astype(float).round(2))


def span_histories(spans: pd.DataFrame, contexts: pd.Series | None) -> pd.DataFrame:
    """Return the answers of one seed by the question's id: history, a column for each step.

    Columns of steps have the answers if the paragraphs are known (`contexts`, by id), else their F1. For the history,
    only an exact match is right; a question without an answer at some step is PARTLY_ANSWERED.
    """
    values = spans["f1"].astype(float).round(2)
    if contexts is not None:
        spans_in_context = zip(spans["question"].map(contexts).fillna(""), spans["start"], spans["end"], strict=True)
        values = pd.Series([context[start:end] or "(none)" for context, start, end in spans_in_context], spans.index)
    table = spans.assign(shown=values).pivot(index="question", columns="step", values="shown")
    exact = spans.pivot(index="question", columns="step", values="exact")
    return _by_example(table, history=_classify(exact == 1, exact))


def _classify(is_right: pd.DataFrame, answers: pd.DataFrame) -> pd.Series:
    """Return the history of each example from its `answers` and whether they are right, a column for each step."""
    histories = pd.Series(curves.classify_histories(is_right), answers.index)
    return histories.where(answers.notna().all(axis=1), PARTLY_ANSWERED)


def _by_example(table: pd.DataFrame, **before: Any) -> pd.DataFrame:
    """Put the columns `before` in front of a table whose columns are steps."""
    return pd.concat([pd.DataFrame(before, index=table.index), table], axis=1)


def select_columns_and_sort(table: pd.DataFrame, selected_step: int, unit: StepUnit) -> pd.DataFrame:
    """Reduce a table of examples to MAX_STEPS log-spaced steps and the chosen one; sort changing examples first."""
    if "history" in table:
        changing = ("learned", "forgotten", "oscillating")
        table = table.sort_values("history", key=lambda names: ~names.isin(changing), kind="stable")
    steps = sorted(column for column in table if not isinstance(column, str))
    shown_steps = sorted({*log_spaced(steps, MAX_STEPS), *({selected_step} & {*steps})})
    other_columns = [column for column in table if isinstance(column, str)]
    return table[[*other_columns, *shown_steps]].rename(columns={step: name_step(step, unit) for step in shown_steps})


def describe_examples(task: str, table: pd.DataFrame, listed_count: int, seed: int, with_texts: bool) -> Caption:
    """Return the caption of a table of examples: the number of listed ones, histories, and the source of the texts."""
    row_name = "the id of their question" if task == SQUAD else "their row in the validation file"
    step_count = sum(not isinstance(column, str) for column in table)
    steps_note = (
        "each step" if step_count <= MAX_STEPS else f"the chosen step and {MAX_STEPS} of the {step_count:,} steps"
    )
    histories = ""
    if "history" in table:
        counts = ", ".join(f"{count:,} {name}" for name, count in table["history"].value_counts().items())
        histories = (
            f"Of {len(table):,}: {counts}; {listed_count:,} are listed. Learned: right from some step on; forgotten: "
            "right over one stretch of steps only, then wrong; oscillating: right over several stretches."
        )
    match_note = "" if with_texts else " Each step's column has F1, because the paragraphs were not found."
    folder = f"corpora/glue/{task}" if task in GLUE else f"corpora/{task}"
    command = f"python -m embryo_core fetch {'glue' if task in GLUE else SQUAD} downloads them"
    texts = (
        "Their texts are not in the results. They are shown if the data that were scored are in "
        f"{folder} of a data folder, or where you fine-tuned on them; "
        f"{command if task in (*GLUE, SQUAD) else 'put them there'}."
    )
    return Caption(
        f"Development examples by {row_name}, with what {steps_note} answered (seed {seed}).",
        sentences(
            histories,
            f"Right is an exact match.{match_note}" if task == SQUAD else "",
            "" if with_texts else texts,
        ),
    )
