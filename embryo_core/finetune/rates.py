"""The quick protocol's learning rate: chosen once a task, at one late checkpoint, on a tenth of the training data.

What a rate came to is kept until one is chosen: killed and run again, only those that are left are tried.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from tqdm import tqdm

from embryo_core import runs
from embryo_core.errors import ResultsError
from embryo_core.finetune import kept
from embryo_core.finetune.cluster_workers import ClusterWorkers
from embryo_core.finetune.protocols import QUICK_RATES, Choice, Settings, quick
from embryo_core.finetune.trainees import Trainee
from embryo_core.finetune.training import tune
from embryo_core.finetune.workers import Workers
from embryo_core.types import Checkpoint

log = logging.getLogger(__name__)

SEED = 0  # of the trials; that of no result, which count from 1
OF_TRAINING = " held out"  # in the name of a task whose validation is a part of its training data


@dataclass(frozen=True)
class Trial:
    """One learning rate tried on one task."""

    checkpoint: Checkpoint
    task: str
    settings: Settings
    identity: Mapping[str, Any]  # of the task's results

    @property
    def file(self) -> Path:
        """Where it is kept what the rate came to."""
        return kept.trial_file(self.checkpoint, self.settings, {**self.identity, "task": self.task})


@dataclass(frozen=True)
class Tried:
    """What a learning rate came to on training data held out."""

    score: Annotated[float, Meta(ge=-1, le=1)] = -1.0  # the least of all scores, where training diverged or failed
    loss: Annotated[float, Meta(ge=0)] = math.inf  # there
    failure: str = ""  # a sentence where it failed


def choose(
    workers: Workers | ClusterWorkers,
    checkpoint: Checkpoint,
    lengths: Mapping[str, np.ndarray],
    identities: Mapping[str, Mapping[str, Any]],
    progress: bool = False,
) -> Iterator[tuple[str, Choice | str]]:
    """Each task with its best learning rate, once all are tried, or a sentence where a trial failed.

    `lengths`: of the training sequences that are left; `identities`: of the tasks' results. Of equal scores the one
    with the lower loss, then the smaller rate.
    """
    trials = [
        Trial(checkpoint, task, quick(lengths[task], rate), identities[task])
        for task in lengths
        for rate in QUICK_RATES
    ]
    found: dict[str, dict[float, Tried]] = {task: {} for task in lengths}
    title = f"learning rates, at step {checkpoint.step:,}"
    done = _done(workers, trials)
    for trial, tried in tqdm(done, desc=title, total=len(trials), unit="trial", disable=not progress or not trials):
        of_task = found[trial.task]
        of_task[trial.settings.learning_rate] = tried
        if len(of_task) == len(QUICK_RATES):
            choice = _chosen(checkpoint.step, trial.task, {rate: of_task[rate] for rate in QUICK_RATES})
            yield trial.task, choice
            if isinstance(choice, Choice):
                _forget(one for one in trials if one.task == trial.task)


def _done(workers: Workers | ClusterWorkers, trials: Sequence[Trial]) -> Iterator[tuple[Trial, Tried]]:
    """Every trial with what it came to: those that were done before at once, the others as they are done."""
    before = [(trial, tried) for trial in trials if (tried := _read(trial))]
    known = [trial for trial, _ in before]
    yield from before
    for trial, tried in workers.do(_try, [trial for trial in trials if trial not in known]):
        if math.isfinite(tried.loss):  # the others end early, or may succeed another time
            runs.write_json(trial.file, asdict(tried))
        yield trial, tried


def _read(trial: Trial) -> Tried | None:
    """What a trial came to that was done before; None where there is none, or its file is not right."""
    try:
        return runs.read_json(trial.file, kept.folder(trial.checkpoint.run), Tried, ResultsError)
    except ResultsError:
        return None


def _forget(trials: Iterable[Trial]) -> None:
    """Remove what was kept of them: a learning rate is chosen, and noted with the results."""
    for trial in trials:
        trial.file.unlink(missing_ok=True)


def _chosen(step: int, task: str, tried: Mapping[float, Tried]) -> Choice | str:
    """The best of these rates, or what failed."""
    at = f"Choosing the learning rate of '{task}' at step {step} failed"
    if failures := [one.failure for one in tried.values() if one.failure]:
        return f"{at}: {failures[0]}"
    if all(math.isinf(one.loss) for one in tried.values()):
        return f"{at}: training diverged with each of {', '.join(f'{rate:g}' for rate in tried)}."
    best = max(tried, key=lambda rate: (tried[rate].score, -tried[rate].loss))
    losses = {rate: one.loss for rate, one in tried.items() if not math.isinf(one.loss)}
    return Choice(best, step, {rate: one.score for rate, one in tried.items()}, losses)


def _try(trial: Trial, trainees: Mapping[str, Trainee], device: str) -> Tried:
    """Score and loss on the data held out."""
    trainee = trainees[trial.task + OF_TRAINING]
    try:
        tuned = tune(trial.checkpoint, trainee, trial.settings, SEED, device)
        loss = trainee.loss(tuned.outputs)
        return Tried(tuned.curve[-1].score, loss if math.isfinite(loss) else math.inf)
    except ArithmeticError:
        return Tried()
    except OSError:  # a full disk
        raise
    except Exception as reason:  # the batch boundary: the other tasks go on
        log.debug("A trial on '%s' failed", trial.task, exc_info=True)
        return Tried(failure=str(reason))
