"""Fine-tunings on Ray: a worker of a cluster does one, and hands back what this process writes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from embryo_core.errors import ConfigError
from embryo_core.evaluate.cluster import Remote, connected
from embryo_core.finetune.workers import Trainees, Work, choose_device


class ClusterWorkers:
    """Does fine-tunings on a Ray cluster, as many at once as it has CPUs, or GPUs where the device may be one."""

    def __init__(self, ray: ModuleType, trainees: Trainees, device: str | None):
        self._ray, self._device, self._trainees = ray, device, ray.put(trainees)

    def do(self, work: Work, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each job with what became of it, as they are done. Raises ConfigError where its workers died."""
        remote = Remote(self._ray, _fine_tune, self._device or "auto")
        for (_, job, _), found in remote.do(((work, job, self._trainees) for job in jobs), self._device):
            if isinstance(found, str):
                raise ConfigError(
                    f"A fine-tuning was given up after {found}; what was written stays, and the same command goes on."
                )
            yield job, found


@contextmanager
def cluster_workers(address: str, trainees: Trainees, device: str | None) -> Iterator[ClusterWorkers]:
    """Workers for fine-tuning on the cluster at an address (see `on_ray`). Raises ConfigError."""
    with connected(address) as ray:
        yield ClusterWorkers(ray, trainees, device)


def _fine_tune(work: Work, job: Any, trainees: Trainees, device: str | None) -> Any:
    """What becomes of one job of fine-tuning, on one core or GPU."""
    torch.set_num_threads(1)
    return work(job, trainees, choose_device(device))
