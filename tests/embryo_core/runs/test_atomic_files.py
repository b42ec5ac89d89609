"""Files are whole or absent, and a lock is held by one process at a time."""

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


def test_json_is_replaced_whole(tmp_path):
    """A write leaves no temporary file and replaces what was there."""
    for content in ({"a": 1}, {"b": [2]}):
        runs.write_json(tmp_path / "new" / "card.json", content)
    assert json.loads((tmp_path / "new" / "card.json").read_text()) == {"b": [2]}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["card.json"]


def test_a_folder_takes_the_place_of_another(tmp_path):
    """None of its files is that of the old one, and nothing else is left."""
    for names in (("run.json", "log.jsonl"), ("log.jsonl", "audit.json")):
        with runs.replacing(tmp_path / "folder") as temporary:
            temporary.mkdir()
            for name in names:
                (temporary / name).write_text(name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["audit.json", "folder", "log.jsonl"]


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
def test_a_file_of_somebody_else_is_never_removed(tmp_path, name, inside):
    """Whatever the folder is called; nothing is written then."""
    precious = tmp_path / name / inside
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    (tmp_path / name / "run.json").write_text("{}")
    with pytest.raises(EmbryoError, match=precious.name), runs.replacing(tmp_path / "a") as temporary:
        temporary.mkdir()
    assert precious.read_text() == "mine" and (tmp_path / name / "run.json").exists()


def test_a_file_that_comes_while_a_folder_is_written_stays(tmp_path):
    """The old folder stays then."""
    (tmp_path / "a").mkdir()
    with pytest.raises(EmbryoError, match=r"notes\.md"), runs.replacing(tmp_path / "a") as temporary:
        temporary.mkdir()
        (tmp_path / "a" / "notes.md").write_text("mine")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "notes.md"]


def test_a_folder_that_a_killed_writer_had_moved_aside_comes_back(tmp_path):
    """Before the next one is written, which may fail."""
    (tmp_path / "a.old.tmp").mkdir()
    (tmp_path / "a.old.tmp" / "run.json").write_text("old")
    with pytest.raises(OSError, match="full"), runs.replacing(tmp_path / "a"):
        raise OSError("full")
    assert (tmp_path / "a" / "run.json").read_text() == "old" and not (tmp_path / "a.old.tmp").exists()


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
