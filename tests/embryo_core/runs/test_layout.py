"""The layout of runs: found by name or path, read from what is on disk, and broken parts told apart."""

import json
import os
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, BrokenRun, UnknownRun, UnknownStep
from embryo_core.types import Run

# === Runs ===


def test_roots_are_those_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """EMBRYO_DATA names folders as PATH does, the first one first."""
    monkeypatch.setenv("EMBRYO_DATA", os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b"))))
    assert runs.roots() == [tmp_path / "a", tmp_path / "b"]


def test_roots_are_data_and_its_demo_by_default(monkeypatch: pytest.MonkeyPatch):
    """Without EMBRYO_DATA: the user's own runs, then the demo."""
    monkeypatch.delenv("EMBRYO_DATA")
    assert runs.roots() == [runs.REPOSITORY / "data", runs.REPOSITORY / "data" / "demo"]


def test_a_run_is_opened_by_name_and_by_path(tiny_run: Run, monkeypatch: pytest.MonkeyPatch):
    """The name is looked up under the roots; a path needs no root."""
    assert runs.open_run(tiny_run.path) == tiny_run
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parents[1]))
    assert runs.open_run("tiny") == tiny_run
    assert runs.list_runs() == [tiny_run]


def test_what_is_written_is_read(own_run: Run):
    """run.json holds every field of a run but its path."""
    changed = replace(own_run, objective="masked words", planned_steps=(0, 1, 2))
    runs.write_run(changed)
    assert runs.read_run(own_run.path) == changed


def test_the_folder_names_the_run(own_run: Run):
    """A run whose folder was renamed goes by its new name, which is also that of its results."""
    moved = own_run.path.rename(own_run.path.with_name("moved"))
    assert runs.read_run(moved).name == "moved"


def test_an_unknown_run_is_answered_with_the_known_ones(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """The message suggests the nearest name and says how to list all."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    with pytest.raises(UnknownRun, match="Unknown run 'tinny'. Did you mean 'tiny'.* python -m embryo_core runs"):
        runs.open_run("tinny")


def test_a_run_card_without_a_field_names_the_field(own_run: Run):
    """An incomplete run.json is a broken run and says what it lacks."""
    card = json.loads((own_run.path / "run.json").read_text())
    del card["family"]
    runs.write_json(own_run.path / "run.json", card)
    with pytest.raises(BrokenRun, match="lacks family"):
        runs.read_run(own_run.path)


def test_a_broken_run_is_left_out_of_the_list(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A folder with a truncated run.json neither stops the listing nor appears in it."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    (own_run.path / "run.json").write_text('{"name": ')
    assert runs.list_runs() == []


# === The log ===


def test_a_line_cut_short_is_dropped_from_the_log(own_run: Run):
    """A crash while writing loses one row, not the log."""
    rows = runs.read_log(own_run)
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write('{"split": "train", "step": 20, "lo')
    assert runs.read_log(own_run) == rows


def test_a_step_trained_again_replaces_its_row(own_run: Run):
    """After a resume the later row of a step and split counts."""
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write(json.dumps({"split": "train", "step": 4, "loss": 1.5}) + "\n")
    rows = [row for row in runs.read_log(own_run) if (row["split"], row["step"]) == ("train", 4)]
    assert rows == [{"split": "train", "step": 4, "loss": 1.5}]


def test_a_run_without_a_log_has_no_rows(own_run: Run):
    """A missing log is an empty one."""
    (own_run.path / "log.jsonl").unlink()
    assert runs.read_log(own_run) == []


# === Steps and checkpoints ===


def test_the_step_grid_is_dense_where_function_words_are_learned():
    """Zero, powers of two below the spacing, then the regular grid and the last step."""
    assert runs.step_grid(100, 25) == (0, 1, 2, 4, 8, 16, 25, 50, 75, 100)
    assert runs.step_grid(10, 1000) == (0, 1, 2, 4, 8, 10)


def test_checkpoints_come_in_the_order_of_steps(tiny_run: Run):
    """Step 8 comes before step 16, whatever the names sort like."""
    assert [c.step for c in runs.checkpoints(tiny_run)] == [0, 8, 16]


def test_the_manifest_tells_the_step_and_not_the_folder(own_run: Run):
    """A renamed folder keeps its step."""
    folder = own_run.path / "checkpoints" / "step8"
    folder.rename(folder.with_name("step9"))
    assert runs.checkpoint(own_run, 8).path.name == "step9"


def test_an_unknown_step_is_answered_with_the_nearest(tiny_run: Run):
    """The message names the nearest step and all there are."""
    with pytest.raises(UnknownStep, match="no checkpoint at step 9; the nearest is 8. Known: 0, 8, 16."):
        runs.checkpoint(tiny_run, 9)


def test_a_folder_still_being_written_is_no_checkpoint(own_run: Run):
    """Folders are written under a temporary name; one that a crash left behind is passed over."""
    (own_run.path / "checkpoints" / "step32.tmp").mkdir()
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    assert runs.broken(own_run) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"step": 8}', '{"step": "eight", "sequences": 0, "tokens": 0}'])
def test_a_broken_manifest_is_reported_and_the_others_stay(own_run: Run, content: str):
    """Whatever stands in manifest.json, the other checkpoints are listed and this one has a reason."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(content)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    ((path, reason),) = runs.broken(own_run)
    assert path == manifest.parent and "manifest.json" in reason


def test_a_stray_file_is_no_checkpoint(own_run: Run):
    """A file with the name of a step is reported, and the checkpoints are listed."""
    (own_run.path / "checkpoints" / "step4").write_text("a note")
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    ((path, reason),) = runs.broken(own_run)
    assert path.name == "step4" and "does not exist" in reason


def test_a_manifest_written_again_is_read_again(own_run: Run):
    """What was listed before does not hide what is there now; a step trained again is another checkpoint."""
    before = runs.checkpoint(own_run, 8)
    runs.write_manifest(before.path, 8, sequences=before.sequences + 1, tokens=before.tokens)
    after = runs.checkpoint(own_run, 8)
    assert after.sequences == before.sequences + 1 and after.written > before.written
    assert runs.checkpoint(own_run, 8) == after != before


def test_a_truncated_tensor_file_is_found(own_run: Run):
    """verify compares every file with the manifest's sha256."""
    checkpoint = runs.checkpoint(own_run, 8)
    runs.verify(checkpoint)
    weights = checkpoint.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


def test_a_missing_tensor_file_is_found(own_run: Run):
    """A file in the manifest that is not there makes the checkpoint broken."""
    checkpoint = runs.checkpoint(own_run, 8)
    (checkpoint.path / "model.safetensors").unlink()
    with pytest.raises(BrokenCheckpoint, match="is missing; train this step again"):
        runs.verify(checkpoint)
