"""Fine-tuning jobs, and the processes that run them on this machine or a Ray cluster."""

import hashlib
import json
import logging
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import safetensors.torch
import torch

from embryo_core import results, runs
from embryo_core.engine.device import find_training_device, parallel_passes
from embryo_core.errors import ConfigError, DatasetMismatch, ResultsError
from embryo_core.evaluation.cluster import connect_to_ray, map_on_ray
from embryo_core.finetune.encoded_tasks import EncodedTask
from embryo_core.finetune.task_specs import TuningSettings, results_name
from embryo_core.finetune.training import tune
from embryo_core.measurements import Findings
from embryo_core.types import Checkpoint, Run

logger = logging.getLogger(__name__)

EncodedTasks = Mapping[str, EncodedTask]
JobFunction = Callable[[Any, EncodedTasks, str], Any]  # (job, encoded tasks, device) -> result
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
    """Tasks of one checkpoint and seed, in order; `mnli` is the file of the weights after MNLI, if they are needed."""

    checkpoint: Checkpoint
    seed: int
    tasks: tuple[JobTask, ...]
    mnli: Path | None = None

    def describe(self, task: JobTask) -> str:
        """Return a description of one fine-tuning, to begin a sentence."""
        return f"Fine-tuning on '{task.task}' at step {self.checkpoint.step} with seed {self.seed}"


# a task with its findings, a sentence if it failed, or None if only its weights were needed
TaskOutcome = tuple[JobTask, Findings | str | None]


def tune_and_write(job: TuningJob, encoded_tasks: EncodedTasks, device: str) -> tuple[int, list[str]]:
    """Fine-tune on every task of a job and write each result at once; return and raise the same as `write_outcomes`."""
    return write_outcomes(job, _outcomes(job, encoded_tasks, device))


def tune_only(job: TuningJob, encoded_tasks: EncodedTasks, device: str) -> list[TaskOutcome]:
    """Fine-tune on every task of a job; the caller writes the results."""
    return [*_outcomes(job, encoded_tasks, device)]


def write_outcomes(job: TuningJob, outcomes: Iterable[TaskOutcome]) -> tuple[int, list[str]]:
    """Write findings; return the number written and a sentence per failed task. Raises DatasetMismatch and OSError."""
    write_count, failures = 0, []
    for task, outcome in outcomes:
        if isinstance(outcome, str):
            failures.append(outcome)
        elif outcome is not None:
            try:
                results.write(job.checkpoint, results_name(task.task, job.seed), outcome, task.identity)
                write_count += 1
            except DatasetMismatch:
                raise
            except ResultsError as reason:
                failures.append(f"{job.describe(task)} failed: {reason}")
    if job.mnli and not failures:
        job.mnli.unlink(missing_ok=True)
    return write_count, failures


def _outcomes(job: TuningJob, encoded_tasks: EncodedTasks, device: str) -> Iterator[TaskOutcome]:
    """Fine-tune on the tasks of a job and yield each outcome. Raises OSError, such as for a full disk."""
    outcome: Findings | str | None
    for task in job.tasks:
        try:
            outcome = _tune(job, task, encoded_tasks[task.task], device)
        except FileNotFoundError:
            if not task.from_mnli or not job.mnli or job.mnli.is_file():
                raise
            outcome = f"{job.describe(task)} needs the weights after MNLI, which are missing."
        except OSError:  # such as a full disk: later writes would fail too
            raise
        except Exception as reason:  # one failure does not stop the other tasks
            logger.debug("%s failed", job.describe(task), exc_info=True)
            outcome = f"{job.describe(task)} failed: {reason}"
        yield task, outcome


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


class Workers:
    """Workers on one device: the processes of a pool or, without a pool, this process."""

    writes = True  # workers write results themselves

    def __init__(self, encoded_tasks: EncodedTasks, device: str, pool: ProcessPoolExecutor | None):
        self._encoded, self._device, self._pool = encoded_tasks, device, pool

    def do(self, work: JobFunction, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with what `work` returned for it, as they finish. Raises ConfigError if a process died."""
        if self._pool is None:
            yield from ((job, work(job, self._encoded, self._device)) for job in jobs)
            return
        job_of_future = {self._pool.submit(_work, work, job): job for job in jobs}
        try:
            for future in as_completed(job_of_future):
                yield job_of_future[future], future.result()
        except BrokenProcessPool:
            raise ConfigError(
                "A process that fine-tuned was killed, most likely because memory ran out; what was written is kept, "
                "and the same command with a smaller --jobs continues from there."
            ) from None


@contextmanager
def open_workers(encoded_tasks: EncodedTasks, device: str, jobs: int) -> Iterator[Workers]:
    """Open `jobs` workers that share one device and the CPU cores; pending jobs are cancelled when the block ends."""
    thread_count, previous_count = max(1, parallel_passes() // jobs), torch.get_num_threads()
    if jobs == 1:
        torch.set_num_threads(thread_count)
        try:
            yield Workers(encoded_tasks, device, None)
        finally:
            torch.set_num_threads(previous_count)
        return
    context, earlier_processes = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(encoded_tasks, device, thread_count))
    try:
        yield Workers(encoded_tasks, device, pool)
    except BaseException:  # such as Ctrl-C or a full disk: do not wait for running fine-tunings, which may take minutes
        for process in set(multiprocessing.active_children()) - earlier_processes:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


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


class ClusterWorkers:
    """Workers on a Ray cluster: one per GPU if there are any and the device is CUDA or unnamed, else one per core."""

    writes = False  # only this process writes results

    def __init__(self, ray: ModuleType, encoded_tasks: EncodedTasks, device: str | None):
        self._ray, self._device, self._encoded = ray, device, ray.put(encoded_tasks)

    def do(self, work: JobFunction, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with what `work` returned for it, as they finish. Raises ConfigError if workers died."""
        called, device = ((work, job, self._encoded) for job in jobs), self._device
        answered = map_on_ray(self._ray, _work_on_cluster, called, device, device=device or "auto")
        for (_, job, _), answer in answered:
            if isinstance(answer, str):
                raise ConfigError(
                    f"A fine-tuning was abandoned after {answer}; what was written is kept, and the same command "
                    "continues."
                )
            yield job, answer


@contextmanager
def cluster_workers(address: str, encoded_tasks: EncodedTasks, device: str | None) -> Iterator[ClusterWorkers]:
    """Connect to the cluster at an address (see `evaluate.cluster`). Raises ConfigError."""
    with connect_to_ray(address) as ray:
        yield ClusterWorkers(ray, encoded_tasks, device)


def _work_on_cluster(work: JobFunction, job: Any, encoded_tasks: EncodedTasks, device: str | None) -> Any:
    """Run one job in a worker of the cluster, with one CPU thread."""
    torch.set_num_threads(1)
    return work(job, encoded_tasks, find_training_device(device))
