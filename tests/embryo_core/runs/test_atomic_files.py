"""Tests of atomic writes, in which files are complete or absent, and of locks, held by one process at a time."""

import hashlib
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.errors import BusyRun, EmbryoError
from embryo_core.runs import locked

# === Files ===


def test_json_is_replaced_atomically(tmp_path):
    """A write replaces the old file and leaves no temporary one."""
    for content in ({"a": 1}, {"b": [2]}):
        runs.write_json(tmp_path / "new" / "card.json", content)
    assert json.loads((tmp_path / "new" / "card.json").read_text()) == {"b": [2]}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["card.json"]


def test_folder_is_replaced_as_a_whole(tmp_path):
    """No file of the old folder is kept, and no temporary folder is left."""
    for names in (("run.json", "log.jsonl"), ("log.jsonl", "audit.json")):
        with runs.replacing(tmp_path / "folder") as temporary:
            temporary.mkdir()
            for name in names:
                (temporary / name).write_text(name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["audit.json", "folder", "log.jsonl"]


def test_failed_write_keeps_old_file(tmp_path):
    """An error during writing leaves no partial file, either."""
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(OSError, match="full"), runs.replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("ne")
        raise OSError("full")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_leftovers_of_killed_writer_are_removed(tmp_path):
    """A partial file or folder under the temporary name does not hinder the next writer."""
    (tmp_path / "a.tmp").mkdir()
    (tmp_path / "a.tmp" / "model.safetensors").write_text("x")
    (tmp_path / "a.old.tmp").mkdir()
    with runs.replacing(tmp_path / "a") as temporary:
        temporary.mkdir()
    (tmp_path / "b.tmp").write_text("ha")
    with runs.replacing(tmp_path / "b") as temporary:
        temporary.write_text("whole")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b"]


@pytest.mark.parametrize("name", ["a", "a.tmp", "a.old.tmp"])
@pytest.mark.parametrize("inside", ["precious.txt", "parts/precious.npy"])
def test_unknown_file_is_never_removed(tmp_path, name, inside):
    """A folder with an unknown file is kept, whether it is temporary or not, and nothing is written."""
    precious = tmp_path / name / inside
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    (tmp_path / name / "run.json").write_text("{}")
    with pytest.raises(EmbryoError, match=precious.name), runs.replacing(tmp_path / "a") as temporary:
        temporary.mkdir()
    assert precious.read_text() == "mine" and (tmp_path / name / "run.json").exists()


def test_unknown_file_created_during_write_is_kept(tmp_path):
    """The old folder is then kept, too."""
    (tmp_path / "a").mkdir()
    with pytest.raises(EmbryoError, match=r"notes\.md"), runs.replacing(tmp_path / "a") as temporary:
        temporary.mkdir()
        (tmp_path / "a" / "notes.md").write_text("mine")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "notes.md"]


def test_folder_moved_aside_by_killed_writer_is_restored(tmp_path):
    """It is restored before the next write, which may fail."""
    (tmp_path / "a.old.tmp").mkdir()
    (tmp_path / "a.old.tmp" / "run.json").write_text("old")
    with pytest.raises(OSError, match="full"), runs.replacing(tmp_path / "a"):
        raise OSError("full")
    assert (tmp_path / "a" / "run.json").read_text() == "old" and not (tmp_path / "a.old.tmp").exists()


def test_path_and_open_file_are_hashed_by_content(tmp_path):
    """An open lzma file is hashed after decompression, so that compressed data have the hash of their content."""
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"content"))
    with lzma.open(tmp_path / "a.xz") as file:
        assert runs.sha256(file) == hashlib.sha256(b"content").hexdigest()
    assert runs.sha256(tmp_path / "a.xz") == hashlib.sha256((tmp_path / "a.xz").read_bytes()).hexdigest()


# === Locks ===


HOLD = """import sys, time; from pathlib import Path; from embryo_core.runs import locked
with locked(Path(sys.argv[1])):
"""


def holder(folder: Path) -> subprocess.Popen:
    """Start a process that holds the lock on a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD + "    print('held', flush=True); time.sleep(600)", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_lock_held_by_another_process_is_reported(tmp_path: Path):
    """Once the other process is killed, the lock is free."""
    process = holder(tmp_path / "run")
    try:
        with pytest.raises(BusyRun, match="busy"), locked(tmp_path / "run", BusyRun("busy")):
            pytest.fail("held twice")
    finally:
        process.kill()
        process.wait()
    with locked(tmp_path / "run", BusyRun("busy")):
        pass


def test_error_inside_lock_is_not_taken_for_busy(tmp_path: Path):
    """A BlockingIOError raised by the block passes through."""
    with pytest.raises(BlockingIOError, match="pipe"), locked(tmp_path, BusyRun("busy")):
        raise BlockingIOError("pipe")
