"""Loaded models are kept within a limit in bytes, least recently used out first."""

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
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the step of each checkpoint read from disk; reading takes a moment, so that threads meet."""
    steps, load = [], model.load

    def slowly(checkpoint: Checkpoint) -> model.Model:
        steps.append(checkpoint.step)
        time.sleep(0.02)
        return load(checkpoint)

    monkeypatch.setattr(model, "load", slowly)
    return steps


def test_the_least_recently_used_goes_first(tiny_run: Run, loaded: list[int]) -> None:
    """With room for two models, the third pushes out the one that was not asked for lately."""
    first, second, third = runs.checkpoints(tiny_run)
    size = ModelCache(limit=10**9).get(first).nbytes
    models = ModelCache(limit=2 * size)
    kept = models.get(first)
    models.get(second)
    assert models.get(first) is kept
    models.get(third)
    assert models.nbytes == 2 * size
    loaded.clear()
    assert models.get(first) is kept and models.get(third)
    assert loaded == []
    models.get(second)
    assert loaded == [8]


def test_a_model_beyond_the_limit_is_not_kept(tiny_run: Run) -> None:
    """A model larger than the whole limit answers and is let go."""
    checkpoint = runs.checkpoint(tiny_run, 8)
    models = ModelCache(limit=100)
    assert models.get(checkpoint).checkpoint == checkpoint
    assert models.nbytes == 0


def test_filling_stops_where_no_more_fits(own_run: Run, loaded: list[int]) -> None:
    """Nothing is loaded only to be pushed out; a checkpoint that cannot be read is passed over."""
    checkpoints = runs.checkpoints(own_run)
    size = ModelCache(limit=10**9).get(checkpoints[0]).nbytes
    (checkpoints[0].path / "model.safetensors").write_bytes(b"")
    for room, held in ((0.5, []), (1.5, [8]), (2.5, [8, 16]), (9, [8, 16])):
        models = ModelCache(limit=int(room * size))
        models.fill(checkpoints)
        assert models.nbytes == len(held) * size
        loaded.clear()
        for step in held:
            models.get(runs.checkpoint(own_run, step))
        assert loaded == []


def test_a_checkpoint_trained_again_is_loaded_again(own_run: Run) -> None:
    """A newer manifest means other weights."""
    checkpoint = runs.checkpoint(own_run, 8)
    models = ModelCache(limit=10**9)
    before = models.get(checkpoint)
    os.utime(checkpoint.path / "manifest.json", (1, 1))
    assert models.get(runs.checkpoint(own_run, 8)) is not before
    assert models.nbytes == before.nbytes


def test_threads_share_what_is_loaded(tiny_run: Run, loaded: list[int]) -> None:
    """A checkpoint that several threads ask for at once is loaded once."""
    models = ModelCache(limit=10**9)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(models.get, runs.checkpoints(tiny_run) * 4))
    assert sorted(loaded) == [0, 8, 16]
    assert len({id(one) for one in found}) == 3


def test_threads_that_ask_at_once_get_the_model_or_its_fault(own_run: Run) -> None:
    """A load that fails raises in every thread and does not block the others."""
    models, (broken, whole, _) = ModelCache(limit=10**9), runs.checkpoints(own_run)
    (broken.path / "model.safetensors").write_bytes(b"")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(models.get, checkpoint) for checkpoint in (broken, whole) * 4]
        failures = [one.exception() for one in asked]
    assert [type(one) for one in failures] == [BrokenCheckpoint, type(None)] * 4


def test_memory_of_a_replaced_model_is_handed_back(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As is that of others that are let go."""
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
def test_the_bytes_counted_are_those_held(own_run: Run, kernels: str, stored, hidden: int, count: int) -> None:
    """When half of many small models were let go, the process holds the bytes of the others."""
    store_albert(own_run, stored, hidden)
    limit = count // 2 * model.load(runs.checkpoint(own_run, 16)).nbytes
    command = [sys.executable, "-c", MEASURED, str(own_run.path), str(count), str(limit)]
    held, counted = map(int, subprocess.run(command, check=True, capture_output=True).stdout.split())
    assert 0.9 * limit < counted <= limit
    assert 0.9 * counted < held < 1.1 * counted + limit * TRIM_AFTER


def store_albert(run: Run, stored: torch.dtype, hidden: int) -> None:
    """Put a random ALBERT of this size in the place of step 16."""
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
def test_the_setting(monkeypatch: pytest.MonkeyPatch, setting: str, limit: float) -> None:
    """EMBRYO_MODEL_MEMORY is a size in bytes, KB, MB or GB; 2 GB where it is not set."""
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", setting)
    assert memory_limit() == limit


def test_a_setting_that_is_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that is not a size is named, with an example."""
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", "plenty")
    with pytest.raises(ConfigError, match=r"EMBRYO_MODEL_MEMORY is 'plenty'.*500 MB"):
        memory_limit()
