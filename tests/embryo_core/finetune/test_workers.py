"""Workers do every job once, share the cores, and are gone with their parent."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from embryo_core.errors import ConfigError
from embryo_core.finetune.workers import choose_device, default_jobs, open_workers
from tests.conftest import REPOSITORY


def double(job: int, trainees: dict, device: str) -> tuple[int, str]:
    """Twice what was given, and where."""
    return job * trainees["factor"], device


def die(*_) -> None:
    """Be killed, as by a system without memory."""
    os.kill(os.getpid(), signal.SIGKILL)


DOUBLED = [(1, (2, "cpu")), (2, (4, "cpu")), (3, (6, "cpu"))]


def test_every_job_is_done_once_in_this_process():
    """Where one worker is enough."""
    with open_workers({"factor": 2}, "cpu", 1) as workers:
        assert sorted(workers.do(double, [1, 2, 3])) == DOUBLED


def test_a_killed_worker_is_one_sentence():
    """With what to run."""
    with open_workers({}, "cpu", 2) as workers, pytest.raises(ConfigError, match="smaller --jobs"):
        list(workers.do(die, [1, 2]))


def test_workers_do_every_job_once_and_an_error_leaves_none_behind():
    """Their jobs are abandoned; other processes of the program continue."""

    def fail() -> None:
        with open_workers({"factor": 2}, "cpu", 2) as workers:
            assert sorted(workers.do(double, [1, 2, 3])) == DOUBLED
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
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path):
    """Kill -9 of the parent; its workers are gone soon after."""
    code = (
        "import multiprocessing, time\n"
        "from tests.embryo_core.finetune.test_workers import double\n"
        "from embryo_core.finetune.workers import open_workers\n"
        "if __name__ == '__main__':\n"
        "    with open_workers({'factor': 2}, 'cpu', 2) as workers:\n"
        "        list(workers.do(double, [1, 2]))\n"
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


def test_an_unknown_device_is_one_sentence():
    """With what to give in its place."""
    with pytest.raises(ConfigError, match="Device 'abacus' cannot be used"):
        choose_device("abacus")
    assert choose_device("cpu") == "cpu" and default_jobs("cuda") == 1
    assert choose_device("auto") == choose_device(None)


@pytest.mark.parametrize("name", ["hpu", "meta", "privateuseone", "vulkan"])
def test_a_device_that_torch_knows_and_cannot_use_is_one_sentence(name: str):
    """Not torch's list of what it can; meta has tensors without numbers."""
    with pytest.raises(ConfigError, match=f"Device '{name}' cannot be used") as refused:
        choose_device(name)
    assert len(str(refused.value)) < 300


def test_one_worker_leaves_the_threads_as_they_were():
    """Also after an error."""
    before = torch.get_num_threads()
    with pytest.raises(ValueError), open_workers({}, "cpu", 1):
        raise ValueError
    assert torch.get_num_threads() == before
