"""Run folders with random damages: no traceback, no hang, no file read elsewhere, and the runs beside them as ever.

EMBRYO_FUZZ is the number of folders, each damaged four times. Each is listed, and put to a command and a page in turn.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.cli import main
from embryo_core.evaluate import evaluate
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.app.conftest import Dashboard
from tests.conftest import SAMPLE_DATA
from tests.fuzz.conftest import DAMAGES, FOLDERS, attempt, watched
from tests.fuzz.damage import damage, sign

TREEBANK = ["--treebank", str(SAMPLE_DATA["treebank"]), "--overwrite"]
COMMANDS = (
    ["query", "bad", "The [MASK] runs ."],
    ["evaluate", "bad", "--metrics", "token_reconstruction", "--steps", "8", *TREEBANK],
    ["animate", "bad", "--layer", "1", "--head", "2", "-o", "head.gif"],
    ["query", "bad", "The [MASK] runs .", "--step", "8", "--track", "river"],
    ["evaluate", "bad", "--metrics", "attention", "head_behaviour", *TREEBANK],
    ["query", "bad", "The [MASK] runs .", "--lens"],
    ["animate", "bad", "--layer", "2", "--head", "1", "-o", "head.html"],
)
PAGES = ("overview", "tokens", "attention", "probing", "knowledge", "finetuning", "query", "findings")


@pytest.fixture(scope="module")
def sound(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with results in tables and in parts, and an example; imports and the first page are done."""
    root = shutil.copytree(tiny_results.path.parents[1], tmp_path_factory.mktemp("sound") / "data")
    run = runs.read_run(root / "runs" / tiny_results.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "compact", lambda _: None)
        evaluate(run, SAMPLE_DATA, ["mask_prediction", "world_knowledge"], steps=[16], overwrite=True)
    results.write_examples(run, [ExampleQuestion("The [MASK] runs .", "river", 8)])
    main(["query", str(run.path), *COMMANDS[0][2:]])
    Dashboard().open("overview")
    return run


def copy(run: Run, root: Path) -> tuple[Path, Path]:
    """A copy of a run and its results under the name "bad"."""
    return tuple(Path(shutil.copytree(path, root / path.parent.name / "bad")) for path in (run.path, run.results))


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
    seed: int, sound: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Whatever is wrong with one run, it is reported in sentences, and the sound run beside it is listed."""
    rng = random.Random(seed)
    monkeypatch.setenv("EMBRYO_DATA", os.pathsep.join([str(sound.path.parents[1]), str(tmp_path / "data")]))
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", "50 MB")
    monkeypatch.chdir(tmp_path)
    bad, outside = copy(sound, tmp_path / "data"), tmp_path / "outside"
    copy(sound, outside)
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
def test_a_sound_folder_is_read(page: str, sound: Run, monkeypatch: pytest.MonkeyPatch):
    """What the seeds damage is sound before."""
    monkeypatch.setenv("EMBRYO_DATA", str(sound.path.parents[1]))
    assert runs.list_runs() == [sound] and not runs.broken_runs() and not runs.broken(sound)
    app = Dashboard().open(page, run="tiny")
    assert not app.exception and not app.error
