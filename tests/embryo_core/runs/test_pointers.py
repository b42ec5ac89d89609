"""Tests of weights outside of a run, which are read only from folders in the user's list."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, BrokenUserList
from embryo_core.types import Run


@pytest.fixture
def list_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the list of this user's added runs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings" / "embryo" / "added.json"


@pytest.fixture
def pointing(own_run: Run, tmp_path: Path, list_path: Path) -> Run:
    """Return a run whose step 8 has its weights in another folder, from which this user added it."""
    folder = own_run.path / "checkpoints" / "step8"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "model.safetensors").rename(elsewhere / "model.safetensors")
    manifest = json.loads((folder / "manifest.json").read_text())
    sha256 = manifest["sha256"].pop("model.safetensors")
    manifest["weights"] = {"file": str(elsewhere / "model.safetensors"), "sha256": sha256}
    runs.write_json(folder / "manifest.json", manifest)
    runs.record_added(own_run.path, [str(elsewhere)])
    return own_run


@pytest.mark.parametrize("content", ["", "5", '{"a": 5}', "[" * 100_000])
def test_damaged_list_explains_its_repair(pointing: Run, list_path: Path, content: str):
    """The message does not advise to train the step again; other steps are not affected."""
    runs.verify(runs.checkpoint(pointing, 8))
    list_path.write_text(content)
    ((path, reason),) = runs.broken_checkpoints(pointing)
    assert path.name == "step8" and str(list_path) in reason
    assert "python -m embryo_core add SOURCE --name NAME" in reason and "train this step" not in reason
    assert [checkpoint.step for checkpoint in runs.checkpoints(pointing)] == [0, 16]
    with pytest.raises(BrokenUserList, match="remove it, and add its runs again"):
        runs.record_added(pointing.path, [])


def test_concurrent_adds_are_both_recorded(list_path: Path, tmp_path: Path):
    """The second waits until the first has written the list."""
    with ThreadPoolExecutor(1) as other:
        with runs.locked(list_path.parent):
            second = other.submit(runs.record_added, tmp_path / "second", ["hf:me/second"])
            with pytest.raises(TimeoutError):
                second.result(0.5)
            runs.write_json(list_path, {str(tmp_path / "first"): []})
        second.result(60)
    assert runs.was_added(tmp_path / "first") and runs.was_added(tmp_path / "second")


def test_external_weights_are_refused_without_list(pointing: Run, list_path: Path):
    """The message says how to add the run."""
    list_path.unlink()
    ((_, reason),) = runs.broken_checkpoints(pointing)
    assert "this user did not add the run" in reason and f"--name {pointing.name}" in reason


NAMES = ["my weights.safetensors", "Gewichte – größte.safetensors", ".weights", "-rf", "<b>&'\"[x](y)", "w" * 255]


@pytest.mark.parametrize("name", NAMES)
def test_weights_may_have_any_valid_file_name(pointing: Run, tmp_path: Path, name: str):
    """Spaces, punctuation, letters outside of ASCII and the full length of 255 bytes are accepted."""
    rename(pointing, tmp_path / "elsewhere" / name)
    runs.verify(runs.checkpoint(pointing, 8))
    assert runs.broken_checkpoints(pointing) == []


@pytest.mark.parametrize("name", ["..", "", "a\nb", "a\0b", "\x1b[2J", "w" * 256, "\x85"])
def test_invalid_file_name_of_weights_is_reported(pointing: Run, tmp_path: Path, name: str):
    """The folder is in the user's list; only the name is invalid."""
    point(pointing, f"{tmp_path}/elsewhere/{name}" if name else "/")
    ((_, reason),) = runs.broken_checkpoints(pointing)
    assert "manifest.json is not valid" in reason and reason.isprintable()


def test_path_cannot_leave_listed_folders(pointing: Run, tmp_path: Path):
    """A path outside, a path with `..` and a symlink next to the weights are refused."""
    secret = tmp_path / "a secret"
    secret.write_text("secret")
    point(pointing, str(secret))
    ((_, reason),) = runs.broken_checkpoints(pointing)
    assert "this user did not add the run from there" in reason
    point(pointing, f"{tmp_path}/elsewhere/../a secret")
    ((_, reason),) = runs.broken_checkpoints(pointing)
    assert "this user did not add the run from there" in reason
    (tmp_path / "elsewhere" / "a link").symlink_to(secret)
    point(pointing, f"{tmp_path}/elsewhere/a link")
    with pytest.raises(BrokenCheckpoint, match="is a link that leads out of"):
        runs.verify(runs.checkpoint(pointing, 8))


def rename(run: Run, path: Path) -> None:
    """Rename the weights of step 8 and update the manifest."""
    (path.parent / "model.safetensors").rename(path)
    point(run, str(path))


def point(run: Run, path: str) -> None:
    """Make the manifest of step 8 point to a file."""
    manifest = run.path / "checkpoints" / "step8" / "manifest.json"
    content = json.loads(manifest.read_text())
    runs.write_json(manifest, content | {"weights": content["weights"] | {"file": path}})
