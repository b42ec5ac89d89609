"""Checkpoints come in the order of steps; whatever is wrong with one is reported, and the others stay."""

import json
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import UnknownStep
from embryo_core.runs import manifests
from embryo_core.types import Run


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
    with pytest.raises(UnknownStep, match=r"no checkpoint at step 9; the nearest is 8\. Known: 0, 8, 16\."):
        runs.checkpoint(tiny_run, 9)


def test_a_folder_still_being_written_is_no_checkpoint(own_run: Run):
    """Folders are written under a temporary name; one that a crash left behind is passed over."""
    (own_run.path / "checkpoints" / "step32.tmp").mkdir()
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 8, 16]
    assert runs.broken(own_run) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"step": 8}', '{"step": "eight", "sequences": 0, "tokens": 0}'])
def test_a_broken_manifest_is_reported_and_the_others_stay(own_run: Run, content: str):
    """Whatever manifest.json holds, the other checkpoints are listed and this one has a reason."""
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


def test_checkpoints_are_listed_anew_where_anything_changes(own_run: Run):
    """A folder more or less, a manifest written again, or another run.json; else they are the same objects."""
    before = runs.checkpoints(own_run)
    assert all(one is other for one, other in zip(before, runs.checkpoints(own_run), strict=True))
    folder = own_run.path / "checkpoints"
    (folder / "step8").rename(folder / "gone")
    assert [one.step for one in runs.checkpoints(own_run)] == [0, 16]
    (folder / "gone").rename(folder / "step8")
    assert runs.checkpoints(own_run) == before
    runs.write_run(replace(own_run, note="another"))
    listed = runs.checkpoints(runs.open_run(own_run.path))
    assert [one.step for one in listed] == [0, 8, 16] and {one.run.note for one in listed} == {"another"}


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
def test_a_manifest_beyond_its_bounds_is_reported(own_run: Run, facts: dict):
    """Counts are within 64 bits and not negative; names are plain file names with the hash of each, and few."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    runs.write_json(manifest, json.loads(manifest.read_text()) | facts)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "manifest.json is not valid" in runs.broken(own_run)[0][1]


def test_infinity_in_a_manifest_is_reported(own_run: Run):
    """Python's json reads it as a number; it is none, and int() of it ended every page."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"step": 8', '"step": Infinity'))
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "manifest.json is not valid" in runs.broken(own_run)[0][1]


def test_a_link_out_of_the_run_is_not_followed(own_run: Run, tmp_path):
    """Neither for a file nor for a whole folder of a checkpoint."""
    folder = own_run.path / "checkpoints" / "step8"
    outside = folder.rename(tmp_path / "outside")
    folder.symlink_to(outside)
    assert "leads out of" in runs.broken(own_run)[0][1]
    folder.unlink()
    folder.mkdir()
    (folder / "manifest.json").symlink_to(outside / "manifest.json")
    assert "leads out of" in runs.broken(own_run)[0][1]


def test_a_link_within_the_run_is_followed(own_run: Run):
    """Files that two checkpoints share may be stored once."""
    config = own_run.path / "checkpoints" / "step8" / "config.json"
    config.unlink()
    config.symlink_to("../step0/config.json")
    runs.verify(runs.checkpoint(own_run, 8))


def test_of_many_broken_checkpoints_the_first_are_named(own_run: Run):
    """A terminal and a page have no room for sixteen thousand sentences."""
    for step in range(100, 125):
        (own_run.path / "checkpoints" / f"step{step}").mkdir()
    *first, (_, last) = runs.broken(own_run)
    assert [path.name for path, _ in first] == [f"step{step}" for step in range(100, 110)]
    assert last == "15 more checkpoints of run 'tiny' cannot be read."


def test_a_step_is_that_of_one_folder(own_run: Run):
    """A second folder with the step of another is reported, as a page would show one of them in place of the other."""
    manifest = own_run.path / "checkpoints" / "step8" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"step": 8', '"step": 16'))
    assert [c.path.name for c in runs.checkpoints(own_run)] == ["step0", "step16"]
    assert "has step 16, which step16 has too" in runs.broken(own_run)[0][1]


def test_a_flood_of_folders_is_reported(own_run: Run, monkeypatch):
    """Folders beyond a limit are not read, and are reported as one."""
    monkeypatch.setattr(manifests, "MAX_CHECKPOINTS", 2)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "has 3 folders, and 2 are read" in runs.broken(own_run)[0][1]
