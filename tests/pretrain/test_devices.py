"""Several devices train as one does: virtual ones of a CPU give its curve, and a run moves between them."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

from embryo_core.errors import ConfigError
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


@pytest.fixture(scope="module")
def arguments(texts: tuple[Path, Path], cache: Path) -> list[str]:
    """The command line of a training whose every update is clipped, to which a run is added."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    return ["tiny", *corpus, "--set", *SETTINGS, "--run"]


def losses(run: Path) -> np.ndarray:
    """Loss of the masked words and of the pairs at each step [STEPS, 2], as they were in training."""
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"]
    found = {row["step"]: (row["masked_lm_loss"], row["sentence_order_loss"]) for row in train}
    assert sorted(found) == list(range(1, STEPS + 1))
    return np.array([found[step] for step in sorted(found)])


def train(arguments: list[str], run: Path, backend: str, devices: int) -> None:
    """Train on so many devices: here, or where the backend is another or has virtual ones, in a process of its own."""
    if (backend, devices) == (keras.backend.backend(), 1):
        assert main([*arguments, str(run)]) == 0
        return
    program = ["-m", "pretrain"] if devices == 1 else ["-c", VIRTUAL]
    environment = os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, *program, *arguments, str(run)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "stopped"), [("tensorflow", 2), ("jax", 1)])
def test_two_devices_have_the_curve_of_one(backend: str, stopped: int, arguments: list[str], tmp_path: Path):
    """Over twenty updates to 1e-5; a run stopped half-way goes on with it on another number of devices."""
    pytest.importorskip(backend)
    by_devices = {devices: tmp_path / str(devices) for devices in (1, 2)}
    for devices, run in by_devices.items():
        train(arguments, run, backend, devices)
    expected = losses(by_devices[1])
    assert np.abs(losses(by_devices[2]) - expected).max() < 1e-5
    moved = shutil.copytree(by_devices[stopped], tmp_path / "moved")
    (moved / "state" / f"step{STEPS}.npz").unlink()
    train(arguments, moved, backend, 3 - stopped)
    assert np.abs(losses(moved) - expected).max() < 1e-5


def test_one_device_needs_no_distribution():
    """On a machine with one device, training is what it is without this module."""
    found = find_devices()
    assert type(found) is Devices and found.count == 1


def test_parts_of_a_batch_are_its_rows(data: Data):
    """Every array is divided alike, and together the parts are the batch."""
    batch = data.training(0)
    parts = [part_of(batch, index, 2) for index in range(2)]
    for name, array in batch.inputs().items():
        assert np.array_equal(np.concatenate([part.inputs()[name] for part in parts]), array)
    assert len(parts[0].ids) == len(batch.ids) // 2


def test_a_batch_that_cannot_be_divided_is_refused(config: Config):
    """The sentence names the setting, its value and the number of devices; a phase that never comes may have any."""
    three = Devices()
    three.count = 3
    with pytest.raises(ConfigError, match="batch_size 8 cannot be divided among 3 devices"):
        three.check(config)
    with pytest.raises(ConfigError, match="short_batch_size 8"):
        three.check(replace(config, batch_size=9))
    three.check(replace(config, batch_size=9, short_steps=0, long_every=0))


def test_several_hosts_are_named_as_the_backend_has_it():
    """--several-hosts is JAX's; TensorFlow reads TF_CONFIG."""
    with pytest.raises(ConfigError, match="--several-hosts is for JAX, and KERAS_BACKEND is tensorflow"):
        find_devices(several_hosts=True)
