"""Tests of sharded weights: read in place, and joined into one file when copied."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from embryo_core import query, runs
from embryo_core.audit import audit
from embryo_core.comparison import parameters
from embryo_core.engine.hub_cache import discard, fetch_checkpoint, uncached_pointers
from embryo_core.engine.tensor_files import read_tensors
from embryo_core.errors import BrokenCheckpoint, RunError
from embryo_core.runs import checkpoint_files
from embryo_core.sources import add
from tests.embryo_core.sources.conftest import STEPS, model_of
from tests.embryo_core.sources.test_hub import store

TEXT = "The [MASK] of the [MASK] ."
INDEX = "model.safetensors.index.json"


@pytest.fixture
def parts(trainer_folder: Path, tmp_path: Path) -> Path:
    """Return the Trainer's folder with the weights of each step in shards, written by transformers."""
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    for step in STEPS:
        checkpoint = source / f"checkpoint-{step}"
        (checkpoint / "model.safetensors").unlink()
        model_of(step).save_pretrained(checkpoint, max_shard_size="60KB")
        assert len([*checkpoint.glob("model-0*.safetensors")]) > 2
    return source


def pickle(checkpoint: Path) -> None:
    """Convert the shards and their index to torch's pickled format."""
    index = json.loads((checkpoint / INDEX).read_text())
    for part in checkpoint.glob("model-0*.safetensors"):
        torch.save(load_file(part), checkpoint / f"pytorch_{part.stem}.bin")
        part.unlink()
    names = {tensor: f"pytorch_{Path(part).stem}.bin" for tensor, part in index["weight_map"].items()}
    (checkpoint / INDEX).unlink()
    (checkpoint / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))


@pytest.mark.parametrize("pickled", [False, True])
def test_copied_shards_equal_the_single_file(root, parts, trainer_folder, pickled):
    """Tensors and answers are the same, also after the same command runs a second time."""
    for step in STEPS if pickled else ():
        pickle(parts / f"checkpoint-{step}")
    whole = add([str(trainer_folder)], "whole").run
    for _ in range(2):
        added = add([str(parts)], "joined", copy=True)
        assert added.steps == STEPS and not added.troubles
    for step in STEPS:
        stored_tensors = read_tensors(runs.checkpoint(added.run, step))
        for name, tensor in read_tensors(runs.checkpoint(whole, step)).items():
            assert torch.equal(tensor, stored_tensors[name])
        assert query.ask(added.run, TEXT, [step]).best(step) == query.ask(whole, TEXT, [step]).best(step)


def test_shards_in_hub_cache_are_joined(root, parts, trainer_folder, tmp_path, monkeypatch):
    """The Hub's cache names files by their hash, behind symlinks."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for step in STEPS:
        store(tmp_path / "hub", "owner/series", f"step{step}", parts / f"checkpoint-{step}")
    run, whole = add(["hf:owner/series"], "joined", copy=True).run, add([str(trainer_folder)], "whole").run
    assert query.ask(run, TEXT, [20]).best(20) == query.ask(whole, TEXT, [20]).best(20)


@pytest.mark.parametrize("pickled", [False, True])
def test_shards_are_read_in_place(root, parts, trainer_folder, pickled):
    """Tensors, answers and audit equal those of the single file; a shard that changes later is refused."""
    for step in STEPS if pickled else ():
        pickle(parts / f"checkpoint-{step}")
    run, whole = add([str(parts)], "parts").run, add([str(trainer_folder)], "whole").run
    assert not [*run.path.rglob("*.safetensors"), *run.path.rglob("*.bin")]
    stored_tensors, expected = (read_tensors(runs.checkpoint(r, 20)) for r in (run, whole))
    assert stored_tensors.keys() == expected.keys() and all(
        torch.equal(stored_tensors[name], expected[name]) for name in stored_tensors
    )
    tokens, alike = ([answer.token for answer in query.ask(each, TEXT, [20]).best(20)] for each in (run, whole))
    assert tokens == alike
    assert audit(run).faults == audit(whole).faults
    assert pickled or parameters(run) == parameters(whole)
    last = max((parts / "checkpoint-20").glob("*-0*"))
    last.write_bytes(last.read_bytes()[:-1] + b"x")
    with pytest.raises(BrokenCheckpoint, match=last.name):
        runs.verify(runs.checkpoint(run, 20))


def test_shards_are_fetched_and_discarded_together(root, hub, parts):
    """The hashes listed by the Hub are verified, and discarding removes every shard from the cache."""
    for step in STEPS:
        hub.push("owner/series", f"step{step}", parts / f"checkpoint-{step}")
    run = add(["hf:owner/series"], "parts").run
    one = runs.checkpoint(run, 10)
    fetched = fetch_checkpoint(one)
    assert len(fetched) == len([*(parts / "checkpoint-10").glob("model-0*")]) and not uncached_pointers(one)
    runs.verify(one)
    for pointer in fetched:
        discard(pointer)
    assert uncached_pointers(one) == fetched


def test_missing_or_truncated_shard_is_reported(root, parts):
    """The other steps are added."""
    first, second, _ = (sorted((parts / f"checkpoint-{step}").glob("model-0*.safetensors")) for step in STEPS)
    first[1].unlink()
    second[1].write_bytes(second[1].read_bytes()[:-4])
    added = add([str(parts)], "joined", copy=True)
    assert added.steps == (20,)
    assert f"{first[1].name} does not exist" in added.troubles[0]
    assert f"{second[1].name} does not have the tensors of its header (truncated or changed)" in added.troubles[1]


def test_pipe_as_a_shard_is_never_opened(root, parts):
    """The final model and the last step have one each, so that their contents would be compared, without end."""
    shutil.copytree(parts / f"checkpoint-{STEPS[-1]}", parts, dirs_exist_ok=True)
    for folder in (parts, parts / f"checkpoint-{STEPS[-1]}"):
        shard = min(folder.glob("model-0*.safetensors"))
        shard.unlink()
        os.mkfifo(shard)
    added = add([str(parts)], "joined")
    assert added.steps == STEPS[:-1] and "is not a regular file" in added.troubles[0]


def test_shard_lacking_an_indexed_tensor_is_reported(root, parts):
    """This happens if the shards of two models are mixed."""
    part = sorted((parts / "checkpoint-10").glob("model-0*.safetensors"))[1]
    tensors = load_file(part)
    name = min(tensors)
    del tensors[name]
    save_file(tensors, part)
    (trouble,) = add([str(parts)], "joined", copy=True).troubles
    assert f"{part.name} lacks {name}" in trouble


def test_total_size_of_shards_is_bounded(root, parts, monkeypatch):
    """The bound set by config.json holds for the sum, since each of a thousand shards might stay below it."""
    largest = max(part.stat().st_size for part in parts.rglob("model-0*"))
    monkeypatch.setattr(checkpoint_files, "max_weights_bytes", lambda _: largest)
    with pytest.raises(RunError, match="with the other parts"):
        add([str(parts)], "parts")


@pytest.mark.parametrize("content", ['{"weight_map": {"a": "../secret"}}', '{"weight_map": {}}', "no JSON", "[]"])
def test_invalid_index_skips_its_step(root, parts, content):
    """An index that names a file outside of its folder is invalid, too."""
    (parts / "checkpoint-10" / INDEX).write_text(content)
    added = add([str(parts)], "joined", copy=True)
    assert added.steps == (0, 20)
    (trouble,) = added.troubles
    assert f"{INDEX} is not valid" in trouble
