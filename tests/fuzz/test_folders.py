"""Tests of randomly damaged run folders: no traceback, no hang, no file read elsewhere, and other runs stay listed.

Each folder is damaged four times, listed, and used by one command and one page in turn.
"""

import os
import random
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.cli import main
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.app.conftest import Dashboard
from tests.conftest import SAMPLE_DATA
from tests.fuzz.conftest import DAMAGES, SEEDS, attempt, copy_as_bad, watched
from tests.fuzz.damage import damage, sign

QUERY = ["query", "bad", "The [MASK] runs ."]
TREEBANK = ["--treebank", str(SAMPLE_DATA["treebank"]), "--overwrite"]
COMMANDS = (
    QUERY,
    ["evaluate", "bad", "--metrics", "token_reconstruction", "--steps", "8", *TREEBANK],
    ["animate", "bad", "--layer", "1", "--head", "2", "-o", "head.gif"],
    ["query", "bad", "The [MASK] runs .", "--step", "8", "--track", "river"],
    ["evaluate", "bad", "--metrics", "attention", "head_behaviour", *TREEBANK],
    ["query", "bad", "The [MASK] runs .", "--lens"],
    ["animate", "bad", "--layer", "2", "--head", "1", "-o", "head.html"],
    ["audit", "bad"],
    ["findings", "bad"],
    ["examples", "bad"],
    ["runs", "--thin", "bad", "--keep", "0", "--yes"],
)
PAGES = ("overview", "tokens", "attention", "probing", "knowledge", "finetuning", "query", "findings")


def read_all(folder: Path) -> None:
    """Read everything that `runs` can read of a run's folder."""
    attempt(runs.open_run, folder)
    for run in runs.list_runs():
        attempt(runs.read_log, run)
        attempt(runs.damaged_lines, run)
        attempt(runs.read_ranks, run.path / "frequencies.tsv")
        attempt(load_tokenizer, run)
        for checkpoint in runs.checkpoints(run):
            attempt(runs.verify, checkpoint)
        assert all(reason.isprintable() for _, reason in runs.broken_checkpoints(run))
    assert all(reason.isprintable() for _, reason in runs.broken_runs())


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_run_is_reported_and_others_are_listed(
    seed: int, sound: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Neither a command nor a page has a traceback, and the sound run beside the damaged one is listed."""
    rng = random.Random(seed)
    monkeypatch.setenv("EMBRYO_DATA", os.pathsep.join([str(sound.path.parents[1]), str(tmp_path / "data")]))
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", "50 MB")
    monkeypatch.chdir(tmp_path)
    bad, outside = copy_as_bad(sound, tmp_path / "data"), tmp_path / "outside"
    copy_as_bad(sound, outside)
    done = [damage([path for path in bad if path.is_dir()], outside, rng) for _ in range(DAMAGES)]
    if rng.random() < 0.5:
        sign(Run("bad", bad[0], "", "", {}, "", {}, (), ""))
    print(done)
    with watched(outside):
        read_all(bad[0])
        assert main(["runs"]) in (0, 1)
    assert "tiny  albert, 3 checkpoints, steps 0 to 16" in capsys.readouterr().out
    with watched(outside):
        assert main(COMMANDS[seed % len(COMMANDS)]) in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err
    with watched(outside):
        app = Dashboard().open(PAGES[seed % len(PAGES)], run="bad")
    assert not app.exception, app.exception[0].stack_trace


@pytest.mark.parametrize("page", PAGES)
def test_sound_folder_is_read(page: str, sound: Run, monkeypatch: pytest.MonkeyPatch):
    """This shows that the seeds damage folders which were readable before."""
    monkeypatch.setenv("EMBRYO_DATA", str(sound.path.parents[1]))
    assert runs.list_runs() == [sound] and not runs.broken_runs() and not runs.broken_checkpoints(sound)
    app = Dashboard().open(page, run="tiny")
    assert not app.exception and not app.error
