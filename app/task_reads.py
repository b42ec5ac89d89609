"""Cached reads of fine-tuned checkpoints: their scores, training curves and answers, and the texts they answered."""

from pathlib import Path

import pandas as pd

from app import results, task_data
from app.caching import cached, kept_whole, results_state
from embryo_core import results as store
from embryo_core.curves.reached import Reached
from embryo_core.errors import CorpusError
from embryo_core.figures import finetuning
from embryo_core.finetune.task_folders import read_texts
from embryo_core.finetune.task_specs import SQUAD, results_name
from embryo_core.types import Run

tuning = cached(results_state, 32)(store.read_tuning)


@cached(results_state, 8)
def curves(run: Run) -> pd.DataFrame:
    """Scores of the fine-tuned checkpoints (see `charts.finetuning.task_curves`). Raises ResultsError."""
    return finetuning.task_curves(store.read_task_scores(run))


@cached(results_state, 32, "Resampling the development examples")
def reached(run: Run, task: str, metric: str) -> list[Reached | None]:
    """When a task's score reached 95 % and 99 % of its last value (see `curves.reached`). Raises ResultsError."""
    read = store.read_reached_in_spans if task == SQUAD else store.read_reached
    return read(run, task, metric)


def texts(run: Run, task: str) -> pd.DataFrame | None:
    """Texts of a task's development examples (see `finetune.task_folders`); None where its data cannot be read here."""
    place = task_data.find(run, task)
    return _texts(run, task, place.folder, place.state)


@kept_whole(results_state, 4, "Reading the texts")
def _texts(run: Run, task: str, folder: Path | None, state: str) -> pd.DataFrame | None:
    """The same, `state` being that of the folder."""
    try:
        return None if folder is None else read_texts(task, folder)
    except CorpusError:
        return None


@cached(results_state, 32)
def seeds(run: Run, task: str) -> list[int]:
    """The seeds of a task's fine-tunings, sorted."""
    scores = store.read_task_scores(run, task)
    return sorted(scores.loc[scores["predictor"] == "model", "seed"].unique().tolist())


def examples(run: Run, task: str, seed: int) -> pd.DataFrame:
    """What each step answered to each development example, of one seed (see `charts.finetuning`). Raises ResultsError.

    Values of a regression, or labels with their history; of questions, the spans where the paragraphs can be read.
    """
    place = task_data.find(run, task)
    return _examples(run, task, seed, place.folder, place.state)


@kept_whole(results_state, 4, "Reading the answers")
def _examples(run: Run, task: str, seed: int, folder: Path | None, state: str) -> pd.DataFrame:
    if task == SQUAD:
        spans, known = store.read_spans(run, task), _texts(run, task, folder, state)
        return finetuning.span_histories(spans[spans["seed"] == seed], None if known is None else known["context"])
    answers = store.read_answers(run, task)
    answers = answers[answers["seed"] == seed]
    if {"spearman", "pearson"} & set(store.read_task_scores(run, task)["metric"]):
        return finetuning.values(answers)
    labels = results.sources(run).get(results_name(task, seed), {}).get("labels")
    return finetuning.histories(answers, labels if isinstance(labels, list) else ())
