"""Files are whole or absent, and a lock is held by one process at a time."""

import hashlib
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.errors import BusyRun
from embryo_core.runs import locked

# === Files ===


def test_json_is_replaced_whole(tmp_path):
    """A write leaves no temporary file and replaces what was there."""
    for content in ({"a": 1}, {"b": [2]}):
        runs.write_json(tmp_path / "new" / "card.json", content)
    assert json.loads((tmp_path / "new" / "card.json").read_text()) == {"b": [2]}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["card.json"]


def test_a_folder_takes_the_place_of_another(tmp_path):
    """None of its files is that of the old one, and nothing else is left."""
    for names in (("a", "b"), ("b", "c")):
        with runs.replacing(tmp_path / "folder") as temporary:
            temporary.mkdir()
            for name in names:
                (temporary / name).write_text(name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["b", "c", "folder"]


def test_what_fails_leaves_what_was_there(tmp_path):
    """An error in the middle of writing keeps the old file and no other."""
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(OSError, match="full"), runs.replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("ne")
        raise OSError("full")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    """Half a file or half a folder under the temporary name is no hindrance to the next writer."""
    (tmp_path / "a.tmp").mkdir()
    (tmp_path / "a.tmp" / "half").write_text("x")
    (tmp_path / "a.old.tmp").mkdir()
    with runs.replacing(tmp_path / "a") as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_hash_is_of_a_file_or_of_what_an_open_one_holds(tmp_path):
    """So that compressed data have the hash of their content."""
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"content"))
    with lzma.open(tmp_path / "a.xz") as file:
        assert runs.sha256(file) == hashlib.sha256(b"content").hexdigest()
    assert runs.sha256(tmp_path / "a.xz") == hashlib.sha256((tmp_path / "a.xz").read_bytes()).hexdigest()


# === Locks ===


HOLD = """import sys, time; from pathlib import Path; from embryo_core.runs import locked
with locked(Path(sys.argv[1])):
"""


def holder(folder: Path) -> subprocess.Popen:
    """Return a process that holds the lock on a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD + "    print('held', flush=True); time.sleep(600)", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_reported(tmp_path: Path):
    """While another process holds the lock; once that process is killed, the lock is free."""
    process = holder(tmp_path / "run")
    try:
        with pytest.raises(BusyRun, match="busy"), locked(tmp_path / "run", BusyRun("busy")):
            pytest.fail("held twice")
    finally:
        process.kill()
        process.wait()
    with locked(tmp_path / "run", BusyRun("busy")):
        pass


def test_an_error_inside_is_not_taken_for_a_busy_folder(tmp_path: Path):
    """What the block raises passes through."""
    with pytest.raises(BlockingIOError, match="pipe"), locked(tmp_path, BusyRun("busy")):
        raise BlockingIOError("pipe")
