"""Weights elsewhere are found by the user's own list, and a damaged list is reported as what it is."""

import json
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenList
from embryo_core.types import Run


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of this user's added runs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings" / "embryo" / "added.json"


@pytest.fixture
def pointing(own_run: Run, tmp_path: Path, added: Path) -> Run:
    """The run whose step 8 has its weights in a folder elsewhere, from which this user added it."""
    folder = own_run.path / "checkpoints" / "step8"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "model.safetensors").rename(elsewhere / "model.safetensors")
    manifest = json.loads((folder / "manifest.json").read_text())
    sha256 = manifest["sha256"].pop("model.safetensors")
    manifest["weights"] = {"file": str(elsewhere / "model.safetensors"), "sha256": sha256}
    runs.write_json(folder / "manifest.json", manifest)
    runs.allow(own_run.path, [str(elsewhere)])
    return own_run


@pytest.mark.parametrize("content", ["", "5", '{"a": 5}', "[" * 100_000])
def test_a_damaged_list_names_its_own_remedy(pointing: Run, added: Path, content: str):
    """The step is not at fault: nobody is told to train it again. Steps with weights of their own are as ever."""
    runs.verify(runs.checkpoint(pointing, 8))
    added.write_text(content)
    ((path, reason),) = runs.broken(pointing)
    assert path.name == "step8" and str(added) in reason
    assert "python -m embryo_core add SOURCE --name NAME" in reason and "train this step" not in reason
    assert [found.step for found in runs.checkpoints(pointing)] == [0, 16]
    with pytest.raises(BrokenList, match="remove it, and add its runs again"):
        runs.allow(pointing.path, [])


def test_without_a_list_nothing_elsewhere_is_read(pointing: Run, added: Path):
    """The sentence says how the run is added."""
    added.unlink()
    ((_, reason),) = runs.broken(pointing)
    assert "this user did not add the run" in reason and f"--name {pointing.name}" in reason
