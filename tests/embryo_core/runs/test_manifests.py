"""Checkpoints come in the order of steps; whatever is wrong with one is reported, and the others stay."""

import json
import os
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, UnknownStep
from embryo_core.runs import log_grid, manifests, reading
from embryo_core.types import Run


def test_the_step_grid_is_dense_where_function_words_are_learned():
    """Zero, powers of two below the spacing, then the regular grid and the last step."""
    assert runs.step_grid(100, 25) == (0, 1, 2, 4, 8, 16, 25, 50, 75, 100)
    assert runs.step_grid(10, 1000) == (0, 1, 2, 4, 8, 10)


def test_a_grid_of_more_steps_than_there_are_has_each_once():
    """However many are asked for: they are not counted through."""
    assert log_grid(5, 10**18) == (1, 2, 3, 4, 5)
    assert log_grid(0, 4) == ()
    assert log_grid(8, 1) == (1, 2, 4, 8)


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


# === Folders from strangers ===


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


@pytest.mark.parametrize(
    "sizes",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 0},
        {"hidden_size": 33},
        {"num_hidden_groups": 3},
        {"vocab_size": -1},
        {"vocab_size": "700"},
        {"vocab_size": 2**22, "embedding_size": 2**10},
        {"layer_norm_eps": 0},
        {"model_type": None},
    ],
    ids=lambda sizes: ascii(sizes)[:40],
)
def test_absurd_sizes_are_refused(own_run: Run, sizes: dict):
    """A billion layers would keep every core busy for good: config.json is bounded before anything is built of it."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = checkpoint.path / "config.json"
    runs.write_json(config, json.loads(config.read_text()) | sizes)
    for read in (lambda found: runs.read_config(found, runs.Architecture), runs.verify):
        with pytest.raises(BrokenCheckpoint, match=r"config\.json is not valid"):
            read(checkpoint)


def test_a_sparse_file_is_not_hashed(own_run: Run, monkeypatch):
    """Twenty gigabytes of holes are more than config.json has tensors for, and are refused unread."""
    checkpoint = runs.checkpoint(own_run, 8)
    os.truncate(checkpoint.path / "model.safetensors", 20 * 10**9)
    with pytest.raises(BrokenCheckpoint, match="20,000,000,000 bytes, and at most"):
        runs.verify(checkpoint)


def test_a_file_extended_by_holes_is_not_hashed(own_run: Run, monkeypatch):
    """Its header says how long it is."""
    checkpoint = runs.checkpoint(own_run, 8)
    weights = checkpoint.path / "model.safetensors"
    os.truncate(weights, weights.stat().st_size + 2**20)
    monkeypatch.setattr(manifests, "digest", lambda *_: pytest.fail("hashed"))
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


def test_a_file_is_hashed_once(own_run: Run, monkeypatch):
    """The hash is that of an inode, time and size: a second look reads nothing, a changed file is read again."""
    checkpoint = runs.checkpoint(own_run, 8)
    hashed = []
    monkeypatch.setattr(reading, "sha256", lambda path: hashed.append(path.name) or runs.sha256(path))
    for _ in range(3):
        runs.verify(checkpoint)
    assert sorted(hashed) == ["config.json", "model.safetensors"]
    weights = checkpoint.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            {"a": {"dtype": "F32", "shape": [1, 2**50], "data_offsets": [0, 2**52]}},
            "does not have the tensors of its header",
        ),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, "is not valid"),
        ({"a": {"dtype": "F8", "shape": [4], "data_offsets": [0, 4]}}, "does not have the tensors of its header"),
        ({"a": {"dtype": "F16", "shape": [2**18], "data_offsets": [0, 2**19]}}, "config.json makes it"),
        ({}, "does not have the tensors of its header"),
    ],
    ids=("larger than the file", "negative", "of unknown type", "more than config.json", "none"),
)
def test_tensors_are_checked_before_memory_is_taken(own_run: Run, header: dict, message: str):
    """Of a file whose hash is right, the header describes every byte, and no more tensors than config.json has."""
    checkpoint = runs.checkpoint(own_run, 8)
    text = json.dumps(header).encode()
    weights = len(text).to_bytes(8, "little") + text + bytes(2**19 if message.startswith("config") else 4)
    (checkpoint.path / "model.safetensors").write_bytes(weights)
    runs.write_manifest(checkpoint.path, 8, 0, 0)
    with pytest.raises(BrokenCheckpoint, match=message):
        runs.verify(checkpoint)


def test_weights_that_the_manifest_does_not_name_are_refused(own_run: Run):
    """A file that nobody has hashed is not loaded."""
    checkpoint = runs.checkpoint(own_run, 8)
    manifest = json.loads((checkpoint.path / "manifest.json").read_text())
    del manifest["sha256"]["model.safetensors"]
    runs.write_json(checkpoint.path / "manifest.json", manifest)
    with pytest.raises(BrokenCheckpoint, match=r"does not name model\.safetensors"):
        runs.verify(checkpoint)


def test_a_flood_of_folders_is_reported(own_run: Run, monkeypatch):
    """Only so many folders are read, and the rest are reported as one."""
    monkeypatch.setattr(manifests, "MOST", 2)
    assert [c.step for c in runs.checkpoints(own_run)] == [0, 16]
    assert "has 3 folders, and 2 are read" in runs.broken(own_run)[0][1]


def test_a_config_is_parsed_once_until_it_is_another(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """What may be changed by who asked is parsed each time; one that goes is missed at once."""
    checkpoint, parsed = runs.checkpoint(own_run, 8), []
    read = manifests.read_json
    monkeypatch.setattr(manifests, "read_json", lambda path, *more: parsed.append(path) or read(path, *more))
    first, second = (runs.read_config(checkpoint, runs.Architecture) for _ in range(2))
    assert first is second and len(parsed) == 1
    assert runs.read_config(checkpoint, dict) is not runs.read_config(checkpoint, dict) and len(parsed) == 3
    path = checkpoint.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 12345}))
    assert runs.read_config(checkpoint, runs.Architecture).vocab_size == 12345
    path.unlink()
    with pytest.raises(BrokenCheckpoint, match="config.json does not exist"):
        runs.read_config(checkpoint, runs.Architecture)
