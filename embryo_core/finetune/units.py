"""Units of work: what one process fine-tunes of one checkpoint with one seed; a task is written once it is done."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from embryo_core import results, runs
from embryo_core.errors import OtherData
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


def evaluation(task: str, seed: int) -> str:
    """The name under which the results of a task and seed are stored, one part a step."""
    return f"finetuning:{task}:{seed}"


def weights_file(checkpoint: Checkpoint, seed: int, settings: Settings, identity: Mapping[str, Any]) -> Path:
    """Where the weights of a checkpoint after MNLI are kept, until the tasks that begin from them are done."""
    what = json.dumps([checkpoint.written, str(settings), sorted(identity.items())])
    name = f"step{checkpoint.step}-seed{seed}-{hashlib.sha256(what.encode()).hexdigest()[:12]}.safetensors"
    return checkpoint.run.path.parents[1] / "cache" / "finetuning" / checkpoint.run.name / name


def work(unit: Unit, trainees: Mapping[str, Trainee], device: str) -> tuple[int, list[str]]:
    """Fine-tune and write every task of a unit: how many were written, and a sentence for each that failed.

    A full disk raises OSError.
    """
    written, failures = 0, []
    for item in unit.items:
        named = f"Fine-tuning on '{item.task}' at step {unit.checkpoint.step} with seed {unit.seed}"
        if item.from_mnli and not unit.mnli.is_file():
            failures.append(f"{named} begins from weights after MNLI, which there are not.")
            continue
        try:
            _work_item(unit, item, trainees[item.task], device)
            written += item.written
        except (OSError, OtherData):  # nothing more can be written
            raise
        except Exception as reason:  # the batch boundary: one failure does not stop the others
            log.debug("%s failed", named, exc_info=True)
            failures.append(f"{named} failed: {reason}")
    if unit.mnli and not failures:
        unit.mnli.unlink(missing_ok=True)
    return written, failures


def _work_item(unit: Unit, item: Item, trainee: Trainee, device: str) -> None:
    checkpoint = unit.checkpoint
    start = safetensors.torch.load_file(unit.mnli) if item.from_mnli else None
    tuned = tune(checkpoint, trainee, item.settings, unit.seed, device, start)
    if item.written:
        found = findings(trainee, tuned, unit.seed)
        results.write(checkpoint, evaluation(item.task, unit.seed), found, item.identity)
    if unit.mnli and item.task == "mnli":
        with runs.replacing(unit.mnli) as temporary:
            temporary.write_bytes(safetensors.torch.save(tuned.encoder))


def findings(trainee: Trainee, tuned: Tuned, seed: int) -> Findings:
    """All that one fine-tuning found: scores, answers, and its curve."""
    found = trainee.findings(tuned.outputs, seed)
    found.tuning = [
        TuningPoint(trainee.name, seed, point.update, point.train_loss, point.score) for point in tuned.curve
    ]
    return found
