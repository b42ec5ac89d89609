"""Loaded models are kept within a limit in bytes, least recently used out first."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from embryo_core import runs
from embryo_core.engine import model
from embryo_core.engine.cache import ModelCache, memory_limit
from embryo_core.errors import ConfigError
from embryo_core.types import Run


def test_the_least_recently_used_goes_first(tiny_run: Run) -> None:
    """With room for two models, the third pushes out the one that was not asked for lately."""
    first, second, third = runs.checkpoints(tiny_run)
    size = ModelCache(limit=10**9).get(first).nbytes
    models = ModelCache(limit=2 * size)
    kept = models.get(first)
    models.get(second)
    assert models.get(first) is kept
    models.get(third)
    assert [checkpoint in models for checkpoint in (first, second, third)] == [True, False, True]
    assert models.nbytes == 2 * size


def test_a_model_beyond_the_limit_is_not_kept(tiny_run: Run) -> None:
    """A model larger than the whole limit answers and is let go."""
    checkpoint = runs.checkpoint(tiny_run, 8)
    models = ModelCache(limit=100)
    assert models.get(checkpoint).checkpoint == checkpoint
    assert models.nbytes == 0


def test_filling_stops_where_no_more_fits(own_run: Run) -> None:
    """Nothing is loaded only to be pushed out; a checkpoint that cannot be read is passed over."""
    checkpoints = runs.checkpoints(own_run)
    size = ModelCache(limit=10**9).get(checkpoints[0]).nbytes
    (checkpoints[0].path / "model.safetensors").write_bytes(b"")
    for room, held in ((0.5, []), (1.5, [8]), (2.5, [8, 16]), (9, [8, 16])):
        models = ModelCache(limit=int(room * size))
        models.fill(checkpoints)
        assert [checkpoint.step for checkpoint in checkpoints if checkpoint in models] == held


def test_a_checkpoint_trained_again_is_loaded_again(own_run: Run) -> None:
    """A newer manifest means other weights."""
    checkpoint = runs.checkpoint(own_run, 8)
    models = ModelCache(limit=10**9)
    before = models.get(checkpoint)
    os.utime(checkpoint.path / "manifest.json", (1, 1))
    assert models.get(runs.checkpoint(own_run, 8)) is not before
    assert models.nbytes == before.nbytes


def test_threads_share_what_is_loaded(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that several threads ask for at once is loaded once."""
    loaded, load = [], model.load

    def slowly(checkpoint):
        loaded.append(checkpoint.step)
        time.sleep(0.02)
        return load(checkpoint)

    monkeypatch.setattr(model, "load", slowly)
    models = ModelCache(limit=10**9)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(models.get, runs.checkpoints(tiny_run) * 4))
    assert sorted(loaded) == [0, 8, 16]
    assert len({id(one) for one in found}) == 3


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
    with pytest.raises(ConfigError, match="EMBRYO_MODEL_MEMORY is 'plenty'.*500 MB"):
        memory_limit()
