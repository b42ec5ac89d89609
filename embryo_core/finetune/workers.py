"""Fine-tuning jobs, and the processes that run them on this machine or a Ray cluster."""

import hashlib
import json
import logging
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import safetensors.torch
import torch

from embryo_core import runs
from embryo_core.engine.device import find_training_device, parallel_passes
from embryo_core.errors import ConfigError, ResultsError
from embryo_core.evaluation.cluster import connect_to_ray, map_on_ray
from embryo_core.finetune.encoded_tasks import EncodedTask
from embryo_core.finetune.task_specs import TuningSettings
from embryo_core.finetune.training import tune
from embryo_core.measurements import Findings
from embryo_core.types import Checkpoint, Run

logger = logging.getLogger(__name__)

EncodedTasks = Mapping[str, EncodedTask]
JobFunction = Callable[[Any, EncodedTasks, str], Any]  # (job, encoded tasks, device) -> result
# Takes jobs from the front of a list until it is empty, and yields each with its result as it finishes. The caller
# writes the results, and may insert further jobs.
DoJobs = Callable[[JobFunction, list[Any]], Iterator[tuple[Any, Any]]]
MNLI_WEIGHTS = re.compile(r"step(\d+)-seed(\d+)-[0-9a-f]{12}\.safetensors")
_worker_state: dict[str, Any] = {}  # in a worker process: the encoded tasks and the device, set by `_start_worker`


# === Jobs ===


@dataclass(frozen=True)
class JobTask:
    """A task on which a job fine-tunes."""

    task: str
    settings: TuningSettings
    identity: Mapping[str, Any]  # identity of its results
    written: bool = True  # False: tuned only for its weights, since its results exist
    from_mnli: bool = False


@dataclass(frozen=True)
class TuningJob:
    """Tasks of one checkpoint and seed, in order; `mnli` is the file of the weights after MNLI, if they are needed.

    A worker does the first task and returns its outcome; the tasks after it are a new job.
    """

    checkpoint: Checkpoint
    seed: int
    tasks: tuple[JobTask, ...]
    mnli: Path | None = None
    has_failed: bool = False  # whether an earlier task failed, so that a rerun needs the weights after MNLI

    def describe(self, task: JobTask) -> str:
        """Return a description of one fine-tuning, to begin a sentence."""
        return f"Fine-tuning on '{task.task}' at step {self.checkpoint.step} with seed {self.seed}"


def tune_first(job: TuningJob, encoded_tasks: EncodedTasks, device: str) -> tuple[Findings | None, str]:
    """Fine-tune on the first task of a job; return its findings, if they are to be written, or why it failed.

    Raises OSError, such as for a full disk.
    """
    task = job.tasks[0]
    try:
        return _tune(job, task, encoded_tasks[task.task], device), ""
    except FileNotFoundError:
        if not task.from_mnli or not job.mnli or job.mnli.is_file():
            raise
        return None, f"{job.describe(task)} needs the weights after MNLI, which are missing."
    except OSError:  # such as a full disk: later tasks would fail too
        raise
    except Exception as reason:  # one failure does not stop the other tasks
        logger.debug("%s failed", job.describe(task), exc_info=True)
        return None, f"{job.describe(task)} failed: {reason}"


def _tune(job: TuningJob, task: JobTask, encoded_task: EncodedTask, device: str) -> Findings | None:
    """Fine-tune on one task; return its findings, or None if only the weights after MNLI are needed."""
    start = safetensors.torch.load_file(job.mnli) if task.from_mnli and job.mnli else None
    result = tune(job.checkpoint, encoded_task, task.settings, job.seed, device, start)
    if job.mnli and task.task == "mnli":
        with runs.replacing(job.mnli) as temporary:
            temporary.write_bytes(safetensors.torch.save(result.encoder))
    if not task.written:
        return None
    findings = encoded_task.findings(result.outputs, job.seed)
    findings.tuning = result.curve
    return findings


# === Temporary files in the data folder's cache: weights after MNLI, and rate trials (rates.py) ===


def mnli_file(checkpoint: Checkpoint, seed: int, settings: TuningSettings, identity: Mapping[str, Any]) -> Path:
    """Return the file of a checkpoint's weights after MNLI, which is kept until the tasks starting from it are done."""
    key = fingerprint(checkpoint, settings, identity)
    return cache_folder(checkpoint.run) / f"step{checkpoint.step}-seed{seed}-{key}.safetensors"


def mnli_files(run: Run) -> list[tuple[tuple[int, int], Path]]:
    """List the files of weights after MNLI, each with its step and seed; half-written files are included."""
    files = [(MNLI_WEIGHTS.match(file.name), file) for file in sorted(cache_folder(run).glob("step*"))]
    return [((int(match[1]), int(match[2])), file) for match, file in files if match]


def is_readable(weights: Path) -> bool:
    """Return whether header and size show that a file of weights is complete; a damaged file is removed."""
    try:
        with safetensors.safe_open(weights, "numpy"):
            return True
    except (OSError, safetensors.SafetensorError):
        weights.unlink(missing_ok=True)
        return False


def cache_folder(run: Run) -> Path:
    """Return the folder of a run's temporary files. Raises ResultsError if it is a link, or contains one."""
    path = run.path.parents[1] / "cache" / "finetuning" / run.name
    return runs.own_folder(path, path, ResultsError)


def fingerprint(checkpoint: Checkpoint, settings: TuningSettings, identity: Mapping[str, Any]) -> str:
    """Return a short hash of all inputs of a cached file: checkpoint, settings and data."""
    key = json.dumps([checkpoint.manifest_mtime, str(settings), sorted(identity.items())])
    return hashlib.sha256(key.encode()).hexdigest()[:12]


# === Processes of this machine ===


@contextmanager
def open_workers(encoded_tasks: EncodedTasks, device: str, count: int) -> Iterator[DoJobs]:
    """Open worker processes, or use this one if `count` is 1; they share one device and the CPU cores.

    When the block ends, waiting jobs of worker processes are cancelled; on an error, the processes are terminated.
    """
    thread_count, previous_count = max(1, parallel_passes() // count), torch.get_num_threads()
    if count == 1:
        torch.set_num_threads(thread_count)
        try:
            yield partial(_do_here, encoded_tasks, device)
        finally:
            torch.set_num_threads(previous_count)
        return
    context, earlier_processes = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    initial = (encoded_tasks, device, thread_count)
    pool = ProcessPoolExecutor(count, context, initializer=_start_worker, initargs=initial)
    try:
        yield partial(_do_in_processes, pool, count)
    except BaseException:  # such as Ctrl-C or a full disk: do not wait for running fine-tunings, which may take minutes
        for process in set(multiprocessing.active_children()) - earlier_processes:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _do_here(encoded_tasks: EncodedTasks, device: str, work: JobFunction, jobs: list[Any]) -> Iterator[tuple[Any, Any]]:
    while jobs:
        job = jobs.pop(0)
        yield job, work(job, encoded_tasks, device)


def _do_in_processes(
    pool: ProcessPoolExecutor, count: int, work: JobFunction, jobs: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """Do the jobs, `count` at once. Raises ConfigError if a process died."""
    running: dict[Future, Any] = {}
    try:
        while jobs or running:
            while jobs and len(running) < count:
                job = jobs.pop(0)
                running[pool.submit(_work, work, job)] = job
            future = next(as_completed(running))
            yield running.pop(future), future.result()
    except BrokenProcessPool:
        raise ConfigError(
            "A process that fine-tuned was killed, most likely because memory ran out; what was written is kept, "
            "and the same command with a smaller --jobs continues from there."
        ) from None


def _start_worker(encoded_tasks: EncodedTasks, device: str, thread_count: int) -> None:
    """Set up a worker process, which ignores Ctrl-C and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(thread_count)
    _worker_state.update(encoded=encoded_tasks, device=device)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)


def _work(work: JobFunction, job: Any) -> Any:
    return work(job, _worker_state["encoded"], _worker_state["device"])


# === A Ray cluster ===


@contextmanager
def open_cluster(encoded_tasks: EncodedTasks, address: str, device: str | None) -> Iterator[DoJobs]:
    """Connect to the cluster at an address (see `evaluation.cluster`).

    It has one worker per GPU if there are any and the device is CUDA or None, else one per core. Raises ConfigError.
    """
    with connect_to_ray(address) as ray:
        encoded = ray.put(encoded_tasks)

        def do(work: JobFunction, jobs: list[Any]) -> Iterator[tuple[Any, Any]]:
            answered = map_on_ray(ray, _work_on_cluster, jobs, work, encoded, device, device=device or "auto")
            for job, answer in answered:
                if isinstance(answer, str):
                    raise ConfigError(
                        f"A fine-tuning was abandoned after {answer}; what was written is kept, and the same command "
                        "continues."
                    )
                yield job, answer

        yield do


def _work_on_cluster(job: Any, work: JobFunction, encoded_tasks: EncodedTasks, device: str | None) -> Any:
    """Run one job in a worker of the cluster, with one CPU thread."""
    torch.set_num_threads(1)
    return work(job, encoded_tasks, find_training_device(device))
