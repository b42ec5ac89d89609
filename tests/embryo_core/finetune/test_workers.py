"""Tests that workers do every job once, share the cores, and end with their parent."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from embryo_core.engine.device import Device, find_training_device
from embryo_core.errors import ConfigError
from embryo_core.finetune.workers import open_workers
from tests.conftest import REPOSITORY


def double(job: int, trainees: dict, device: str) -> tuple[int, str]:
    """Return the job times the given factor, and the device."""
    return job * trainees["factor"], device


def die(*_) -> None:
    """Kill this process, as a system that runs out of memory would."""
    os.kill(os.getpid(), signal.SIGKILL)


DOUBLED = [(1, (2, "cpu")), (2, (4, "cpu")), (3, (6, "cpu"))]


def test_single_worker_does_every_job_once():
    with open_workers({"factor": 2}, "cpu", 1) as do_jobs:
        assert sorted(do_jobs(double, [1, 2, 3])) == DOUBLED


def test_killed_worker_is_reported():
    """The error suggests a smaller --jobs."""
    with open_workers({}, "cpu", 2) as do_jobs, pytest.raises(ConfigError, match="smaller --jobs"):
        list(do_jobs(die, [1, 2]))


def test_workers_end_on_an_error():
    """Before the error they do every job once; other child processes of the program continue."""

    def fail() -> None:
        with open_workers({"factor": 2}, "cpu", 2) as do_jobs:
            assert sorted(do_jobs(double, [1, 2, 3])) == DOUBLED
            raise OSError("full")

    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    other.start()
    try:
        with pytest.raises(OSError, match="full"):
            fail()
        assert multiprocessing.active_children() == [other]
    finally:
        other.kill()
        other.join()


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path: Path):
    """The parent gets SIGKILL, and its workers must end within 30 seconds."""
    code = (
        "import multiprocessing, time\n"
        "from tests.embryo_core.finetune.test_workers import double\n"
        "from embryo_core.finetune.workers import open_workers\n"
        "if __name__ == '__main__':\n"
        "    with open_workers({'factor': 2}, 'cpu', 2) as do_jobs:\n"
        "        list(do_jobs(double, [1, 2]))\n"
        "        print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "        time.sleep(600)\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    parent = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True)
    children = [int(pid) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert children and not any(Path(f"/proc/{child}").exists() for child in children)


def test_unknown_device_is_refused():
    """Known devices are accepted, and a GPU gets one worker."""
    with pytest.raises(ConfigError, match="Device 'abacus' cannot be used"):
        find_training_device("abacus")
    assert find_training_device("cpu") == "cpu" and Device("cuda").parallel_passes() == 1
    assert find_training_device("auto") == find_training_device(None)


@pytest.mark.parametrize("name", ["hpu", "meta", "privateuseone", "vulkan"])
def test_device_that_torch_cannot_use_is_refused(name: str):
    """The short message leaves out torch's list of devices; meta is refused as its tensors have no numbers."""
    with pytest.raises(ConfigError, match=f"Device '{name}' cannot be used") as refused:
        find_training_device(name)
    assert len(str(refused.value)) < 300


def test_single_worker_restores_the_number_of_threads():
    """The block of the worker ends with an error here."""
    before = torch.get_num_threads()
    with pytest.raises(ValueError), open_workers({}, "cpu", 1):
        raise ValueError
    assert torch.get_num_threads() == before
