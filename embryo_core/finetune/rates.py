"""The quick protocol's learning rate: chosen once a task, at one late checkpoint, on a tenth of the training data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tqdm import tqdm

from embryo_core.finetune.protocols import QUICK_RATES, Settings, quick
from embryo_core.finetune.trainees import Trainee
from embryo_core.finetune.training import tune
from embryo_core.finetune.workers import Workers
from embryo_core.types import Checkpoint

SEED = 0  # of the trials; that of no result, which count from 1
HELD_OUT = " held out"  # in the name of a task whose validation is a part of its training data


@dataclass(frozen=True)
class Trial:
    """One learning rate tried on one task."""

    checkpoint: Checkpoint
    task: str
    settings: Settings


@dataclass(frozen=True)
class Choice:
    """The learning rate of a task, and the score of each that was tried at that step, on training data held out."""

    learning_rate: float
    step: int
    tried: dict[float, float]

    @property
    def summary(self) -> dict[str, Any]:
        """What sources.json notes of it."""
        return {"rate_step": self.step, "rates": {f"{rate:g}": score for rate, score in self.tried.items()}}

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Self | None:
        """The choice that sources.json notes; None where it notes none."""
        try:
            tried = {float(rate): score for rate, score in noted["rates"].items()}
            return cls(float(noted["learning_rate"]), noted["rate_step"], tried)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def choose(
    workers: Workers, checkpoint: Checkpoint, sizes: Mapping[str, int], progress: bool = False
) -> Iterator[tuple[str, Choice]]:
    """Each task with its best learning rate, once all are tried; `sizes`: how many training sequences are left.

    Of equal learning rates the smallest.
    """
    trials = [Trial(checkpoint, task, quick(size, rate)) for task, size in sizes.items() for rate in QUICK_RATES]
    scores: dict[str, dict[float, float]] = {task: {} for task in sizes}
    done = workers.do(_try, trials)
    title = f"learning rates, at step {checkpoint.step:,}"
    for trial, score in tqdm(done, desc=title, total=len(trials), unit="trial", disable=not progress or not trials):
        scores[trial.task][trial.settings.learning_rate] = score
        if len(scores[trial.task]) == len(QUICK_RATES):
            tried = {rate: scores[trial.task][rate] for rate in QUICK_RATES}
            yield trial.task, Choice(max(tried, key=lambda rate: tried[rate]), checkpoint.step, tried)


def _try(trial: Trial, trainees: Mapping[str, Trainee], device: str) -> float:
    """The score on the data held out; -1, the least of all scores, where training diverged."""
    trainee = trainees[trial.task + HELD_OUT]
    try:
        return tune(trial.checkpoint, trainee, trial.settings, SEED, device).curve[-1].score
    except ArithmeticError:
        return -1.0
