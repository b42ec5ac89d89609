"""Evaluate on a Ray cluster: workers compute results, and only this process writes them.

Workers read checkpoints and data by path, so paths must be the same on every host.
"""

import logging
import os
import platform
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from embryo_core.engine.device import find_device
from embryo_core.engine.hub_cache import prefetch_checkpoints
from embryo_core.errors import ConfigError, first_line
from embryo_core.evaluation.evaluator import CheckpointEvaluator, Failure, MetricResult, Outcomes
from embryo_core.evaluation.plan import Work
from embryo_core.metric import Source

MAX_RETRIES = 3  # retries of a job whose worker died
CONNECT_TIMEOUT = 10  # seconds
JOBS_PER_WORKER = 2  # jobs submitted per worker, so that none waits for its next one


def run_on_ray(
    work: Sequence[Work], address: str, device: str = "cpu", dtype: str = "float32", discard: bool = False
) -> Outcomes:
    """Compute on a Ray cluster, one checkpoint at a time on each GPU (if `device` is cuda or auto), else on each core.

    `address` is Ray's (host:port, ray://host:port, auto). If the worker of a checkpoint dies, the checkpoint
    is computed again, up to MAX_RETRIES times; then its metrics fail. Raises ConfigError without Ray, or if no cluster
    answers.
    """
    if not work:
        return
    with connect_to_ray(address) as ray:
        jobs = [_absolute(job) for job in work]
        answered = map_on_ray(ray, _evaluate_in_worker, jobs, device, dtype, discard, device=device)
        for (checkpoint, requests), outcomes in answered:
            if isinstance(outcomes, str):
                why = f"Step {checkpoint.step} was abandoned after {outcomes}; the same command computes it again."
                outcomes = [Failure(why, len(requests))]
            for outcome in outcomes:
                yield checkpoint, outcome


def map_on_ray(
    ray: ModuleType, function: Callable[..., Any], jobs: list[Any], *more: Any, device: str
) -> Iterator[tuple[Any, Any]]:
    """Call a function with each job and `more`, one call at a time on each GPU if `device` is CUDA, or CPU core.

    Takes the jobs from the front of the list, until it is empty, and yields each with its result, as calls finish. If
    MAX_RETRIES + 1 workers die on a job, its result is a phrase that says so. Raises the error of a call.
    """
    resources = ray.cluster_resources()
    gpus = int(resources.get("GPU", 0)) if device in ("cuda", "auto") else 0
    call = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=MAX_RETRIES)(function).remote
    limit = JOBS_PER_WORKER * (gpus or int(resources.get("CPU", 1)))
    waiting: dict[Any, Any] = {}
    while jobs or waiting:
        while jobs and len(waiting) < limit:
            job = jobs.pop(0)
            waiting[call(job, *more)] = job
        (done,), _ = ray.wait([*waiting], num_returns=1)
        job = waiting.pop(done)
        try:
            result = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as reason:
            result = f"{MAX_RETRIES + 1} workers died ({type(reason).__name__})"
        yield job, result


@contextmanager
def connect_to_ray(address: str) -> Iterator[ModuleType]:
    """Connect Ray to the cluster at this address until the block ends. Raises ConfigError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError("Ray is not installed; run: pip install -r requirements-cluster.txt") from None
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if port.isdecimal() and "/" not in host:  # else Ray would try for minutes to connect, then end the process
            socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as reason:
        raise ConfigError(
            f"No Ray cluster answers at '{address}' ({first_line(reason)}); start one with: "
            f"ray start --head.{_ask_for_token()}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _ask_for_token() -> str:
    """Return a sentence on how to send the user's Ray token, which a cluster may require; "" without a token."""
    if not (Path.home() / ".ray" / "auth_token").is_file() or os.environ.get("RAY_AUTH_MODE"):
        return ""
    return " A running cluster may require Ray's token: put RAY_AUTH_MODE=token before the command."


def _absolute(work: Work) -> Work:
    """Make the paths of sources absolute, since workers have other working directories."""
    checkpoint, requests = work
    return checkpoint, [(metric, _resolved(source)) for metric, source in requests]


def _resolved(source: Source) -> Source:
    second = source.second and _resolved(source.second)
    return replace(source, path=source.path.resolve(), second=second)


# === In a worker ===


def _evaluate_in_worker(work: Work, device: str, dtype: str, discard: bool) -> list[MetricResult | Failure]:
    """Return the outcomes of all requests at a checkpoint. Raises ConfigError if the host does not have the run."""
    checkpoint, requests = work
    if not checkpoint.run.path.is_dir():
        raise ConfigError(
            f"A worker on host {platform.node()} finds no run in {checkpoint.run.path}; keep runs and data on a "
            "disk that all hosts have at the same place."
        )
    evaluator = _evaluator(device, dtype)
    return [
        outcome
        for one, missing in prefetch_checkpoints([checkpoint], discard)  # discards the weights when the loop continues
        for outcome in evaluator.evaluate(one, requests, missing)
    ]


@cache
def _evaluator(device: str, dtype: str) -> CheckpointEvaluator:
    """Return the evaluator of this process, kept between checkpoints, since a worker serves one evaluation of a run."""
    return CheckpointEvaluator(find_device(device, dtype))
