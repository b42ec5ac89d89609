"""How many folders are damaged, and what no damage may do: take long, take memory, or lead to a file elsewhere.

EMBRYO_FUZZ is the number of folders, each damaged four times, and as many damages has each kind of file: 2,000 of 500.
EMBRYO_FUZZ_SEED is the first seed.
"""

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from embryo_core import results, runs
from embryo_core.cli import main
from embryo_core.errors import EmbryoError
from embryo_core.evaluate import evaluate
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.app.conftest import (
    Dashboard,
    main_module,  # noqa: F401, a fixture: AppTest opens the pages here too
)
from tests.conftest import SAMPLE_DATA
from tests.tuned import store_questions

pa.set_cpu_count(1)  # as torch's threads: the tests run side by side

FOLDERS = int(os.environ.get("EMBRYO_FUZZ", "6"))
FIRST = int(os.environ.get("EMBRYO_FUZZ_SEED", "0"))
DAMAGES = 4  # of each folder
SEEDS = range(FIRST, FIRST + FOLDERS)
OF_A_KIND = range(FIRST, FIRST + DAMAGES * FOLDERS)  # a seed for each damage of a kind of file
SECONDS = 5  # of computing that a command or a page may take; it takes half of one
WAITING = 60  # seconds by the clock: other processes may compute meanwhile
GIGABYTE = 2**30 if sys.platform == "darwin" else 2**20  # in the unit of ru_maxrss
UNREAD = 0  # time of the last access, before


@pytest.fixture(scope="session")
def sound(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with results in tables and in parts, and an example, after imports and a first page."""
    root = shutil.copytree(tiny_results.path.parents[1], tmp_path_factory.mktemp("sound") / "data")
    run = runs.read_run(root / "runs" / tiny_results.name)
    store_questions(run)
    results.compact(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "compact", lambda _: None)
        evaluate(run, SAMPLE_DATA, ["mask_prediction", "world_knowledge"], steps=[16], overwrite=True)
    results.write_examples(run, [ExampleQuestion("The [MASK] runs .", "river", 8)])
    main(["audit", str(run.path)])
    main(["query", str(run.path), "The [MASK] runs ."])
    Dashboard().open("overview")
    return run


def copy_as_bad(run: Run, root: Path) -> tuple[Path, Path]:
    """Copy a run and one of its results, below a folder of data, under the name "bad"."""
    return tuple(Path(shutil.copytree(path, root / path.parent.name / "bad")) for path in (run.path, run.results))


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
    """Return what a call returns, or None if it raises an EmbryoError whose message can be printed."""
    try:
        return call(*arguments)
    except EmbryoError as error:
        message = str(error)
    assert message.isprintable(), message
