"""Fine-tunings side by side: one process each, which is given the encoded tasks once."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread
from typing import Any

import torch

from embryo_core.engine.cpu import passes_at_once
from embryo_core.errors import ConfigError, first_line
from embryo_core.finetune.trainees import Trainee

Trainees = Mapping[str, Trainee]
Work = Callable[[Any, Trainees, str], Any]  # of a job, the encoded tasks and a device
_given: dict[str, Any] = {}  # of a worker process


class Workers:
    """Does jobs on one device, as many at once as there are processes; with one, in this process."""

    def __init__(self, trainees: Trainees, device: str, pool: ProcessPoolExecutor | None):
        self._trainees, self._device, self._pool = trainees, device, pool

    def do(self, work: Work, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each job with what became of it, as they are done. Raises ConfigError where a process was killed."""
        if self._pool is None:
            yield from ((job, work(job, self._trainees, self._device)) for job in jobs)
            return
        waiting = {self._pool.submit(_work, work, job): job for job in jobs}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool:
            raise ConfigError(
                "A process that fine-tuned was killed, most likely for want of memory; what was written stays, and the "
                "same command with a smaller --jobs goes on from there."
            ) from None


@contextmanager
def open_workers(trainees: Trainees, device: str, jobs: int) -> Iterator[Workers]:
    """So many workers on a device, which share the cores; those waiting are dismissed when the block ends."""
    threads, before = max(1, passes_at_once() // jobs), torch.get_num_threads()
    if jobs == 1:
        torch.set_num_threads(threads)
        try:
            yield Workers(trainees, device, None)
        finally:
            torch.set_num_threads(before)
        return
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(trainees, device, threads))
    try:
        yield Workers(trainees, device, pool)
    except BaseException:  # Ctrl-C, a full disk: nobody waits for the minutes that a fine-tuning may still take
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def choose_device(name: str | None) -> str:
    """The device of that name; by default, and for "auto", the first of CUDA, else the processor.

    Raises ConfigError for one that is not there.
    """
    if name in (None, "auto"):
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name).item()  # which a device without numbers, meta, refuses
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as reason:
        why = first_line(reason).partition(". ")[0].removesuffix(".")
        raise ConfigError(f"Device '{name}' cannot be used ({why}); give cpu, or leave out --device.") from None
    return name


def default_jobs(device: str) -> int:
    """One for each core of a processor; one on any other device."""
    return passes_at_once() if device == "cpu" else 1


def _begin(trainees: Trainees, device: str, threads: int) -> None:
    """Prepare a worker process, which leaves Ctrl-C to its parent and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _given.update(trainees=trainees, device=device)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def _work(work: Work, job: Any) -> Any:
    return work(job, _given["trainees"], _given["device"])
