"""Tests of several devices and hosts: virtual ones of a CPU have the losses of one, and a run moves between them."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from embryo_core.errors import ConfigError
from embryo_core.types import Origin, Run
from pretrain.__main__ import main
from pretrain.batches import Data
from pretrain.config import Config
from pretrain.devices import Devices, find_devices, part_of

REPOSITORY = Path(__file__).resolve().parents[2]
STEPS = 20
SETTINGS = [f"steps={STEPS}", "warmup_steps=2", "log_every=1", "save_every=10", "measured_sequences=0", "clip_norm=0.5"]
VIRTUAL = """
import os, sys
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
if os.environ["KERAS_BACKEND"] == "tensorflow":
    import tensorflow as tf
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from pretrain.__main__ import main
sys.exit(main())
"""  # python -m pretrain on two virtual devices
ON_A_HOST = 480  # seconds after which a host is assumed to wait for one that has stopped

Way = Callable[[list[str], Path, str], None]  # trains a run with this command line and backend


@pytest.fixture(scope="module")
def arguments(texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the command line of a training that clips every update; the run's folder is to be appended."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    return ["tiny", *corpus, "--set", *SETTINGS, "--run"]


@pytest.fixture(scope="module")
def by_one(request: pytest.FixtureRequest, arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train on one device with the backend that the test names; return the run's folder."""
    pytest.importorskip(request.param)
    run = tmp_path_factory.mktemp(request.param) / "one"
    one_device(arguments, run, request.param)
    return run


def losses(run: Path) -> np.ndarray:
    """Return the training losses of masked words and pairs at each step, [STEPS, 2]."""
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"]
    assert [row["step"] for row in train] == list(range(1, STEPS + 1))
    return np.array([(row["masked_lm_loss"], row["sentence_order_loss"]) for row in train])


def files(run: Path) -> list[Path]:
    """Return the path of every file of a run within its folder."""
    return sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file())


def start(program: list[str], backend: str, environment: dict[str, str], folder: Path) -> subprocess.Popen:
    """Start a process whose output goes to a file in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": str(REPOSITORY)} | environment
    command = [sys.executable, *program]
    with (folder / "output").open("w") as output:
        return subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output)


def finish(processes: list[subprocess.Popen], folders: list[Path]) -> None:
    """Check that all processes end with status 0; leave none running."""
    try:
        for process, folder in zip(processes, folders, strict=True):
            assert process.wait(ON_A_HOST) == 0, (folder / "output").read_text()
    finally:
        for process in processes:
            process.kill()


def one_device(arguments: list[str], run: Path, backend: str) -> None:
    """Train in this process, or in a new one if the backend differs."""
    if backend == keras.backend.backend():
        assert main([*arguments, str(run)]) == 0
        return
    folder = run.parent / "process"
    finish([start(["-m", "pretrain", *arguments, str(run)], backend, {}, folder)], [folder])


def two_devices(arguments: list[str], run: Path, backend: str) -> None:
    """Train on two virtual devices of one process."""
    folder = run.parent / "process"
    finish([start(["-c", VIRTUAL, *arguments, str(run)], backend, {}, folder)], [folder])


def two_hosts(arguments: list[str], run: Path, backend: str) -> None:
    """Train in two processes of one device each; check that the second leaves no temporary log behind."""
    several = ["--several-hosts"] if backend == "jax" else []
    folders = [run.parent / f"host{host}" for host in range(2)]
    temporary = run.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    processes = [
        start(
            ["-m", "pretrain", arguments[0], *several, *arguments[1:], str(run)],
            backend,
            environment | {"TMPDIR": str(temporary)},
            folder,
        )
        for folder, environment in zip(folders, of_hosts(backend), strict=True)
    ]
    finish(processes, folders)
    assert not [*temporary.rglob("log.jsonl")]


def of_hosts(backend: str) -> list[dict[str, str]]:
    """Return the environment by which each of two hosts finds the other, at addresses that are free now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    if backend == "tensorflow":
        tasks = [{"cluster": {"worker": addresses}, "task": {"type": "worker", "index": host}} for host in range(2)]
        return [{"TF_CONFIG": json.dumps(task)} for task in tasks]
    first = {"KERAS_DISTRIBUTION_JOB_ADDRESSES": addresses[0], "KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}
    return [first | {"KERAS_DISTRIBUTION_PROCESS_ID": str(host)} for host in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("several", [two_devices, two_hosts])
@pytest.mark.parametrize(
    ("by_one", "backend", "onto_one"),
    [("tensorflow", "tensorflow", True), ("jax", "jax", False)],
    indirect=["by_one"],
    scope="module",
)
def test_two_devices_or_hosts_train_like_one(
    several: Way, backend: str, onto_one: bool, by_one: Path, arguments: list[str], tmp_path: Path
):
    """Twenty losses agree to 1e-5, with the same files, even if the number of devices changes halfway."""
    by_two = tmp_path / "two"
    several(arguments, by_two, backend)
    expected = losses(by_one)
    assert np.abs(losses(by_two) - expected).max() < 1e-5
    assert files(by_two) == files(by_one)
    moved = shutil.copytree(by_two if onto_one else by_one, tmp_path / "moved" / "two")
    (moved / "state" / f"step{STEPS}.npz").unlink()
    (one_device if onto_one else several)(arguments, moved, backend)
    assert np.abs(losses(moved) - expected).max() < 1e-5
    assert files(moved) == files(by_one)


@pytest.mark.slow
def test_two_devices_train_gpt2_like_one(texts: tuple[Path, Path], cache: Path, tmp_path: Path):
    """Every token of a sequence is predicted on the device that has the sequence; losses agree to 1e-5."""
    settings = [setting for setting in SETTINGS if not setting.startswith("measured")]
    dropout = ["hidden_dropout_prob=0", "attention_probs_dropout_prob=0"]  # which differs between devices
    command = ["gpt2-tiny", "--corpus", str(texts[0]), "--cache", str(cache), "--set", *settings, *dropout, "--run"]
    losses_of_runs = []
    for way in (one_device, two_devices):
        way(command, tmp_path / way.__name__, "tensorflow")
        rows = [json.loads(line) for line in (tmp_path / way.__name__ / "log.jsonl").read_text().splitlines()]
        losses_of_runs.append([row["next_token_loss"] for row in rows])
    assert len(losses_of_runs[0]) == STEPS and losses_of_runs[0] == pytest.approx(losses_of_runs[1], abs=1e-5)


def test_one_device_needs_no_distribution():
    """On a machine with one device, `find_devices` returns the base class."""
    devices = find_devices()
    assert type(devices) is Devices and devices.count == 1


def test_batch_is_divided_into_equal_parts(data: Data):
    """Concatenated, the parts of each array give the array of the batch."""
    batch = data.training(0)
    parts = [part_of(batch, index, 2) for index in range(2)]
    for name, array in batch.inputs().items():
        assert np.array_equal(np.concatenate([part.inputs()[name] for part in parts]), array)
    assert len(parts[0].ids) == len(batch.ids) // 2


def test_indivisible_batch_size_is_refused(config: Config):
    """The error names the setting, its value and the number of devices; the size of an unused phase is ignored."""
    three = Devices()
    three.count = 3
    with pytest.raises(ConfigError, match="batch_size 8 cannot be divided among 3 devices"):
        three.check(config)
    with pytest.raises(ConfigError, match="short_batch_size 8"):
        three.check(replace(config, batch_size=9))
    three.check(replace(config, batch_size=9, short_steps=0, long_every=0))


def test_hosts_cannot_end_by_their_clocks(config: Config):
    """Each host would stop after a step of its own."""
    two, timed = Devices(), replace(config, minutes=9.0)
    two.check(timed)
    two.hosts = 2
    with pytest.raises(ConfigError, match="train on several hosts with --steps, without minutes"):
        two.check(timed)


def test_several_hosts_option_needs_jax():
    """TensorFlow reads TF_CONFIG and needs no option."""
    with pytest.raises(ConfigError, match="--several-hosts is for JAX, and KERAS_BACKEND is tensorflow"):
        find_devices(several_hosts=True)


class Host(Devices):
    """One of several hosts, which records when it waits for the others."""

    def __init__(self, is_first: bool):
        self.is_first_host, self.events = is_first, []

    def barrier(self) -> None:
        self.events.append("barrier")


@pytest.mark.parametrize(("is_first", "events"), [(True, ["block", "barrier"]), (False, ["barrier", "block"])])
def test_first_host_runs_block_before_others(is_first: bool, events: list[str]):
    """The other hosts wait until the first one has left the block."""
    host = Host(is_first)
    with host.first_alone():
        host.events.append("block")
    assert host.events == events


def test_other_hosts_write_a_temporary_copy(tiny_run: Run, tmp_path: Path):
    """The copy has the last state and the checkpoint that the run started from; the run itself is unchanged."""
    run = replace(tiny_run, path=tmp_path / "own", origin=Origin("first", 8, 0, 0, "", ()))
    shutil.copytree(tiny_run.path / "checkpoints", run.path / "checkpoints")
    (run.path / "state").mkdir()
    np.savez(run.path / "state" / "step16.npz", progress=np.zeros(3))
    before = files(run.path)
    with Host(is_first=False).own_copy(run) as own:
        assert {path.parts[1] for path in files(own.path)} == {"step8", "step16.npz"}
        for path in files(own.path):
            assert (own.path / path).read_bytes() == (run.path / path).read_bytes()
        (own.path / "log.jsonl").write_text("{}")
    assert files(run.path) == before and not own.path.exists()
    with Host(is_first=True).own_copy(run) as own:
        assert own is run
