"""Tests of adding a run again: it keeps earlier steps and never takes over the results of other models."""

import json
import shutil
from pathlib import Path

import pytest

from embryo_core import query, results, runs
from embryo_core.cli import main
from embryo_core.errors import BrokenCheckpoint, EmbryoError, RunError, UnknownStep
from embryo_core.sources import add
from embryo_core.types import Run
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import STEPS, model_of


@pytest.fixture
def source(trainer_folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the Trainer's folder that a test may change."""
    return shutil.copytree(trainer_folder, tmp_path / "source")


def evaluate(name: str) -> None:
    """Evaluate all steps of a run."""
    command = ["evaluate", name, "--treebank", str(SAMPLE / "treebank.conllu"), "--limit", "2"]
    assert main([*command, "--metrics", "mask_prediction"]) == 0


def steps_of(run: Run) -> list[tuple[int, bool]]:
    """Return each step and whether it has weights."""
    return [(checkpoint.step, checkpoint.has_weights) for checkpoint in runs.checkpoints(run)]


def change_weights(source: Path) -> None:
    """Replace the weights of step 10."""
    model_of(1).save_pretrained(source / "checkpoint-10")


def change_config(source: Path) -> None:
    """Change epsilon in the config of step 10 and keep its weights."""
    path = source / "checkpoint-10" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_norm_eps": 1e-3}))


def change_other_field(source: Path) -> None:
    """Change a field of step 10's config that no tensor's size depends on."""
    path = source / "checkpoint-10" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"position_embedding_type": "relative_key"}))


def change_tokenizer(source: Path) -> None:
    """Swap the ids of two tokens in the tokenizer of the last step."""
    path = source / "checkpoint-20" / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        (change_weights, "10"),
        (change_config, "10"),
        (change_other_field, "10"),
    ],
)
def test_changed_model_with_results_is_refused(root, source, change, steps):
    """The error names the step, and the run's files stay the same; adding the changed model under a new name works."""
    run = add([str(source)], "mine").run
    evaluate("mine")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert add([str(source)], "mine").steps == STEPS
    change(source)
    with pytest.raises(RunError, match=f"at steps {steps}, and .*results of those; choose another --name"):
        add([str(source)], "mine")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert add([str(source)], "other").steps == STEPS


def test_changed_tokenizer_with_results_is_refused(root, source):
    """A tokenizer.json with the same content in another order counts as the same tokenizer."""
    run = add([str(source)], "mine").run
    evaluate("mine")
    path = source / "checkpoint-20" / "tokenizer.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(dict(sorted(content.items(), reverse=True)), indent=1))
    again = add([str(source)], "mine").run
    assert results.steps_by_metric(again) == results.steps_by_metric(run) != {}
    change_tokenizer(source)
    with pytest.raises(RunError, match=r"'mine' had another tokenizer, .*--tokenizer"):
        add([str(source)], "mine")
    assert runs.read_run(run.path).tokenizer_sha256 == again.tokenizer_sha256


def test_changed_weights_replace_old_ones_without_results(root, source):
    """Without results there is nothing that could become wrong."""
    before = query.ask(add([str(source)], "mine").run, "The [MASK] .", [10]).best(10)
    change_weights(source)
    assert query.ask(add([str(source)], "mine").run, "The [MASK] .", [10]).best(10) != before


def test_corrected_pattern_replaces_wrong_steps(root, source):
    """Without results a pattern may be corrected; once the old steps have results, the change is refused."""
    add([str(source)], "mine", patterns=["checkpoint-{step+5}"])
    assert steps_of(add([str(source)], "mine").run) == [(step, True) for step in STEPS]
    evaluate("mine")
    with pytest.raises(RunError, match="at steps 0, 10, 20"):
        add([str(source)], "mine", patterns=["checkpoint-{step+5}"])


def test_results_of_deleted_run_are_not_taken_over(root, source):
    """After the run was deleted, nothing records which weights its results belong to."""
    run = add([str(source)], "mine").run
    evaluate("mine")
    shutil.rmtree(run.path)
    with pytest.raises(RunError, match="results of a run 'mine' that is gone"):
        add([str(source)], "mine")
    shutil.rmtree(run.results)
    assert add([str(source)], "mine").steps == STEPS


def test_copied_weights_outlive_their_source(root, source):
    """Adding again after a source checkpoint was deleted keeps its copied step and its answers."""
    run = add([str(source)], "own", copy=True).run
    before = query.ask(run, "The [MASK] .", [0]).best(0)
    shutil.rmtree(source / "checkpoint-0")
    added = add([str(source)], "own", copy=True)
    assert added.kept == (0,) and not added.gone
    assert steps_of(added.run) == [(step, True) for step in STEPS]
    assert query.ask(added.run, "The [MASK] .", [0]).best(0) == before


@pytest.mark.parametrize("more", [{"warmup_steps": -1}, {"short_steps": 5}, {"batch_size": True}, {"steps": 2**70}])
def test_fields_of_model_config_never_break_a_run(root, source, more):
    """A model's config.json may have any field; settings of training are not copied from it into the run's config."""
    add([str(source)], "mine", copy=True)
    shutil.rmtree(source / "checkpoint-0")
    path = source / "checkpoint-20" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    again = add([str(source)], "mine", copy=True)
    assert (again.kept, again.steps) == ((0,), (10, 20))
    assert runs.open_run("mine").config["hidden_size"] == 32 and not more.keys() & again.run.config.keys()


@pytest.mark.parametrize("copy", [True, False])
def test_truncated_source_never_replaces_a_copy(root, source, copy):
    """The truncated file is skipped with a message, and the copied step keeps its answers."""
    run = add([str(source)], "own", copy=True).run
    before = query.ask(run, "The [MASK] .", [20]).best(20)
    weights = source / "checkpoint-20" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-500])
    added = add([str(source)], "own", copy=copy)
    assert (added.steps, added.kept) == ((0, 10), (20,)) and len(added.troubles) == 1
    assert "does not have the tensors of its header (truncated or changed)" in added.troubles[0]
    assert query.ask(added.run, "The [MASK] .", [20]).best(20) == before


@pytest.mark.parametrize("where", ["removed", "generator"])
def test_adding_over_foreign_run_allows_only_added_folders(root, source, tmp_path, where):
    """A step of the run points elsewhere, by a manifest of removed weights or by a generator's; neither is allowed."""
    run = add([str(source)], "theirs").run
    (tmp_path / "settings" / "embryo" / "added.json").unlink()  # this user has added nothing
    secret = shutil.copytree(source / "checkpoint-0", tmp_path / "private") / "model.safetensors"
    step = shutil.copytree(run.path / "checkpoints" / "step0", run.path / "checkpoints" / "step5")
    manifest = json.loads((step / "manifest.json").read_text()) | {"step": 5}
    elsewhere = manifest | {"weights": manifest["weights"] | {"file": str(secret)}}
    if where == "removed":
        manifest = elsewhere | {"removed": {"x": "0" * 64}}
    else:
        manifest["weights"]["file"] = str(source / "checkpoint-0" / "config.json")
        (step / "generator").mkdir()
        shutil.copyfile(step / "config.json", step / "generator" / "config.json")
        (step / "generator" / "manifest.json").write_text(json.dumps(elsewhere))
    (step / "manifest.json").write_text(json.dumps(manifest))
    added = add([str(source)], "theirs")
    assert (added.kept, added.gone) == ((), (5,))
    assert runs.allowed_sources(added.run.path) == {str(source / f"checkpoint-{step}") for step in STEPS}


def test_linked_config_of_foreign_run_is_not_copied(root, source, tmp_path):
    """A step that loses its weights keeps its config.json, which may lead to a file of the user."""
    run = add([str(source)], "theirs").run
    shutil.rmtree(source / "checkpoint-20")
    secret, config = tmp_path / "secret", run.path / "checkpoints" / "step20" / "config.json"
    secret.write_text("a password")
    config.unlink()
    config.symlink_to(secret)
    with pytest.raises(BrokenCheckpoint, match="is a link that leads out of"):
        add([str(source)], "theirs")
    assert not [path for path in run.path.rglob("config.json") if path != config and path.read_text() == "a password"]


def test_adding_some_steps_keeps_the_others(root, source):
    """With --steps, the other steps keep their weights and are not reported as gone; the log keeps its later rows."""
    log = runs.read_log(add([str(source)], "mine").run)
    added = add([str(source)], "mine", [10])
    assert (added.steps, added.kept, added.gone) == ((10,), (0, 20), ())
    assert steps_of(added.run) == [(step, True) for step in STEPS]
    assert runs.read_log(added.run) == log and runs.missing_steps(added.run) == []
    assert query.ask(added.run, "The [MASK] .", [20]).best(20)


def test_word_counts_of_the_user_are_kept(root, source):
    run = add([str(source)], "mine").run
    run.frequencies.write_text("the\t3\n")
    assert add([str(source)], "mine").run.frequencies.read_text() == "the\t3\n"


def test_run_may_have_two_sources(root, source, tmp_path):
    """Steps from one folder stay when more are added from another."""
    (tmp_path / "later").mkdir()
    shutil.move(source / "checkpoint-20", tmp_path / "later")
    add([str(source)], "mine")
    added = add([str(tmp_path / "later")], "mine")
    assert steps_of(added.run) == [(step, True) for step in STEPS]
    assert query.ask(added.run, "The [MASK] .", [0]).best(0)


def test_moved_run_can_be_added_again(root, source, tmp_path, monkeypatch, capsys):
    """Until then, commands name the refused pointer and the command that repairs it."""
    add([str(source)], "mine")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "elsewhere"))
    shutil.move(root, tmp_path / "elsewhere")
    moved = runs.open_run("mine")
    with pytest.raises(UnknownStep, match=r"no checkpoint that can be read: .*outside the run.*add SOURCE --name mine"):
        runs.checkpoint(moved, 5)
    assert main(["query", "mine", "The [MASK] .", "--steps", "10"]) == 2
    assert "outside the run" in capsys.readouterr().err
    assert steps_of(add([str(source)], "mine").run) == [(step, True) for step in STEPS]


@pytest.mark.parametrize("linked", ["run", "checkpoints", "tokenizer"])
def test_symlinked_run_folder_is_refused(root, trainer_folder, linked):
    """The link stays, and no file of the run behind it changes."""
    run, other = (add([str(trainer_folder)], name).run for name in ("run", "other"))
    path, there = (run_.path if linked == "run" else run_.path / linked for run_ in (run, other))
    shutil.rmtree(path)
    path.symlink_to(there)
    before = {path: path.read_bytes() for path in other.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="is a link"):
        add([str(trainer_folder)], "run")
    assert path.is_symlink() and before == {path: path.read_bytes() for path in other.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", ["run", "run.tmp", "run/checkpoints/step10"])
def test_unknown_files_are_never_deleted(root, trainer_folder, folder):
    """The file may be in the run's folder, in the temporary folder of an unfinished run, or in that of a checkpoint."""
    add([str(trainer_folder)], "run")
    notes = root / "runs" / folder / "notes.md"
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("mine")
    with pytest.raises(EmbryoError, match=r"notes\.md' is not a file that Embryo wrote"):
        add([str(trainer_folder)], "run")
    assert notes.read_text() == "mine" and runs.checkpoint(runs.open_run("run"), 10).has_weights
