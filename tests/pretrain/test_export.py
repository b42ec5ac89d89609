"""Tests of checkpoints on disk: whole folders in Hugging Face layout, in the configured precision."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from embryo_core import runs
from embryo_core.types import Checkpoint, Run
from pretrain.config import Config
from pretrain.export import tensors, write_checkpoint
from pretrain.families import FAMILIES
from pretrain.model import PretrainingModel
from pretrain.state import Progress


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run without checkpoints."""
    run = Run("own", tmp_path / "runs" / "own", "albert", "both", {}, "", {}, (0, 1), "tests")
    runs.write_run(run)
    return run


def written_checkpoint(run: Run, step: int) -> Checkpoint:
    """Return the checkpoint of this step after checking its files against the manifest."""
    checkpoint = runs.checkpoint(run, step)
    runs.verify(checkpoint)
    return checkpoint


def test_every_weight_is_exported_once(model: PretrainingModel):
    """The exported tensors and the model have the same number of parameters."""
    assert sum(array.size for array in tensors(FAMILIES["albert"].modules(model)).values()) == sum(
        int(np.prod(variable.shape)) for variable in model.trainable_variables
    )


def test_float16_checkpoints_hold_rounded_weights(model: PretrainingModel, config: Config, run: Run):
    """Each tensor is the float32 one rounded to the nearest float16, and config.json names the type."""
    folder = write_checkpoint(model, replace(config, checkpoint_dtype="float16"), run.path, Progress(1, 8, 100))
    exact, stored_tensors = tensors(FAMILIES["albert"].modules(model)), load_file(folder / "model.safetensors")
    assert exact.keys() == stored_tensors.keys() and '"float16"' in (folder / "config.json").read_text()
    for name, array in stored_tensors.items():
        assert array.dtype == np.float16
        np.testing.assert_array_equal(array, exact[name].astype(np.float16))


def test_manifest_has_counts_and_hashes(model: PretrainingModel, config: Config, run: Run):
    """Step, sequences and tokens are read back as given, and both files match their hashes."""
    write_checkpoint(model, config, run.path, Progress(7, sequences=56, tokens=700))
    checkpoint = written_checkpoint(run, 7)
    assert (checkpoint.step, checkpoint.sequences, checkpoint.tokens) == (7, 56, 700)
    assert {path.name for path in checkpoint.path.iterdir()} == {"config.json", "model.safetensors", "manifest.json"}


def test_checkpoint_appears_whole_or_not_at_all(
    model: PretrainingModel, config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """If writing stops before the folder is renamed, no step is visible; the next attempt leaves one whole folder."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda a, b: stop() if Path(b).name == "step5" else os.rename(a, b))
        with pytest.raises(KeyboardInterrupt):
            write_checkpoint(model, config, run.path, Progress(5, 40, 500))
    assert runs.checkpoints(run) == [] and runs.broken_checkpoints(run) == []
    write_checkpoint(model, config, run.path, Progress(5, 40, 500))
    first = runs.sha256(written_checkpoint(run, 5).path / "model.safetensors")
    write_checkpoint(model, config, run.path, Progress(5, 40, 500))
    assert runs.sha256(written_checkpoint(run, 5).path / "model.safetensors") == first
    assert [path.name for path in (run.path / "checkpoints").iterdir()] == ["step5"]


def test_full_disk_leaves_no_partial_checkpoint(model: PretrainingModel, config: Config, run: Run, monkeypatch):
    """The OSError passes through, for the command line to report."""

    def write(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(OSError, match="No space left on device"):
        write_checkpoint(model, config, run.path, Progress(1, 8, 200))
    assert not list((run.path / "checkpoints").iterdir())
