"""Run folders with random damages never give a traceback, hang, or lead to a file outside the run.

EMBRYO_FUZZ is the number of folders, each damaged four times (default 12; `make fuzz` takes 500).
"""

import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.cli import main
from embryo_core.errors import EmbryoError
from tests.embryo_core.runs.damage import damage, make_run

FOLDERS = int(os.environ.get("EMBRYO_FUZZ", "12"))
DAMAGES = 4  # of each folder
SECONDS = 5  # that reading one folder may take; it takes a tenth of one
GIGABYTE = 2**30 if sys.platform == "darwin" else 2**20  # in the unit of ru_maxrss
opened: list[str] = []  # files that Python opened since `watched` began
watching: list[bool] = []


def _note_opened(event: str, arguments: tuple) -> None:
    if watching and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        opened.append(os.path.realpath(os.fsdecode(arguments[0])))


sys.addaudithook(_note_opened)


@contextmanager
def watched(outside: Path) -> Iterator[None]:
    """Fail where the block takes too long, takes a gigabyte, or opens a file in the folder `outside`."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"reading the folder took more than {SECONDS} s")

    before, memory = signal.signal(signal.SIGALRM, give_up), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.alarm(SECONDS)
    opened.clear()
    watching.append(True)
    try:
        yield
    finally:
        watching.clear()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < GIGABYTE
    assert not [path for path in opened if Path(path).is_relative_to(outside)]


def attempt(call: Callable, *arguments: object) -> object:
    """What a call returns, or None where it raises an error of ours, whose message can be printed."""
    try:
        return call(*arguments)
    except EmbryoError as error:
        assert str(error).isprintable()


def read_all(folder: Path) -> None:
    """Ask everything that `runs` can tell of a run's folder."""
    attempt(runs.open_run, folder)
    for run in runs.list_runs():
        attempt(runs.read_log, run)
        attempt(runs.damaged_lines, run)
        attempt(runs.read_ranks, run.path / "frequencies.tsv")
        attempt(runs.check_tokenizer, run)
        for checkpoint in runs.checkpoints(run):
            attempt(runs.verify, checkpoint)
        assert all(reason.isprintable() for _, reason in runs.broken(run))
    assert all(reason.isprintable() for _, reason in runs.broken_runs())


@pytest.mark.parametrize("seed", range(FOLDERS))
def test_damaged_folders_harm_nobody(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Whatever is wrong with one run, it is told in sentences, and the sound run beside it is listed."""
    rng = random.Random(seed)
    data, outside = tmp_path / "data", tmp_path / "outside"
    sound, bad, same = make_run(data, 1_000_000), make_run(data, seed), make_run(outside, seed)
    monkeypatch.setenv("EMBRYO_DATA", str(data))
    done = [damage(bad, same, rng) for _ in range(DAMAGES)]
    with watched(outside):
        read_all(bad.path)
        assert sound.name in [run.name for run in runs.list_runs()], done
        assert main(["runs"]) in (0, 1), done
    assert f"{sound.name}  bert, 2 checkpoints, steps 0 to 8" in capsys.readouterr().out, done


def test_a_sound_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the seeds damage is sound before: every checkpoint is verified, every line read."""
    run = make_run(tmp_path, 1)
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert runs.list_runs() == [run] and not runs.broken_runs() and not runs.broken(run)
    assert len(runs.read_log(run)) == 8 and not runs.damaged_lines(run)
    assert runs.read_ranks(run.path / "frequencies.tsv") == {"the": 1, ",": 2, "of": 3}
    assert runs.check_tokenizer(run) == run.tokenizer_sha256
    for checkpoint in runs.checkpoints(run):
        runs.verify(checkpoint)
