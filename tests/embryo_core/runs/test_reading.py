"""Files of a run are regular, inside its folder and of a bounded size, or they are refused before they are opened."""

import os
from pathlib import Path

import pytest

from embryo_core.errors import BrokenRun
from embryo_core.runs import reading


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path):
    """Mode 000 is an error of ours with the system's reason."""
    (tmp_path / "run.json").touch(mode=0)
    with pytest.raises(BrokenRun, match=r"run\.json cannot be read: Permission denied"):
        reading.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/tty", ".", "pipe"])
def test_what_is_no_regular_file_is_never_opened(tmp_path: Path, monkeypatch, target: str):
    """Devices, folders and pipes are told apart by their state alone."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.json").symlink_to(target)
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(BrokenRun):
        reading.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_a_file_above_its_limit_is_not_read(tmp_path: Path):
    """The limit is that of the file's name."""
    (tmp_path / "run.json").touch()
    os.truncate(tmp_path / "run.json", reading.LIMITS["run.json"] + 1)
    with pytest.raises(BrokenRun, match="and at most 4,194,304 are read"):
        reading.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_a_folder_above_is_no_part_of_the_run(tmp_path: Path):
    """A path that climbs out of the folder is refused, even to a folder whose name begins alike."""
    (tmp_path / "run").mkdir()
    (tmp_path / "runner.json").write_text("{}")
    with pytest.raises(BrokenRun, match="leads out of"):
        reading.read_bytes(tmp_path / "run" / ".." / "runner.json", tmp_path / "run", BrokenRun)
