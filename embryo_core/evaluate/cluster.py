"""Evaluation on Ray: workers compute, what they find comes back, and this process alone writes.

Workers read checkpoints and data by their paths, which have to be the same on every host.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from embryo_core.engine.device import find_device
from embryo_core.engine.hub_cache import fetched_ahead
from embryo_core.errors import ConfigError, first_line
from embryo_core.evaluate.compute import Asked, Computer, Failed, Found
from embryo_core.evaluate.evaluation import Compute, Outcomes, Pending
from embryo_core.types import Checkpoint

LOCAL = "local"  # the address of a cluster on this machine alone, which lasts as long as the evaluation
RETRIES = 3  # of a checkpoint whose worker died
REACHED = 10  # seconds within which a cluster answers
AHEAD = 2  # checkpoints that are handed over for each that is computed: a worker that is done has its next one


def on_ray(address: str, device: str = "cpu", dtype: str = "float32", discard: bool = False) -> Compute:
    """Compute on a Ray cluster, a checkpoint on each CPU at once, or on each GPU where the `device` may be one.

    `address` is Ray's (host:port, ray://host:port, auto), or LOCAL. A checkpoint whose worker dies is computed again,
    RETRIES times; then its metrics are Failed. What is yielded raises ConfigError without Ray, or where no cluster
    answers.
    """

    def compute(pending: Sequence[Pending]) -> Outcomes:
        if not pending:
            return
        with connected(address) as ray:
            work = Remote(ray, _work, device)
            for (checkpoint, asked), found in work.do((_absolute(one) for one in pending), device, dtype, discard):
                if isinstance(found, str):
                    why = f"Step {checkpoint.step} was given up after {found}; the same command computes it again."
                    found = [Failed(why, len(asked))]
                yield from ((checkpoint, outcome) for outcome in found)

    return compute


class Remote:
    """A function that the workers of a cluster call, one call on each CPU or GPU at once."""

    def __init__(self, ray: ModuleType, function: Callable[..., Any], device: str):
        there = ray.cluster_resources()
        gpus = int(there.get("GPU", 0)) if device in ("cuda", "auto") else 0
        self._ray, self._at_once = ray, gpus or int(there.get("CPU", 1))
        self._call = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=RETRIES)(function).remote

    def do(self, jobs: Iterable[tuple], *more: Any) -> Iterator[tuple[tuple, Any]]:
        """Each job, the first arguments of a call, with what the call returned, as they are done.

        Where RETRIES + 1 workers ended over one, a few words say so. Raises what a call raised.
        """
        left = iter(jobs)

        def hand_over(count: int) -> dict:
            return {self._call(*job, *more): job for job in islice(left, count)}

        waiting = hand_over(AHEAD * self._at_once)
        while waiting:
            (done,), _ = self._ray.wait([*waiting], num_returns=1)
            job = waiting.pop(done)
            waiting |= hand_over(1)
            yield job, self._result(done)

    def _result(self, done: object) -> Any:
        try:
            return self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as reason:
            return f"{RETRIES + 1} workers ended ({type(reason).__name__})"


@contextmanager
def connected(address: str) -> Iterator[ModuleType]:
    """Ray, connected to the cluster at this address until the block ends. Raises ConfigError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError("Ray is not installed; run: pip install -r requirements-cluster.txt") from None
    alone = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address == LOCAL else {}
    try:
        _reach(address)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **alone)
    except (OSError, RuntimeError, ValueError) as reason:
        raise ConfigError(
            f"No Ray cluster answers at '{address}' ({first_line(reason)}); start one with: ray start --head, or give "
            f"--ray without an address to use this machine alone.{_ask_for_token(address)}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _ask_for_token(address: str) -> str:
    """How a token is sent, where this user has one: a cluster that `ray start` began beside it answers no one without.

    Ray writes a token when it first uses this machine alone, and sends it elsewhere only where that is asked for.
    """
    has_one = (Path.home() / ".ray" / "auth_token").is_file()
    if address == LOCAL or not has_one or os.environ.get("RAY_AUTH_MODE"):
        return ""
    return " If one is there, it may ask for Ray's token: put RAY_AUTH_MODE=token before the command."


def _reach(address: str) -> None:
    """Raise OSError at once where nobody listens at host:port; Ray itself would try for minutes and end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=REACHED).close()


def _absolute(one: Pending) -> Pending:
    """The same with paths that do not depend on the folder that a process was started in."""
    checkpoint, asked = one
    return checkpoint, [replace(one, source=replace(one.source, path=one.source.path.resolve())) for one in asked]


# === In a worker ===


def _work(
    checkpoint: Checkpoint, asked: Sequence[Asked], device: str, dtype: str, discard: bool
) -> list[Found | Failed]:
    """All that the metrics find at a checkpoint."""
    if not checkpoint.run.path.is_dir():
        raise ConfigError(
            f"A worker on host {os.uname().nodename} finds no run in {checkpoint.run.path}; keep runs and data on a "
            "disk that all hosts have at the same place."
        )
    there = fetched_ahead([checkpoint], discard)  # discarded once the loop goes on
    return [outcome for one in there for outcome in _computer(device, dtype).compute(one, asked)]


@cache
def _computer(device: str, dtype: str) -> Computer:
    """One for the process, which computes for one run: a worker serves one evaluation."""
    return Computer(find_device(device, dtype))
