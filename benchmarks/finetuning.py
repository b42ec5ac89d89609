"""Time the fine-tuning of one checkpoint, by Embryo and by transformers' Trainer padded to 128, and compare scores.

    python -m benchmarks.finetuning RUN --glue FOLDER [--step N] [--tasks TASK ...] [--rate R] [--seeds N] [--only NAME]
        [--longest]

"Ours" is `finetune --protocol quick` with a known learning rate: one process on each core, with sequences sorted by
length. The Trainer runs as in transformers' run_glue: batches of 32 in random order, each padded to 128 pieces, and the
model in float32, on all cores. Both train for the same number of updates at the same learning rate. Core seconds are
printed next to elapsed seconds, since other work on the machine changes them less.

With --longest the Trainer's batches are padded to their longest sequence only: this gives its scores over many seeds
sooner, but its seconds must not be compared.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from embryo_core import runs
from embryo_core.engine.device import parallel_passes
from embryo_core.finetune.encoded_tasks import EncodedTask, EncodedTextTask, encode_task
from embryo_core.finetune.sequences import Sequences
from embryo_core.finetune.task_specs import GLUE, QUICK_LENGTH, TuningSettings, quick_settings
from embryo_core.finetune.tasks import read_task
from embryo_core.finetune.training import EPSILON, WEIGHT_DECAY, tune
from embryo_core.finetune.workers import open_workers
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint

TASKS = ("cola", "mrpc", "rte", "stsb")
Scores = dict[str, list[float]]  # task -> development score of each seed
Job = tuple[str, int, Checkpoint, TuningSettings]  # task, seed, checkpoint, settings


def main() -> int:
    """Print scores per task, seconds, and the ratios of elapsed and core seconds; return 0."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable_checkpoints(run, None if options.step is None else [options.step])[-1]
    print(f"{run.name}, step {checkpoint.step}, {parallel_passes()} cores, torch {torch.__version__}", flush=True)
    start = time.perf_counter()
    tokenizer = load_tokenizer(run)
    tasks = [read_task(name, options.glue / name) for name in options.tasks]
    encoded_tasks: dict[str, Any] = {task.name: encode_task(task, tokenizer, QUICK_LENGTH) for task in tasks}
    print(f"reading: {time.perf_counter() - start:.1f} s (once for all checkpoints of a run)", flush=True)
    implementations = {"ours": _tune_ours, "Trainer": _tune_by_trainer}
    results = {
        name: _time(name, partial(tune_all, checkpoint, encoded_tasks, options))
        for name, tune_all in implementations.items()
        if options.only in (None, name)
    }
    for name in options.tasks:
        for label, (scores, _) in results.items():
            print(f"{name:6} {label:8} {_spread(scores[name])}")
    if len(results) == 2:
        (_, our_seconds), (_, trainer_seconds) = results.values()
        wall_ratio, core_ratio = (one / other for one, other in zip(trainer_seconds, our_seconds, strict=True))
        print(f"ratio {wall_ratio:.1f}, of core seconds {core_ratio:.1f}")
    return 0


def _time(name: str, tune_all: Callable[[], Scores]) -> tuple[Scores, tuple[float, float]]:
    """Return the scores from `tune_all` and its elapsed and core seconds; print the seconds."""
    core_start, start = _core_seconds(), time.perf_counter()
    scores = tune_all()
    seconds = time.perf_counter() - start, _core_seconds() - core_start
    print(f"{name}: {seconds[0]:.1f} s, {seconds[1]:.1f} core seconds", flush=True)
    return scores, seconds


def _core_seconds() -> float:
    """Return the core seconds of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.finetuning")
    parser.add_argument("run")
    parser.add_argument("--glue", type=Path, required=True)
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--tasks", nargs="+", choices=GLUE, default=TASKS)
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of both (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=("ours", "Trainer"), help="default: both")
    parser.add_argument("--longest", action="store_true", help="pad the Trainer's batches to their longest sequence")
    return parser.parse_args()


def _spread(scores: list[float]) -> str:
    """Format the mean, the standard deviation and each score."""
    seeds = ", ".join(f"{score:.3f}" for score in scores)
    return f"{np.mean(scores):.3f} ± {np.std(scores):.3f} ({seeds})"


# === Ours ===


def _tune_ours(checkpoint: Checkpoint, encoded_tasks: Mapping[str, EncodedTask], options: argparse.Namespace) -> Scores:
    """Tune in one process per core; the time to start the processes counts."""
    jobs = [
        (name, seed, checkpoint, quick_settings(task.train.lengths, options.rate))
        for name, task in sorted(encoded_tasks.items(), key=lambda item: -item[1].train.ends[-1])
        for seed in range(1, options.seeds + 1)
    ]
    scores: dict[str, list[float]] = {name: [] for name in encoded_tasks}
    with open_workers(encoded_tasks, "cpu", parallel_passes()) as do_jobs:
        for (name, *_), score in do_jobs(_tune, jobs):
            scores[name].append(score)
    return scores


def _tune(job: Job, encoded_tasks: Mapping[str, EncodedTask], device: str) -> float:
    """Tune one task with one seed in a worker; return the last development score."""
    name, seed, checkpoint, settings = job
    return tune(checkpoint, encoded_tasks[name], settings, seed, device).curve[-1].dev_score


# === transformers' Trainer ===


def _tune_by_trainer(
    checkpoint: Checkpoint, tasks: Mapping[str, EncodedTextTask], options: argparse.Namespace
) -> Scores:
    """Tune each task with each seed by the Trainer, on all cores."""
    torch.set_num_threads(parallel_passes())
    transformers.logging.set_verbosity_error()
    return {
        name: [_trainer_score(checkpoint.path, task, options, seed) for seed in range(1, options.seeds + 1)]
        for name, task in tasks.items()
    }


def _trainer_score(folder: Path, task: EncodedTextTask, options: argparse.Namespace, seed: int) -> float:
    """Return the Trainer's score after the same number of updates as ours, also evaluated after every epoch."""
    settings = quick_settings(task.train.lengths, options.rate)
    transformers.set_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=task.output_count, dtype=torch.float32
    )
    with TemporaryDirectory() as temporary:
        arguments = transformers.TrainingArguments(
            temporary,
            per_device_train_batch_size=settings.batch,
            per_device_eval_batch_size=settings.batch,
            learning_rate=options.rate,
            max_steps=settings.updates,
            warmup_steps=settings.warmup,
            lr_scheduler_type="linear",
            weight_decay=WEIGHT_DECAY,
            adam_epsilon=EPSILON,
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=seed,
            use_cpu=True,
        )
        validation = _pad(task.validation, np.zeros(len(task.validation), task.targets.dtype))
        train = _pad(task.train, task.targets)
        collate = _to_longest if options.longest else transformers.default_data_collator
        trainer: Any = transformers.Trainer(
            model, arguments, data_collator=collate, train_dataset=train, eval_dataset=validation
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        return task.score(trainer.predict(validation).predictions)


def _pad(sequences: Sequences, labels: np.ndarray) -> list[dict[str, torch.Tensor]]:
    """Pad each sequence to QUICK_LENGTH; return rows as transformers' default collator expects them."""
    arrays = sequences.batch(np.arange(len(sequences)))
    room = (0, QUICK_LENGTH - arrays[0].shape[1])
    inputs = [nn.functional.pad(torch.from_numpy(array), room) for array in arrays]
    gold = torch.from_numpy(labels)
    gold = gold.float() if gold.is_floating_point() else gold
    names = ("input_ids", "token_type_ids", "attention_mask", "labels")
    return [dict(zip(names, row, strict=True)) for row in zip(*inputs, gold, strict=True)]


def _to_longest(rows: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Stack rows to a batch, cut to its longest sequence."""
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    length = int(batch["attention_mask"].sum(1).max())
    return {name: tensor if name == "labels" else tensor[:, :length] for name, tensor in batch.items()}


if __name__ == "__main__":
    sys.exit(main())
