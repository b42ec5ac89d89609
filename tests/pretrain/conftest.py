"""Fixtures of the pretraining tests: the tiny preset on the sample text, prepared once."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

# Set before TensorFlow is imported: XLA compiles a third faster, into equally deterministic code.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import numpy as np
import pytest
import tensorflow as tf

from embryo_core import runs
from pretrain.batches import Data, prepare_data
from pretrain.config import Config
from pretrain.families import preset
from pretrain.model import PretrainingModel
from pretrain.train import build

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def config() -> Config:
    """Return the tiny preset with 12 updates, a first phase mostly on shorter sequences, and 16 held-out sequences."""
    return replace(preset("tiny"), steps=12, warmup_steps=2, save_every=6, state_every=3, log_every=2, short_steps=7,
                   short_sequence_length=16, short_batch_size=8, long_every=3, measured_sequences=16)  # fmt: skip


@pytest.fixture(scope="session")
def texts(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write the sample text to two files; return the one to train on and the held-out one."""
    folder = tmp_path_factory.mktemp("texts")
    documents = (sample / "text.txt").read_text(encoding="utf-8").strip().split("\n\n")
    cut = max(1, len(documents) // 5)
    for name, part in (("train.txt", documents[cut:]), ("heldout.txt", documents[:cut])):
        (folder / name).write_text("\n\n".join(part) + "\n\n", encoding="utf-8")
    return folder / "train.txt", folder / "heldout.txt"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the session caches prepared corpora."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def data(config: Config, texts: tuple[Path, Path], cache: Path) -> Data:
    """Return the sample text as batches."""
    return prepare_data(config, [str(texts[0])], [str(texts[1])], cache)


@pytest.fixture(scope="module")
def model(config: Config) -> PretrainingModel:
    """Return a tiny model whose weights are all random, so that no two tensors are equal; tests must not train it."""
    model = build(config)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(variable + rng.normal(0, 0.2, variable.shape).astype(np.float32))
    return model


@pytest.fixture(scope="session")
def by_torch(shared: Callable[[str, Callable[[Path], Any]], Path]) -> Path:
    """Compute the results that tests expect of the torch backend, all in one process; return the folder with them."""

    def write(folder: Path) -> None:
        folder.mkdir()
        command = [sys.executable, "-m", "tests.pretrain.backend_results", str(folder)]
        subprocess.run(command, cwd=REPOSITORY, env=os.environ | {"KERAS_BACKEND": "torch"}, check=True)

    return shared("by_torch", write)


@pytest.fixture(scope="module")
def eager() -> Iterator[None]:
    """Run TensorFlow one operation at a time: a few updates take a tenth of the time that compiling them takes."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def weights(run: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of weights by its folder, generators included."""
    return {
        str(path.parent.relative_to(run)): runs.sha256(path) for path in run.glob("checkpoints/**/model.safetensors")
    }


def log(run: Path) -> list[dict[str, Any]]:
    """Return the rows of the log without tokens_per_second and time, which depend on the clock."""
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in ("tokens_per_second", "time")} for row in rows]
