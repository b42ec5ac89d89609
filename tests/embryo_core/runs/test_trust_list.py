"""Tests of EMBRYO_TRUSTED=listed: a server then shows only runs whose files have the hashes that their owner listed."""

import json
import os
import shutil
from collections.abc import Callable

import pytest

from embryo_core import runs
from embryo_core.cli import main
from embryo_core.errors import BrokenRun
from embryo_core.types import Run


@pytest.fixture
def listed_run(tiny_results: Run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run with results that its owner listed, in an environment with EMBRYO_TRUSTED=listed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    root = shutil.copytree(tiny_results.path.parents[1], tmp_path / "data")
    monkeypatch.setenv("EMBRYO_DATA", str(root))
    monkeypatch.setenv("EMBRYO_TRUSTED", "listed")
    assert main(["trust", "tiny"]) == 0
    return runs.open_run("tiny")


def test_trust_writes_list_outside_of_run(listed_run: Run, tmp_path, capsys):
    """Files are listed by their path below the root with their hash; weights are covered by the manifests."""
    assert main(["trust", "tiny"]) == 0
    path = tmp_path / "settings" / "embryo" / "trusted.json"
    listing = json.loads(path.read_text())["tiny"]
    assert str(path) in capsys.readouterr().out
    assert listing["runs/tiny/run.json"] == runs.sha256(listed_run.path / "run.json")
    assert listing["results/tiny/scores.parquet"] == runs.sha256(listed_run.results / "scores.parquet")
    assert not [name for name in listing if name.endswith("safetensors")]


def test_unlisted_run_is_not_opened(listed_run: Run):
    """The message says how to list it; the listed run next to it is shown."""
    other = shutil.copytree(listed_run.path, listed_run.path.with_name("other"))
    assert runs.list_runs() == [listed_run]
    [(path, reason)] = runs.broken_runs()
    assert path == other and "not in the list" in reason
    with pytest.raises(BrokenRun, match="trust other"):
        runs.open_run("other")


def _change(run: Run) -> str:
    state, path = os.stat(run.path / "log.jsonl"), run.path / "log.jsonl"
    path.write_bytes(b" " + path.read_bytes()[1:])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return "log.jsonl"


def _remove(run: Run) -> str:
    (run.results / "scores.parquet").unlink()
    return "scores.parquet"


def _add(run: Run) -> str:
    (run.path / "checkpoints" / "step99").mkdir()
    (run.path / "checkpoints" / "step99" / "manifest.json").write_text("{}")
    return "step99/manifest.json"


@pytest.mark.parametrize("change", [_change, _remove, _add])
def test_run_with_changed_files_is_not_opened(listed_run: Run, change: Callable[[Run], str], monkeypatch):
    """A changed (time and size kept), removed or added file is named; without EMBRYO_TRUSTED the run is listed."""
    name = change(listed_run)
    for seen in (lambda: runs.open_run("tiny"), lambda: runs.open_run(listed_run.path)):
        with pytest.raises(BrokenRun, match=f"{name} is not the listed file"):
            seen()
    assert runs.list_runs() == []
    monkeypatch.delenv("EMBRYO_TRUSTED")
    assert runs.list_runs() == [listed_run]


def test_run_with_symlink_cannot_be_listed(listed_run: Run, capsys):
    """The target of a link may change while the files of the run stay the same."""
    (listed_run.path / "log.jsonl").rename(listed_run.path.parent / "log.jsonl")
    (listed_run.path / "log.jsonl").symlink_to(listed_run.path.parent / "log.jsonl")
    assert main(["trust", "tiny"]) == 2
    assert "is a link" in capsys.readouterr().err
    assert runs.list_runs() == []
