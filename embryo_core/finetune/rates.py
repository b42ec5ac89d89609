"""The quick protocol's learning rate: chosen once per task, at a late checkpoint, on a tenth of the training data.

The result of each trial is stored until a rate is chosen, so that a rerun after a crash tries only the remaining rates.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from tqdm import tqdm

from embryo_core import runs
from embryo_core.errors import ResultsError
from embryo_core.finetune.task_specs import QUICK_RATES, RateChoice, TuningSettings, quick_settings
from embryo_core.finetune.training import tune
from embryo_core.finetune.workers import DoJobs, EncodedTasks, cache_folder, fingerprint
from embryo_core.types import Checkpoint

logger = logging.getLogger(__name__)

TRIAL_SEED = 0  # seeds of results start at 1
HELD_OUT_SUFFIX = " held out"  # name suffix of a task encoded with a part of its training data as validation split


@dataclass(frozen=True)
class RateTrial:
    """One learning rate to try on one task."""

    checkpoint: Checkpoint
    task: str
    settings: TuningSettings
    identity: Mapping[str, Any]  # identity of the task's results

    @property
    def file(self) -> Path:
        """Return the file that stores the trial's result."""
        key = fingerprint(self.checkpoint, self.settings, {**self.identity, "task": self.task})
        return cache_folder(self.checkpoint.run) / f"rate-{key}.json"


@dataclass(frozen=True)
class TrialResult:
    """Score and loss of a learning rate on held-out training data; the defaults if training diverged or failed."""

    score: Annotated[float, Meta(ge=-1, le=1)] = -1.0
    loss: Annotated[float, Meta(ge=0)] = math.inf
    failure: str = ""  # the error message if the trial failed


def choose_rates(
    do_jobs: DoJobs,
    checkpoint: Checkpoint,
    lengths: Mapping[str, np.ndarray],
    identities: Mapping[str, Mapping[str, Any]],
    progress: bool = False,
) -> Iterator[tuple[str, RateChoice | str]]:
    """Yield each task with its best learning rate as soon as all rates are tried, or with a sentence on a failure.

    `lengths` are the lengths of the training sequences that are not held out, in pieces; `identities` identify the
    tasks' results. Ties in the score are broken by the lower loss, then by the smaller rate.
    """
    trials = [
        RateTrial(checkpoint, task, quick_settings(of_task, rate), identities[task])
        for (task, of_task), rate in product(lengths.items(), QUICK_RATES)
    ]
    by_task: dict[str, dict[float, TrialResult]] = {task: {} for task in lengths}
    title = f"learning rates, at step {checkpoint.step:,}"
    results = _results(do_jobs, trials)
    for trial, result in tqdm(results, desc=title, total=len(trials), unit="trial", disable=not progress or not trials):
        of_task = by_task[trial.task]
        of_task[trial.settings.learning_rate] = result
        if len(of_task) == len(QUICK_RATES):
            choice = _best_rate(checkpoint.step, trial.task, {rate: of_task[rate] for rate in QUICK_RATES})
            yield trial.task, choice
            if isinstance(choice, RateChoice):  # the caller has recorded the choice, so the trials are obsolete
                for obsolete in trials:
                    if obsolete.task == trial.task:
                        obsolete.file.unlink(missing_ok=True)


def _results(do_jobs: DoJobs, trials: Sequence[RateTrial]) -> Iterator[tuple[RateTrial, TrialResult]]:
    """Yield every trial with its result: first the stored results, then new ones as the trials finish."""
    stored = [(trial, result) for trial in trials if (result := _read(trial))]
    stored_trials = [trial for trial, _ in stored]
    yield from stored
    for trial, result in do_jobs(_try, [trial for trial in trials if trial not in stored_trials]):
        # Diverged trials end early, so repeating them is cheap; failed ones may succeed in a rerun.
        if math.isfinite(result.loss):
            runs.write_json(trial.file, asdict(result))
        yield trial, result


def _read(trial: RateTrial) -> TrialResult | None:
    """Read the stored result of a trial; None if the file is missing or damaged."""
    try:
        return runs.read_json(trial.file, cache_folder(trial.checkpoint.run), TrialResult, ResultsError)
    except ResultsError:
        return None


def _best_rate(step: int, task: str, results: Mapping[float, TrialResult]) -> RateChoice | str:
    """Return the rate with the best score, or a sentence if a trial failed or all diverged."""
    prefix = f"Choosing the learning rate of '{task}' at step {step} failed"
    if failures := [result.failure for result in results.values() if result.failure]:
        return f"{prefix}: {failures[0]}"
    if all(math.isinf(result.loss) for result in results.values()):
        return f"{prefix}: training diverged with each of {', '.join(f'{rate:g}' for rate in results)}."
    best = max(results, key=lambda rate: (results[rate].score, -results[rate].loss))
    losses = {rate: result.loss for rate, result in results.items() if not math.isinf(result.loss)}
    return RateChoice(best, step, {rate: result.score for rate, result in results.items()}, losses)


def _try(trial: RateTrial, encoded_tasks: EncodedTasks, device: str) -> TrialResult:
    """Fine-tune with one learning rate and score the model on the held-out data."""
    task = encoded_tasks[trial.task + HELD_OUT_SUFFIX]
    try:
        outcome = tune(trial.checkpoint, task, trial.settings, TRIAL_SEED, device)
        loss = task.loss(outcome.outputs)
        return TrialResult(outcome.curve[-1].dev_score, loss if math.isfinite(loss) else math.inf)
    except ArithmeticError:
        return TrialResult()
    except OSError:  # such as a full disk
        raise
    except Exception as reason:  # one failure does not stop the other tasks
        logger.debug("A trial on '%s' failed", trial.task, exc_info=True)
        return TrialResult(failure=str(reason))
