"""Checkpoints come in the order of steps; whatever is wrong with one is told, and the others stay."""

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, UnknownStep
from embryo_core.types import Run


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
    with pytest.raises(BrokenCheckpoint, match="does not exist; train this step again"):
        runs.verify(checkpoint)
