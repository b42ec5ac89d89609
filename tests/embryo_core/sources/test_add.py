"""Tests of `add`: checkpoints in a Trainer's folder, in folders named by step, or in a list of paths become a run."""

import json
import os
import shutil
from typing import ClassVar

import numpy as np
import pytest
import torch

from embryo_core import query, results, runs
from embryo_core.cli import main
from embryo_core.comparison import group_by_design
from embryo_core.engine.model import load
from embryo_core.errors import BrokenCheckpoint, QueryError, RunError
from embryo_core.sources import add
from embryo_core.tokenizers.tokenizer import load_tokenizer
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import PADDED, STEPS, model_of, train
from tests.rounding import probability_rounding


def test_folder_of_real_trainer_becomes_run(root, byte_level, tmp_path):
    """A real Trainer writes the folder; its trainer_state.json becomes the log, and adding again appends new steps."""
    folder = tmp_path / "trained"
    for steps in (4, 6):
        train(folder, steps, resume=steps > 4)
        added = add([str(folder)], "trained", tokenizer=str(byte_level))
        assert added.steps == tuple(range(2, steps + 1, 2)) and not added.troubles
    log = runs.read_log(added.run)
    assert [row["step"] for row in log if row["split"] == "train"] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in log if row["split"] == "heldout"] == [2, 4, 6]
    assert all({"masked_lm_loss", "loss"} <= row.keys() for row in log) and "learning_rate" in log[0]
    stored = load(runs.checkpoint(added.run, 6))
    assert stored.capabilities >= {"masked_words", "states", "attentions"}
    shutil.rmtree(folder / "checkpoint-4")
    again = add([str(folder)], "again", tokenizer=str(byte_level))
    assert again.run.planned_steps == (2, 4, 6)  # trainer_state.json says: one save every two updates


def test_added_run_works_with_all_commands_without_copying(root, trainer_folder, capsys):
    """The run stores pointers instead of weights; `add` prints where they are, and `evaluate` and `query` work."""
    assert main(["add", str(trainer_folder), "--name", "rob"]) == 0
    printed = capsys.readouterr().out
    assert "3 checkpoints, steps 0 to 20" in printed and f"{trainer_folder}/checkpoint-10" in printed
    run = runs.open_run("rob")
    assert not [*run.path.rglob("*.safetensors")]
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(run)] == [None, 5120, 10240]
    command = ["evaluate", "rob", "--treebank", str(SAMPLE / "treebank.conllu"), "--limit", "5"]
    assert main(command) == 0
    assert set(results.read_scores(run, "mask_prediction")["step"]) == {*STEPS}
    assert main(["query", "rob", "The [MASK] runs ."]) == 0
    assert "step  best answer" in capsys.readouterr().out


def test_tokenization_differences_from_transformers_are_reported(root, trainer_folder, tmp_path, capsys):
    """The checkpoint's tokenizer.json, which lowercases here, is used; RobertaTokenizer would keep capital letters."""
    folder = shutil.copytree(trainer_folder / "checkpoint-10", tmp_path / "checkpoint-10")
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalizer": {"type": "Lowercase"}}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "RobertaTokenizerFast"}')
    main(["add", str(tmp_path), "--name", "small"])
    printed = capsys.readouterr().out
    assert "tokenizer.json splits 'The Café' into" in printed and "RobertaTokenizer" in printed
    assert not load_tokenizer(runs.open_run("small")).cased


def test_long_lists_of_folders_are_shortened(root, trainer_folder, tmp_path, capsys):
    """Of twelve folders, `add` prints eight and counts the others."""
    for step in range(1, 13):
        shutil.copytree(trainer_folder / "checkpoint-10", tmp_path / "series" / f"checkpoint-{step}")
    main(["add", str(tmp_path / "series"), "--name", "many"])
    assert capsys.readouterr().out.count(f"    {tmp_path}") == 8
    main(["add", str(tmp_path / "series"), "--name", "many"])
    assert "    and 4 more" in capsys.readouterr().out


def test_weights_are_copied_on_request(root, trainer_folder):
    """A run with copied weights gives the same answers as one with pointers, and its note says where they came from."""
    there = add([str(trainer_folder)], "there", [20], copy=False).run
    own = add([str(trainer_folder)], "own", [20], copy=True).run
    assert (own.path / "checkpoints" / "step20" / "model.safetensors").is_file()
    assert there.note == f"Added from {trainer_folder}, where its weights are."
    assert own.note == f"Added from {trainer_folder}."
    answers = [query.ask(run, "The [MASK] runs .", [20]).best(20) for run in (there, own)]
    assert answers[0] == answers[1]


def test_second_concurrent_add_is_refused(root, trainer_folder):
    """The second `add` raises an error and leaves the unfinished folder of the first in place."""
    folder = root / "runs" / "new.tmp"
    folder.mkdir(parents=True)
    try:
        with runs.locked(root / "runs"), pytest.raises(RunError, match=r"Another `add` is writing to"):
            add([str(trainer_folder)], "new")
        assert folder.is_dir()
    finally:
        folder.rmdir()


@pytest.mark.parametrize(
    ("names", "pattern", "steps"),
    [
        (["global_step5", "global_step10", "other"], [], [5, 10]),
        (["step1-tokens2B", "step3-tokens6B"], [], [1, 3]),
        (["a/ext5", "a/decay5"], ["a/ext{step}", "a/decay{step+100}"], [5, 105]),
    ],
)
def test_steps_are_parsed_from_folder_names(root, trainer_folder, tmp_path, names, pattern, steps):
    """Names are matched by a known pattern or by the user's patterns; other folders are ignored."""
    for name in names:
        shutil.copytree(trainer_folder / "checkpoint-10", tmp_path / "series" / name)
    added = add([str(tmp_path / "series")], "series", patterns=pattern)
    assert list(added.steps) == steps
    tokens = [checkpoint.tokens for checkpoint in runs.checkpoints(added.run)]
    of_state = [5120 if step == 10 else None for step in steps]  # those of the Trainer's state, which is of step 10
    assert tokens == ([2 * 10**9, 6 * 10**9] if "tokens" in names[0] else of_state)


def test_explicit_list_gives_steps_and_paths(root, trainer_folder):
    """The given step counts, not the one in the folder's name."""
    added = add([f"{7 * step}:{trainer_folder}/checkpoint-{step}" for step in STEPS], "listed")
    assert added.steps == (0, 70, 140)


def test_numbered_weight_files_share_one_config(root, trainer_folder, byte_level, tmp_path):
    """Files pytorch_model_N.bin are read as tensors only and give the answers of the safetensors of the same step.

    Only the last one has the tokens of the Trainer's state beside them.
    Probabilities agree up to rounding: some processors add in an order that depends on where a tensor is in memory.
    """
    folder = tmp_path / "flat"
    shutil.copytree(byte_level, folder)
    model_of(0).config.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["RobertaForMaskedLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    for step in STEPS:
        torch.save(model_of(step).state_dict(), folder / f"pytorch_model_{step}.bin")
    shutil.copy(trainer_folder / "checkpoint-20" / "trainer_state.json", folder)
    flat, reference = add([str(folder)], "flat").run, add([str(trainer_folder)], "reference").run
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(flat)] == [None, None, 10240]
    for step in STEPS:
        actual, expected = (query.ask(run, "The [MASK] .", [step]).best(step) for run in (flat, reference))
        assert [answer.token for answer in actual] == [answer.token for answer in expected]
        model, probabilities = load(runs.checkpoint(flat, step)), [answer.probability for answer in expected]
        tolerance = probability_rounding(model, model.max_positions, np.array(probabilities))
        assert [answer.probability for answer in actual] == pytest.approx(probabilities, rel=tolerance)


@pytest.mark.parametrize(
    ("folder", "name", "given", "config", "seed"),
    [
        ("bert-seed_3-long", "added", None, None, 3),
        ("seed1/plain", "added", 7, None, 7),
        ("plain", "mySeed4", None, 5, 4),
        ("plain", "added", None, 5, 5),
        ("plain", "added", None, "five", None),
    ],
)
def test_seed_comes_from_argument_name_or_config(root, trainer_folder, tmp_path, folder, name, given, config, seed):
    """The argument wins over a name, which wins over config.json; otherwise the seed is unknown."""
    source = shutil.copytree(trainer_folder, tmp_path / folder)
    path = source / "checkpoint-20" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": config}))
    assert add([str(source)], name, seed=given).run.config.get("seed") == seed


def test_seeds_added_from_separate_sources_form_one_design(root, trainer_folder, tmp_path):
    """Five seeds, each in a separate folder as the MultiBERTs are, are grouped into one design."""
    seeds = []
    for seed in range(5):
        source = shutil.copytree(trainer_folder, tmp_path / f"multi-seed_{seed}")
        seeds.append(add([str(source)], f"seed{seed}").run)
    assert group_by_design(seeds) == [tuple(seeds)]


def test_checkpoints_named_by_words_are_placed_by_words(root, trainer_folder, tmp_path):
    """chck_1M is placed at a million words; the run states this unit and leaves out the log, which counts updates."""
    for count, step in ((1, 10), (10, 20)):
        shutil.copytree(trainer_folder / f"checkpoint-{step}", tmp_path / "words" / f"chck_{count}M")
    run = add([str(tmp_path / "words")], "words").run
    assert run.step_unit == "words" and runs.read_log(run) == []
    counts = [(c.step, c.tokens, c.sequences) for c in runs.checkpoints(run)]
    assert counts == [(10**6, 5120, None), (10**7, 10240, None)]


def test_step_without_source_stays_without_weights(root, trainer_folder, tmp_path):
    """When the run is added again, a step whose source was deleted is kept without weights; a new step is added."""
    source = shutil.copytree(trainer_folder, tmp_path / "moving")
    shutil.rmtree(source / "checkpoint-20")
    add([str(source)], "moving")
    shutil.rmtree(source / "checkpoint-0")
    shutil.copytree(trainer_folder / "checkpoint-20", source / "checkpoint-20")
    added = add([str(source)], "moving")
    assert added.steps == (10, 20) and added.gone == (0,)
    assert [(c.step, c.has_weights) for c in runs.checkpoints(added.run)] == [(0, False), (10, True), (20, True)]


def test_folders_that_lost_their_weights_become_steps_without_weights(root, trainer_folder, tmp_path):
    """Such a step is both one of the earlier run and an incomplete one of the source."""
    source = shutil.copytree(trainer_folder, tmp_path / "moving")
    add([str(source)], "moving")
    for step in (0, 10):
        (source / f"checkpoint-{step}" / "model.safetensors").unlink()
    added = add([str(source)], "moving")
    assert added.steps == (20,) and added.gone == (0, 10) and added.run.planned_steps == (0, 10, 20)


def test_another_users_copy_reads_no_external_weights(root, trainer_folder, tmp_path, monkeypatch):
    """Each checkpoint of the copy is refused with a message, since this user never added the folder of its weights."""
    run = add([str(trainer_folder)], "rob").run
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of somebody else"))
    assert runs.checkpoints(run) == []
    assert len(runs.broken_checkpoints(run)) == 3
    assert all(
        "outside the run" in reason and "add SOURCE --name rob" in reason for _, reason in runs.broken_checkpoints(run)
    )


def test_manifest_pointing_elsewhere_is_refused(root, trainer_folder, tmp_path):
    """A manifest edited to point to another folder breaks its checkpoint; the other checkpoints are read."""
    run = add([str(trainer_folder)], "rob").run
    path = run.path / "checkpoints" / "step10" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["weights"]["file"] = str(tmp_path / "model.safetensors")
    path.write_text(json.dumps(manifest))
    with pytest.raises(BrokenCheckpoint, match="outside the run"):
        raise BrokenCheckpoint(runs.broken_checkpoints(run)[0][1])
    assert [checkpoint.step for checkpoint in runs.checkpoints(run)] == [0, 20]


def test_weights_changed_after_adding_are_refused(root, trainer_folder, tmp_path):
    """The manifest stores the hash of the weights that were added."""
    source = shutil.copytree(trainer_folder, tmp_path / "changing")
    run = add([str(source)], "changing").run
    model_of(1).save_pretrained(source / "checkpoint-10")
    with pytest.raises(BrokenCheckpoint, match="is not the file in the manifest"):
        load(runs.checkpoint(run, 10))


def test_code_in_pickled_weights_is_never_executed(root, trainer_folder, tmp_path):
    """A pickle that would call a function is refused, and the function is not called."""
    source = shutil.copytree(trainer_folder, tmp_path / "hostile")
    for step in STEPS:
        (source / f"checkpoint-{step}" / "model.safetensors").unlink()
        torch.save(_Hostile(), source / f"checkpoint-{step}" / "pytorch_model.bin")
    run = add([str(source)], "hostile").run
    with pytest.raises(BrokenCheckpoint, match=r"pytorch_model\.bin cannot be read"):
        load(runs.checkpoint(run, 10))
    assert not _Hostile.called


class _Hostile:
    called: ClassVar[list[bool]] = []

    def __reduce__(self):
        return _Hostile.called.append, (True,)


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (["{folder}/none"], {}, "is not a folder"),
        (["{folder}/checkpoint-0"], {}, "has no checkpoint whose name matches checkpoint-"),
        (["{folder}"], {"patterns": ["x{step}"]}, "matches x{step}"),
        (["{folder}"], {"patterns": ["checkpoint"]}, "has no field"),
        (["{folder}"], {"patterns": ["{epoch}"]}, "has no field, or not one of each; known: {step}"),
        (["{folder}"], {"steps": [7]}, "has no checkpoint at step 7; known: 0, 10, 20"),
        (["{folder}"], {"tokenizer": "none"}, "There is no tokenizer in none"),
        (["1:{folder}/checkpoint-0", "1:{folder}/checkpoint-10"], {}, "Step 1 is there twice"),
        (["1:{folder}/checkpoint-0", "{folder}"], {}, "not each is STEP:PATH"),
        (["1:{folder}"], {}, "holds no checkpoint"),
    ],
)
def test_invalid_sources_are_refused(root, trainer_folder, source, more, message):
    """Each error names the problem, and no run is created."""
    with pytest.raises(RunError) as raised:
        add([argument.replace("{folder}", str(trainer_folder)) for argument in source], "none", **more)
    assert message in str(raised.value) and not runs.list_runs()


def test_name_used_in_another_data_root_is_refused(root, trainer_folder, tiny_run, monkeypatch):
    """A new run of that name would hide the existing one."""
    monkeypatch.setenv("EMBRYO_DATA", f"{root}{os.pathsep}{tiny_run.path.parents[1]}")
    with pytest.raises(RunError, match="which would be hidden; choose another --name"):
        add([str(trainer_folder)], "tiny")
    assert not (root / "runs" / "tiny").exists()


def test_pretrained_run_is_never_replaced(root, trainer_folder, tiny_run):
    """A name that leads out of the runs folder is refused, too."""
    shutil.copytree(tiny_run.path, root / "runs" / "tiny")
    with pytest.raises(RunError, match="and it was not added; choose another --name"):
        add([str(trainer_folder)], "tiny")
    with pytest.raises(RunError, match="not a valid run name"):
        add([str(trainer_folder)], "../tiny")


def test_unsupported_model_family_is_reported(root, trainer_folder, tmp_path, capsys):
    """The other checkpoints are added, and the exit status is 1."""
    source = shutil.copytree(trainer_folder, tmp_path / "mixed")
    (source / "checkpoint-10" / "config.json").write_text(json.dumps({"model_type": "whisper", "n_layer": 2}))
    assert main(["add", str(source), "--name", "mixed"]) == 1
    out, err = capsys.readouterr()
    assert "2 checkpoints" in out and "has the model_type 'whisper', which is not read" in err


def test_padding_rows_of_vocabulary_are_never_predicted(root, trainer_folder):
    """The vocabulary is padded with rows of high bias that would win; all predictions are tokens of the tokenizer."""
    run = add([str(trainer_folder)], "rob").run
    model = load(runs.checkpoint(run, 20))
    assert model.vocabulary_size < PADDED - 5
    assert all(prediction.token for prediction in query.ask(run, "The [MASK] runs .", [20]).best(20))


def test_native_mask_token_in_question_is_refused(root, trainer_folder):
    """Questions write every mask as [MASK], since masks are numbered by it; <mask> in a text is an error."""
    run = add([str(trainer_folder)], "rob").run
    with pytest.raises(QueryError, match=r"The text has <mask>, as this tokenizer writes its mask; write \[MASK\]"):
        query.ask(run, "The <mask> of a [MASK] .", [20])
