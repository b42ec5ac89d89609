"""Tests of adding local folders: with symlinks, incomplete checkpoints, unusual paths, and files of other trainers."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from embryo_core import query, results, runs
from embryo_core.engine.model import load
from embryo_core.errors import BrokenCheckpoint, RunError
from embryo_core.measurements import Findings, Score
from embryo_core.sources import add
from tests.embryo_core.sources.conftest import STEPS, model_of


@pytest.fixture
def source(trainer_folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the Trainer's folder that a test may change."""
    return shutil.copytree(trainer_folder, tmp_path / "source")


def into_store(source: Path, store: Path) -> None:
    """Replace each file with a symlink to a file named by its hash, as in the Hub's cache."""
    store.mkdir()
    for path in [path for path in source.rglob("*") if path.is_file()]:
        hashed_path = store / hashlib.sha1(path.read_bytes() + path.name.encode()).hexdigest()
        shutil.move(path, hashed_path)
        path.symlink_to(os.path.relpath(hashed_path, path.parent))


def test_symlinks_to_hash_named_files_are_followed(root, source, trainer_folder, tmp_path):
    """The tokenizer is found next to the link, and the format of weights by their first bytes; copying works, too."""
    into_store(source, tmp_path / "store")
    plain = add([str(trainer_folder)], "plain").run
    for run in (add([str(source)], "linked").run, add([str(source)], "own", copy=True).run):
        assert query.ask(run, "The [MASK] .", [10]).best(10) == query.ask(plain, "The [MASK] .", [10]).best(10)


def test_pickled_weights_behind_hash_named_links_are_read(root, source, tmp_path):
    """Both of torch's formats are read: the zip archive, and the legacy format used before version 1.6."""
    for step in STEPS:
        checkpoint = source / f"checkpoint-{step}"
        tensors = load_file(checkpoint / "model.safetensors")
        (checkpoint / "model.safetensors").unlink()
        torch.save(tensors, checkpoint / "pytorch_model.bin", _use_new_zipfile_serialization=step > 0)
    into_store(source, tmp_path / "store")
    run = add([str(source)], "linked").run
    assert [load(checkpoint).num_layers for checkpoint in runs.checkpoints(run)] == [2, 2, 2]


def test_torch_error_about_pickles_is_not_shown(root, source):
    """torch's message explains how to run the code inside the pickle."""
    for step in STEPS:
        (source / f"checkpoint-{step}" / "model.safetensors").unlink()
        torch.save({"a": object}, source / f"checkpoint-{step}" / "pytorch_model.bin")
    run = add([str(source)], "hostile").run
    with pytest.raises(BrokenCheckpoint, match=r"cannot be read \(it holds more than tensors, or is damaged\)"):
        load(runs.checkpoint(run, 10))


@pytest.mark.parametrize("lacking", ["config.json", "model.safetensors"])
def test_incomplete_checkpoint_is_skipped(root, source, lacking):
    """A Trainer may still be writing its last checkpoint; a skipped step is an error if it is requested explicitly."""
    (source / "checkpoint-20" / lacking).unlink()
    added = add([str(source)], "mine")
    assert (
        added.steps == (0, 10) and len(added.troubles) == 1 and "checkpoint-20 holds no checkpoint" in added.troubles[0]
    )
    with pytest.raises(RunError, match="checkpoint-20 holds no checkpoint"):
        add([str(source)], "mine", [20])


@pytest.mark.parametrize("content", ["{", "[]", '{"model_type": "roberta"}', '{"model_type": "gpt2"}'])
def test_unreadable_config_skips_its_step(root, source, content):
    """The run has no folder for the skipped step."""
    (source / "checkpoint-20" / "config.json").write_text(content)
    added = add([str(source)], "mine")
    assert added.steps == (0, 10) and len(added.troubles) == 1
    assert sorted(path.name for path in (added.run.path / "checkpoints").iterdir()) == ["step0", "step10"]


@pytest.mark.parametrize("name", [b"caf\xe9", b"na\tme", b"blank here"])
def test_path_that_is_not_utf8_is_refused(root, source, trainer_folder, name):
    """No run is created, and the earlier run stays readable; tabs and spaces in a path are accepted."""
    run = add([str(trainer_folder)], "there").run
    strange = Path(os.fsdecode(os.fsencode(source.parent) + b"/" + name))
    source.rename(strange)
    if b"\xe9" in name:
        with pytest.raises(RunError, match="bytes that are no UTF-8 text"):
            add([str(strange)], "strange")
        (source.parent / "link").symlink_to(strange)
        with pytest.raises(RunError, match="bytes that are no UTF-8 text"):
            add([str(source.parent / "link")], "strange")
        assert [run.name for run in runs.list_runs()] == ["there"]
    else:
        assert len(runs.checkpoints(add([str(strange)], "strange").run)) == 3
    assert len(runs.checkpoints(run)) == 3


def test_file_name_with_control_characters_is_refused(root, source):
    """The other steps are added; spaces in a name are accepted."""
    (source / "checkpoint-0" / "model.safetensors").rename(source / "weights of\t0.safetensors")
    (source / "checkpoint-0" / "model.safetensors").symlink_to(source / "weights of\t0.safetensors")
    (source / "checkpoint-10" / "model.safetensors").rename(source / "weights of 10.safetensors")
    (source / "checkpoint-10" / "model.safetensors").symlink_to(source / "weights of 10.safetensors")
    added = add([str(source)], "mine")
    assert added.steps == (10, 20) and "\t" not in added.troubles[0] and r"\t0" in added.troubles[0]
    assert len(runs.checkpoints(added.run)) == 2


def test_vocabulary_smaller_than_tokenizer_is_refused(root, source):
    """The message gives both sizes and the path of config.json."""
    path = source / "checkpoint-10" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 100}))
    with pytest.raises(RunError, match=r"has \d+ pieces, and .*checkpoint-10/config.json a vocab_size of 100"):
        add([str(source)], "mine")


@pytest.mark.parametrize("copy", [False, True])
def test_electra_is_added_with_its_generator(root, electra, copy):
    """The generator answers questions on masked words, whether weights are copied or not."""
    tokenizer = str(electra.run.tokenizer)
    run = add([f"16:{electra.path}"], "taken", copy=copy, tokenizer=tokenizer).run
    answers = [query.ask(r, "The [MASK] .", [16]).best(16) for r in (run, electra.run)]
    assert answers[0] == answers[1]
    inside = runs.generator(runs.checkpoint(run, 16))
    assert (inside.pointer is None) == copy and (inside.path / "manifest.json").is_file()
    scores = [Score("mask_prediction", 0.5, 4, "all")]
    results.write(runs.checkpoint(run, 16), "mask_prediction", Findings(scores=scores))
    for again in (copy, not copy):  # the same models, so their results stay valid
        assert add([f"16:{electra.path}"], "taken", copy=again, tokenizer=tokenizer).steps == (16,)


def test_final_model_without_number_becomes_last_step(root, source):
    """New weights, a later global_step and no best checkpoint are required; otherwise a note names the model."""
    shutil.copytree(source / "checkpoint-20", source, dirs_exist_ok=True)
    added = add([str(source)], "same")
    assert added.steps == STEPS and not added.notes
    model_of(30).save_pretrained(source)
    state = json.loads((source / "trainer_state.json").read_text())
    for changed, steps in (
        ({"global_step": 30}, (*STEPS, 30)),
        ({"global_step": 20}, STEPS),
        ({"global_step": 30, "best_model_checkpoint": "out/checkpoint-5"}, STEPS),
    ):
        (source / "trainer_state.json").write_text(json.dumps(state | changed))
        added = add([str(source)], "last")
        assert added.steps == steps and len(added.notes) == (steps == STEPS)
        if steps == STEPS:
            assert str(source) in added.notes[0]
        shutil.rmtree(added.run.path)
    (source / "trainer_state.json").unlink()
    assert "trainer_state.json" in add([str(source)], "none").notes[0]


def test_final_model_equal_to_best_checkpoint_is_no_new_step(root, source):
    """A Trainer that loads its best model at the end saves that checkpoint's weights, whatever its last update was."""
    shutil.copytree(source / "checkpoint-10", source, dirs_exist_ok=True)
    state = json.loads((source / "trainer_state.json").read_text())
    more = {"global_step": 30, "best_model_checkpoint": "out/checkpoint-10"}
    (source / "trainer_state.json").write_text(json.dumps(state | more))
    added = add([str(source)], "best")
    assert added.steps == STEPS and not added.notes


@pytest.mark.parametrize(
    ("file", "trainer"),
    [
        ("ep1-ba2000-rank0.pt", "Composer"),
        ("global_step10/mp_rank_00_model_states.pt", "DeepSpeed"),
        ("step10/layer_00-model_00-model_states.pt", "GPT-NeoX"),
        ("iter_0000010/mp_rank_00/model_optim_rng.pt", "Megatron-LM"),
        ("model.ckpt-10.index", "TensorFlow 1"),
        ("checkpoint-10/flax_model.msgpack", "Flax"),
        ("checkpoint-10/adapter_model.safetensors", "PEFT"),
        ("epoch=0-step=10.ckpt", "Lightning"),
        ("ckpt.pt", "torch"),
    ],
)
def test_files_of_other_trainers_are_recognised(root, tmp_path, file, trainer):
    """The error names the file and the library that wrote it."""
    path = tmp_path / "theirs" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(RunError) as raised:
        added = add([str(tmp_path / "theirs")], "theirs")
        pytest.fail(str(added))
    assert f"{path.name} is a file of {trainer}" in str(raised.value)
