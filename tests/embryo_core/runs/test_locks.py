"""A lock is held by one at a time; the others wait or are refused, and it goes with its process."""

import subprocess
import sys
from pathlib import Path

import pytest

from embryo_core.errors import BusyRun
from embryo_core.runs import locked

HOLD = """import sys, time; from pathlib import Path; from embryo_core.runs import locked
with locked(Path(sys.argv[1])):
"""


def holder(folder: Path) -> subprocess.Popen:
    """A process that holds the lock on a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD + "    print('held', flush=True); time.sleep(600)", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_reported(tmp_path: Path):
    """While another process holds the lock; afterwards it is free, though nobody released it."""
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
