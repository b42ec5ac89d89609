"""Tests of the model cache, which holds loaded models up to a limit in bytes and evicts the least recently used."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining

from embryo_core import runs
from embryo_core.engine import cache, model
from embryo_core.engine.cache import TRIM_AFTER, ModelCache, memory_limit
from embryo_core.errors import BrokenCheckpoint, ConfigError
from embryo_core.types import Checkpoint, Run


@pytest.fixture
def loaded_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the step of each checkpoint read from disk; reading is slowed down, so that threads overlap."""
    steps, load = [], model.load

    def slowly(checkpoint: Checkpoint) -> model.Model:
        steps.append(checkpoint.step)
        time.sleep(0.02)
        return load(checkpoint)

    monkeypatch.setattr(model, "load", slowly)
    return steps


def test_least_recently_used_model_is_evicted_first(tiny_run: Run, loaded_steps: list[int]) -> None:
    """With room for two models, loading a third evicts the one that was requested longer ago."""
    first, second, third = runs.checkpoints(tiny_run)
    size = ModelCache(limit=10**9).get(first).nbytes
    models = ModelCache(limit=2 * size)
    kept = models.get(first)
    models.get(second)
    assert models.get(first) is kept
    models.get(third)
    assert models.nbytes == 2 * size
    loaded_steps.clear()
    assert models.get(first) is kept and models.get(third)
    assert loaded_steps == []
    models.get(second)
    assert loaded_steps == [8]


def test_model_larger_than_limit_is_not_kept(tiny_run: Run) -> None:
    """A model larger than the whole limit is returned but not cached."""
    checkpoint = runs.checkpoint(tiny_run, 8)
    models = ModelCache(limit=100)
    assert models.get(checkpoint).checkpoint == checkpoint
    assert models.nbytes == 0


def test_retrained_checkpoint_is_reloaded(own_run: Run) -> None:
    """A newer manifest means other weights, so the cached model is replaced."""
    checkpoint = runs.checkpoint(own_run, 8)
    models = ModelCache(limit=10**9)
    before = models.get(checkpoint)
    os.utime(checkpoint.path / "manifest.json", (1, 1))
    assert models.get(runs.checkpoint(own_run, 8)) is not before
    assert models.nbytes == before.nbytes


def test_threads_share_loaded_models(tiny_run: Run, loaded_steps: list[int]) -> None:
    """A checkpoint that several threads request at once is loaded once."""
    models = ModelCache(limit=10**9)
    with ThreadPoolExecutor(6) as pool:
        loaded_models = list(pool.map(models.get, runs.checkpoints(tiny_run) * 4))
    assert sorted(loaded_steps) == [0, 8, 16]
    assert len({id(model) for model in loaded_models}) == 3


def test_failed_load_raises_in_every_waiting_thread(own_run: Run) -> None:
    """A load that fails raises in every thread that waits for it and does not block the other checkpoints."""
    models, (broken, whole, _) = ModelCache(limit=10**9), runs.checkpoints(own_run)
    (broken.path / "model.safetensors").write_bytes(b"")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(models.get, checkpoint) for checkpoint in (broken, whole) * 4]
        failures = [future.exception() for future in asked]
    assert [type(failure) for failure in failures] == [BrokenCheckpoint, type(None)] * 4


def test_replacing_model_returns_its_memory(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing an outdated model returns memory to the system, and loading the first model does not."""
    handed = []
    monkeypatch.setattr(cache, "return_memory", lambda: handed.append(True))
    checkpoint = runs.checkpoint(own_run, 8)
    models = ModelCache(limit=4 * ModelCache(limit=10**9).get(checkpoint).nbytes)
    models.get(checkpoint)
    assert not handed
    os.utime(checkpoint.path / "manifest.json", (1, 1))
    models.get(runs.checkpoint(own_run, 8))
    assert handed


# === Resident memory ===

MEASURED = """
import sys
from dataclasses import replace
from embryo_core import runs
from embryo_core.engine.cache import ModelCache
from embryo_core.engine.model import load

def resident():
    rows = dict(line.split(":") for line in open("/proc/self/status"))
    return 1024 * int(rows["VmRSS"].split()[0])

first = runs.checkpoint(runs.open_run(sys.argv[1]), 16)
models, steps = ModelCache(limit=int(sys.argv[3])), range(int(sys.argv[2]))
load(first)
before = resident()
for step in steps:
    folder = first.path.with_name(f"copy{step}")
    folder.symlink_to(first.path)
    models.get(replace(first, path=folder, step=step))
print(resident() - before, models.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("stored", "hidden", "count"), [(torch.float32, 32, 160), (torch.float16, 192, 40)])
def test_counted_bytes_match_resident_memory(own_run: Run, kernels: str, stored, hidden: int, count: int) -> None:
    """After half of many small models were evicted, the process's resident memory is that of the remaining ones."""
    store_albert(own_run, stored, hidden)
    limit = count // 2 * model.load(runs.checkpoint(own_run, 16)).nbytes
    command = [sys.executable, "-c", MEASURED, str(own_run.path), str(count), str(limit)]
    held, counted = map(int, subprocess.run(command, check=True, capture_output=True).stdout.split())
    assert 0.9 * limit < counted <= limit
    assert 0.9 * counted < held < 1.1 * counted + limit * TRIM_AFTER


def store_albert(run: Run, stored: torch.dtype, hidden: int) -> None:
    """Replace step 16 by a random ALBERT of this size."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * hidden, "embedding_size": 64}
    config = AlbertConfig(vocab_size=700, hidden_size=hidden, max_position_embeddings=64, **sizes)
    folder = run.path / "checkpoints" / "step16"
    shutil.rmtree(folder)
    AlbertForPreTraining(config).to(stored).save_pretrained(folder)
    runs.write_manifest(folder, 16, sequences=64, tokens=4096)


# === The setting ===


@pytest.mark.parametrize(
    ("setting", "limit"), [("500 MB", 5e8), ("4gb", 4e9), ("1.5 GB", 1.5e9), ("1000", 1000), ("", 2e9)]
)
def test_model_memory_setting_is_parsed(monkeypatch: pytest.MonkeyPatch, setting: str, limit: float) -> None:
    """EMBRYO_MODEL_MEMORY is a size in bytes, KB, MB or GB; the default is 2 GB."""
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", setting)
    assert memory_limit() == limit


def test_invalid_model_memory_setting_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the setting and gives an example."""
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", "plenty")
    with pytest.raises(ConfigError, match=r"EMBRYO_MODEL_MEMORY is 'plenty'.*500 MB"):
        memory_limit()
