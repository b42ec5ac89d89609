"""How many folders are damaged, and what no damage may do: take long, take memory, or lead to a file elsewhere."""

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from embryo_core.errors import EmbryoError
from tests.app.conftest import main_module  # noqa: F401, a fixture: AppTest opens the pages here too

FOLDERS = int(os.environ.get("EMBRYO_FUZZ", "6"))
DAMAGES = 4  # of each folder
SECONDS = 5  # of computing that a command or a page may take; it takes half of one
WAITING = 60  # seconds by the clock: others may compute beside the tests
GIGABYTE = 2**30 if sys.platform == "darwin" else 2**20  # in the unit of ru_maxrss
UNREAD = 0  # time of the last access, before


@contextmanager
def watched(outside: Path) -> Iterator[None]:
    """Fail where the block takes too long, takes a gigabyte, or reads a file below the folder `outside`."""
    for path in _files(outside):
        os.utime(path, (UNREAD, path.stat().st_mtime))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _timed(signal.SIGPROF, signal.ITIMER_PROF, SECONDS), _timed(signal.SIGALRM, signal.ITIMER_REAL, WAITING):
        yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < GIGABYTE
    assert not [path for path in _files(outside) if path.stat().st_atime != UNREAD]


@contextmanager
def _timed(number: int, clock: int, seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(number, give_up)
    signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(number, before)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def attempt(call: Callable, *arguments: object) -> object:
    """What a call returns, or None where it raises an error of ours, whose message can be printed."""
    try:
        return call(*arguments)
    except EmbryoError as error:
        assert str(error).isprintable(), str(error)
