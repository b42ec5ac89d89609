"""Units of work: what one process fine-tunes of one checkpoint with one seed, and writes or hands back."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from embryo_core import results, runs
from embryo_core.errors import OtherData, ResultsError
from embryo_core.finetune.forms import evaluation
from embryo_core.finetune.protocols import Settings
from embryo_core.finetune.trainees import Trainee
from embryo_core.finetune.training import Tuned, tune
from embryo_core.types import Checkpoint, Findings, TuningPoint

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Item:
    """One task of a unit."""

    task: str
    settings: Settings
    identity: Mapping[str, Any]  # of its results
    written: bool = True  # False: tuned for its weights alone, its results being there
    from_mnli: bool = False


@dataclass(frozen=True)
class Unit:
    """Tasks of one checkpoint and seed, in order; `mnli` is where its weights after MNLI are kept until it is done."""

    checkpoint: Checkpoint
    seed: int
    items: tuple[Item, ...]
    mnli: Path | None = None


Outcome = tuple[Item, Findings | str | None]  # a sentence where it failed; None where weights alone were wanted


def work(unit: Unit, trainees: Mapping[str, Trainee], device: str) -> tuple[int, list[str]]:
    """Fine-tune every task of a unit, and write each as soon as it is done; returns and raises as `write` does."""
    return write(unit, _outcomes(unit, trainees, device))


def find(unit: Unit, trainees: Mapping[str, Trainee], device: str) -> list[Outcome]:
    """Fine-tune every task of a unit, for another process that writes what was found."""
    return [*_outcomes(unit, trainees, device)]


def write(unit: Unit, outcomes: Iterable[Outcome]) -> tuple[int, list[str]]:
    """Write what was found: how many were written, and a sentence for each task that failed.

    A full disk raises OSError, and results by now of other data OtherData: nothing more can be written.
    """
    written, failures = 0, []
    for item, found in outcomes:
        if isinstance(found, str):
            failures.append(found)
        elif found is not None:
            try:
                results.write(unit.checkpoint, evaluation(item.task, unit.seed), found, item.identity)
                written += 1
            except ResultsError as reason:
                if isinstance(reason, OtherData):
                    raise
                failures.append(f"{_named(unit, item)} failed: {reason}")
    if unit.mnli and not failures:
        unit.mnli.unlink(missing_ok=True)
    return written, failures


def _outcomes(unit: Unit, trainees: Mapping[str, Trainee], device: str) -> Iterator[Outcome]:
    for item in unit.items:
        try:
            found = _tune(unit, item, trainees[item.task], device)
        except FileNotFoundError:
            if not item.from_mnli or unit.mnli.is_file():
                raise
            found = f"{_named(unit, item)} begins from weights after MNLI, which there are not."
        except OSError:  # a full disk: nothing more can be written
            raise
        except Exception as reason:  # the batch boundary: one failure does not stop the others
            log.debug("%s failed", _named(unit, item), exc_info=True)
            found = f"{_named(unit, item)} failed: {reason}"
        yield item, found


def _tune(unit: Unit, item: Item, trainee: Trainee, device: str) -> Findings | None:
    start = safetensors.torch.load_file(unit.mnli) if item.from_mnli else None
    tuned = tune(unit.checkpoint, trainee, item.settings, unit.seed, device, start)
    if unit.mnli and item.task == "mnli":
        with runs.replacing(unit.mnli) as temporary:
            temporary.write_bytes(safetensors.torch.save(tuned.encoder))
    return findings(trainee, tuned, unit.seed) if item.written else None


def _named(unit: Unit, item: Item) -> str:
    return f"Fine-tuning on '{item.task}' at step {unit.checkpoint.step} with seed {unit.seed}"


def findings(trainee: Trainee, tuned: Tuned, seed: int) -> Findings:
    """All that one fine-tuning found: scores, answers, and its curve."""
    found = trainee.findings(tuned.outputs, seed)
    found.tuning = [
        TuningPoint(trainee.name, seed, point.update, point.train_loss, point.score) for point in tuned.curve
    ]
    return found
