"""Tests of the GPU kit: parcels of a corpus, small copies of runs, and the script that trains on the parcels."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from embryo_core import runs
from pretrain.batches import Data, prepare_data
from pretrain.config import Config
from tests.pretrain.conftest import REPOSITORY
from tools import gpu_kit


def add_checkpoint(run: Path, step: int, size: int = 10) -> None:
    """Write a checkpoint of this step with arbitrary content of this size in bytes."""
    folder = run / "checkpoints" / f"step{step}"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(size))
    names = ("config.json", "model.safetensors")
    manifest = {"step": step, "sequences": step, "tokens": step, "parameters": 1}
    runs.write_json(
        folder / "manifest.json", manifest | {"sha256": {name: runs.sha256(folder / name) for name in names}}
    )


@pytest.fixture
def run(data: Data, config: Config, tmp_path: Path) -> Path:
    """Return the folder of a run with a tokenizer and no checkpoint."""
    from pretrain.card import new_card, write_card

    run = write_card(new_card(tmp_path / "run", config, data.corpus, None))
    data.copy_to(run)
    return run.path


def test_parcels_contain_corpus_and_wheels(data: Data, config: Config, tmp_path: Path, monkeypatch):
    """Joined in order they are one archive; pretraining opens its corpus without the text."""
    monkeypatch.setattr(gpu_kit, "PARCEL", 5_000)
    wheel = tmp_path / "some-1-py3-none-any.whl"
    wheel.write_bytes(os.urandom(20_000))
    parcels = gpu_kit.pack(data.corpus.folder, tmp_path / "kit", [wheel])
    assert len(parcels) > 4
    assert parcels == sorted((tmp_path / "kit").iterdir())
    assert all(path.stat().st_size <= 5_000 for path in parcels)
    (tmp_path / "whole").write_bytes(b"".join(path.read_bytes() for path in parcels))
    with tarfile.open(tmp_path / "whole") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert (tmp_path / "unpacked" / "wheels" / wheel.name).read_bytes() == wheel.read_bytes()
    again = prepare_data(config, [str(tmp_path / "unpacked" / "corpus")], [], tmp_path / "cache")
    assert (again.training(5).ids == data.training(5).ids).all()
    assert again.corpus.fingerprint == data.corpus.fingerprint


def test_collected_run_has_at_most_eight_checkpoints(run: Path, tmp_path: Path):
    """They are log-spaced, with the first and the last; if a file is too large, nothing is copied."""
    for step in (0, *(2**i for i in range(12)), 3000):
        add_checkpoint(run, step)
    steps = gpu_kit.collect(run, tmp_path / "out")
    assert len(steps) == 8
    assert (steps[0], steps[-1]) == (0, 3000)
    copy = runs.open_run(tmp_path / "out" / "run")
    assert [checkpoint.step for checkpoint in runs.checkpoints(copy)] == steps
    add_checkpoint(run, 4000, gpu_kit.LARGEST + 1)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        gpu_kit.collect(run, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_script_trains_on_parcels_until_time_is_up(data: Data, tmp_path: Path):
    """On JAX, from parcels alone, it leaves a log and two to eight checkpoints, the last one after some updates."""
    gpu_kit.pack(data.corpus.folder, tmp_path / "kit")
    size = "hidden_size=32 num_hidden_layers=2 num_attention_heads=2 intermediate_size=64 embedding_size=16"
    text = f"vocab_size={data.config.vocab_size} max_position_embeddings=32 sequence_length=32 batch_size=8"
    rest = "heldout_sequences=16 measured_sequences=0 log_every=1"
    command = ["bash", "tools/gpu_reference.sh", str(tmp_path / "kit"), str(tmp_path / "out"), "3"]
    command += [*size.split(), *text.split(), *rest.split()]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # so that the script's python3 is this one
    subprocess.run(command, cwd=REPOSITORY, env=os.environ | {"RESERVE": "60", "PATH": path}, check=True)
    run = runs.open_run(tmp_path / "out" / "albert-large-reference")
    steps = [checkpoint.step for checkpoint in runs.checkpoints(run)]
    assert 2 <= len(steps) <= gpu_kit.CHECKPOINTS
    assert steps[-1] == run.planned_steps[-1]
    assert steps[-1] > 0
    assert [row["step"] for row in runs.read_log(run) if row["split"] == "heldout"][-1] == steps[-1]
