"""Tests of listing checkpoints in the order of steps and of reporting those that cannot be read."""

import json
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import UnknownStep
from embryo_core.runs import manifests
from embryo_core.types import Run


def test_checkpoints_are_sorted_by_step(tiny_run: Run):
    """Step 8 comes before step 16, unlike in the order of folder names."""
    assert [c.step for c in runs.checkpoints(tiny_run)] == [0, 8, 16]


def test_step_comes_from_manifest_not_folder_name(own_run: Run):
    """A renamed folder keeps its step."""
    folder = own_run.path / "checkpoints" / "step8"
    folder.rename(folder.with_name("step9"))
    assert runs.checkpoint(own_run, 8).path.name == "step9"


def test_unknown_step_suggests_nearest(tiny_run: Run):
    """The message also lists all steps."""
    with pytest.raises(UnknownStep, match=r"no checkpoint at step 9; the nearest is 8\. Known: 0, 8, 16\."):
        runs.checkpoint(tiny_run, 9)


def test_unfinished_checkpoint_is_ignored(own_run: Run):
    """Folders are written under a temporary name, which may stay after a crash."""
    (own_run.path / "checkpoints" / "step32.tmp").mkdir()
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    assert runs.broken_checkpoints(own_run) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"step": 8}', '{"step": "eight", "sequences": 0, "tokens": 0}'])
def test_broken_manifest_is_reported(own_run: Run, content: str):
    """The other checkpoints are listed."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(content)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    ((path, reason),) = runs.broken_checkpoints(own_run)
    assert path == manifest.parent and "manifest.json" in reason


def test_stray_file_is_reported(own_run: Run):
    """A file with the name of a step does not hinder the listing of checkpoints."""
    (own_run.path / "checkpoints" / "step4").write_text("a note")
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    ((path, reason),) = runs.broken_checkpoints(own_run)
    assert path.name == "step4" and "does not exist" in reason


def test_rewritten_manifest_is_read_again(own_run: Run):
    """The earlier listing is not reused; a step that is trained again is a new checkpoint."""
    before = runs.checkpoint(own_run, 8)
    runs.write_manifest(before.path, 8, sequences=before.sequences + 1, tokens=before.tokens)
    after = runs.checkpoint(own_run, 8)
    assert after.sequences == before.sequences + 1 and after.manifest_mtime > before.manifest_mtime
    assert runs.checkpoint(own_run, 8) == after != before


def test_listing_is_reused_until_files_change(own_run: Run):
    """A removed or restored folder and a new run.json give a new listing; otherwise the same objects are returned."""
    before = runs.checkpoints(own_run)
    assert all(one is other for one, other in zip(before, runs.checkpoints(own_run), strict=True))
    folder = own_run.path / "checkpoints"
    (folder / "step8").rename(folder / "gone")
    assert [checkpoint.step for checkpoint in runs.checkpoints(own_run)] == [0, 16]
    (folder / "gone").rename(folder / "step8")
    assert runs.checkpoints(own_run) == before
    runs.write_run(replace(own_run, note="another"))
    listed = runs.checkpoints(runs.open_run(own_run.path))
    assert [checkpoint.step for checkpoint in listed] == [0, 8, 16] and {
        checkpoint.run.note for checkpoint in listed
    } == {"another"}


# === Untrusted folders ===


@pytest.mark.parametrize(
    "facts",
    [
        {"step": -1},
        {"step": 2**63},
        {"step": 8.0},
        {"tokens": -1},
        {"sequences": 10**30},
        {"sha256": {"../../run.json": "0" * 64}},
        {"sha256": {"/etc/hostname": "0" * 64}},
        {"sha256": {"model.safetensors": "no hash"}},
        {"sha256": {f"file{i}": "0" * 64 for i in range(300)}},
    ],
    ids=lambda facts: ascii(facts)[:40],
)
def test_manifest_out_of_bounds_is_reported(own_run: Run, facts: dict):
    """Counts are non-negative 64-bit integers; files are plain names with a hash each, and limited in number."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    runs.write_json(manifest, json.loads(manifest.read_text()) | facts)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "manifest.json is not valid" in runs.broken_checkpoints(own_run)[0][1]


def test_infinity_in_manifest_is_reported(own_run: Run):
    """Python's json module accepts Infinity, and int() of it once crashed every page."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"step": 8', '"step": Infinity'))
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "manifest.json is not valid" in runs.broken_checkpoints(own_run)[0][1]


def test_symlink_out_of_run_is_not_followed(own_run: Run, tmp_path):
    """A link in place of a checkpoint's folder or of its manifest breaks the checkpoint."""
    folder = own_run.path / "checkpoints" / "step8"
    outside = folder.rename(tmp_path / "outside")
    folder.symlink_to(outside)
    assert "leads out of" in runs.broken_checkpoints(own_run)[0][1]
    folder.unlink()
    folder.mkdir()
    (folder / "manifest.json").symlink_to(outside / "manifest.json")
    assert "leads out of" in runs.broken_checkpoints(own_run)[0][1]


def test_symlink_within_run_is_followed(own_run: Run):
    """Checkpoints may share a file that is stored once."""
    config = own_run.path / "checkpoints" / "step8" / "config.json"
    config.unlink()
    config.symlink_to("../step0/config.json")
    runs.verify(runs.checkpoint(own_run, 8))


def test_only_first_broken_checkpoints_are_named(own_run: Run):
    """A terminal or a page has no room for thousands of messages."""
    for step in range(100, 125):
        (own_run.path / "checkpoints" / f"step{step}").mkdir()
    *first, (_, last) = runs.broken_checkpoints(own_run)
    assert [path.name for path, _ in first] == [f"step{step}" for step in range(100, 110)]
    assert last == "15 more checkpoints of run 'tiny' cannot be read."


def test_duplicate_step_is_reported(own_run: Run):
    """A page would otherwise show one of the two folders in place of the other."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"step": 8', '"step": 16'))
    assert [c.path.name for c in runs.checkpoints(own_run)] == ["step0", "step16"]
    assert "has step 16, which step16 has too" in runs.broken_checkpoints(own_run)[0][1]


def test_number_of_folders_is_limited(own_run: Run, monkeypatch):
    """Folders beyond the limit are not read, and are reported in one message."""
    monkeypatch.setattr(manifests, "MAX_CHECKPOINTS", 2)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "has 3 folders (the maximum is 2)" in runs.broken_checkpoints(own_run)[0][1]
