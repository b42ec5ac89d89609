"""Fine-tuning of one checkpoint, ours and a plain loop padded to 128, side by side: seconds, ratio, and scores.

    python -m benchmarks.finetuning RUN --glue FOLDER [--step N] [--tasks TASK ...] [--rate R] [--seeds N] [--only ours]

Ours is what `finetune --protocol quick` does once the learning rate is known: a process on each core, sequences sorted
by length. The plain loop is that of transformers' run_glue: batches of 32 in random order, each padded to 128 pieces,
by the model as the checkpoint stores it and torch's AdamW, on all cores. Both take as many epochs at the same rate.
Beside the seconds that passed stand those of cores, which other work on the machine changes less.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import nn

from embryo_core import runs
from embryo_core.engine.cpu import passes_at_once
from embryo_core.engine.tokenizer import load_tokenizer
from embryo_core.finetune.protocols import QUICK_LENGTH, Settings, quick
from embryo_core.finetune.sequences import Sequences
from embryo_core.finetune.tasks import read_task
from embryo_core.finetune.trainees import TextTrainee, Trainee, make_trainee
from embryo_core.finetune.training import tune
from embryo_core.finetune.workers import open_workers
from embryo_core.types import Checkpoint

TASKS = ("cola", "mrpc", "rte", "stsb")
Scores = dict[str, list[float]]  # of each seed, by task
Job = tuple[str, int, Path, Settings]  # task, seed, folder of the checkpoint, settings


def main() -> int:
    """Print a line per task, and the sums."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable(run, None if options.step is None else [options.step])[-1]
    print(f"{run.name}, step {checkpoint.step}, {passes_at_once()} cores, torch {torch.__version__}", flush=True)
    start = time.perf_counter()
    tokenizer = load_tokenizer(run)
    tasks = [read_task(name, options.glue / name) for name in options.tasks]
    trainees = {task.name: make_trainee(task, tokenizer, QUICK_LENGTH) for task in tasks}
    print(f"reading: {time.perf_counter() - start:.1f} s (once for all checkpoints of a run)", flush=True)
    ours, seconds = _timed("ours", lambda: _ours(checkpoint, trainees, options.rate, options.seeds))
    plain, plain_seconds = {}, (0.0, 0.0)
    if options.only == "both":
        plain, plain_seconds = _timed("plain", lambda: _plain(checkpoint, trainees, options.rate, options.seeds))
    for name in options.tasks:
        for label, found in (("ours", ours), ("plain", plain)):
            if name in found:
                print(f"{name:6} {label:6} {_spread(found[name])}")
    if plain:
        passed, of_cores = (one / other for one, other in zip(plain_seconds, seconds, strict=True))
        print(f"ratio {passed:.1f}, of core seconds {of_cores:.1f}")
    return 0


def _timed(name: str, work: Callable[[], Scores]) -> tuple[Scores, tuple[float, float]]:
    """What the work returns, with the seconds that passed and those of cores, which are printed too."""
    before, start = _core_seconds(), time.perf_counter()
    found = work()
    seconds = time.perf_counter() - start, _core_seconds() - before
    print(f"{name}: {seconds[0]:.1f} s, {seconds[1]:.1f} core seconds", flush=True)
    return found, seconds


def _core_seconds() -> float:
    """Seconds of cores that this process and those it has ended took so far."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.finetuning")
    parser.add_argument("run")
    parser.add_argument("--glue", type=Path, required=True)
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of both (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=("ours", "both"), default="both")
    return parser.parse_args()


def _spread(scores: list[float]) -> str:
    return f"{np.mean(scores):.4f} ({min(scores):.4f} to {max(scores):.4f}, {len(scores)} seeds)"


# === Ours ===


def _ours(checkpoint: Checkpoint, trainees: Mapping[str, Trainee], rate: float, seeds: int) -> Scores:
    """The start of the processes is part of it."""
    jobs = [
        (name, seed, checkpoint.path, quick(len(trainee.targets), rate))
        for name, trainee in sorted(trainees.items(), key=lambda one: -one[1].train.ends[-1])
        for seed in range(1, seeds + 1)
    ]
    found: dict[str, list[float]] = {name: [] for name in trainees}
    with open_workers(trainees, "cpu", passes_at_once()) as workers:
        for (name, *_), score in workers.do(_tune, jobs):
            found[name].append(score)
    return found


def _tune(job: Job, trainees: Mapping[str, Trainee], device: str) -> float:
    name, seed, folder, settings = job
    return tune(folder, trainees[name], settings, seed, device).curve[-1].score


# === The plain loop ===


def _plain(checkpoint: Checkpoint, trainees: Mapping[str, TextTrainee], rate: float, seeds: int) -> Scores:
    torch.set_num_threads(passes_at_once())
    return {
        name: [_plain_score(checkpoint.path, trainee, rate, seed) for seed in range(1, seeds + 1)]
        for name, trainee in trainees.items()
    }


def _plain_score(folder: Path, trainee: TextTrainee, rate: float, seed: int) -> float:
    """The score after as many updates as ours, evaluated after every epoch as ours."""
    torch.manual_seed(seed)
    settings = replace(quick(len(trainee.targets), rate), length=QUICK_LENGTH)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=trainee.outputs, dtype=torch.float32
    )
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, settings.warmup, settings.updates)
    train, validation = _padded(trainee.train), _padded(trainee.validation)
    targets, updates, outputs = torch.from_numpy(trainee.targets), 0, np.zeros(0)
    while updates < settings.updates:
        model.train()
        for rows in torch.randperm(len(targets)).split(settings.batch):
            _loss(model(**{key: value[rows] for key, value in train.items()}).logits, targets[rows], trainee).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            updates += 1
            if updates == settings.updates:
                break
        outputs = _outputs(model, validation)
    return trainee.score(outputs)


def _padded(sequences: Sequences) -> dict[str, torch.Tensor]:
    ids, segments, mask = sequences.batch(np.arange(len(sequences)))
    found = {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}
    room = (0, QUICK_LENGTH - ids.shape[1])
    return {key: nn.functional.pad(torch.from_numpy(value), room) for key, value in found.items()}


def _loss(logits: torch.Tensor, targets: torch.Tensor, trainee: TextTrainee) -> torch.Tensor:
    if trainee.kind == "value":
        return nn.functional.mse_loss(logits[:, 0], targets.float())
    return nn.functional.cross_entropy(logits, targets)


@torch.inference_mode()
def _outputs(model: nn.Module, inputs: Mapping[str, torch.Tensor]) -> np.ndarray:
    model.eval()
    found = [
        model(**{key: value[i : i + 32] for key, value in inputs.items()}).logits
        for i in range(0, len(inputs["input_ids"]), 32)
    ]
    return torch.cat(found).numpy()


if __name__ == "__main__":
    sys.exit(main())
