"""Settings and fixtures of the fuzz tests: no damage may take long, take much memory, or make a file elsewhere be read.

EMBRYO_FUZZ is the number of folders, each damaged four times; each kind of file gets four times this number of damages,
2,000 for 500. EMBRYO_FUZZ_SEED is the first seed.
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
from embryo_core.evaluation import evaluate
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.app.conftest import (
    Dashboard,
    main_module,  # noqa: F401, a fixture: AppTest opens the pages here too
)
from tests.conftest import SAMPLE_DATA
from tests.tuned import store_questions

pa.set_cpu_count(1)  # like torch's threads: tests run in parallel

FOLDERS = int(os.environ.get("EMBRYO_FUZZ", "6"))
FIRST = int(os.environ.get("EMBRYO_FUZZ_SEED", "0"))
DAMAGES = 4  # for each folder
SEEDS = range(FIRST, FIRST + FOLDERS)
OF_A_KIND = range(FIRST, FIRST + DAMAGES * FOLDERS)  # a seed for each damage of a kind of file
SECONDS = 5  # CPU time that a command or page may take; it usually takes half a second
WAITING = 60  # seconds of wall-clock time, since other processes may run
GIGABYTE = 2**30 if sys.platform == "darwin" else 2**20  # in units of ru_maxrss
UNREAD = 0  # initial time of last access


@pytest.fixture(scope="session")
def sound(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with compacted and pending results and an example, after all imports and a first page."""
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
    """Copy a run and its results into a data folder under the name "bad"."""
    return tuple(Path(shutil.copytree(path, root / path.parent.name / "bad")) for path in (run.path, run.results))


@contextmanager
def watched(outside: Path) -> Iterator[None]:
    """Fail if the block takes too long, takes a gigabyte, or reads a file below the folder `outside`."""
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
