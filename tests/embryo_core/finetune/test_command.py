"""Tests that `finetune`, and `evaluate` with --glue or --squad, do the same fine-tunings."""

from pathlib import Path

import pytest

from embryo_core import results
from embryo_core.cli import main
from embryo_core.finetune import task_specs
from embryo_core.types import Run
from tests.conftest import REPOSITORY
from tests.embryo_core.finetune.conftest import write_squad


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tune with a few updates and one learning rate, without the user's own data."""
    monkeypatch.setattr(task_specs, "QUICK_UPDATES", 2)
    monkeypatch.setattr("embryo_core.finetune.rates.QUICK_RATES", (1e-4,))
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("embryo_core.engine.device.parallel_passes", lambda: 1)


def test_evaluate_and_finetune_do_the_same(own_run: Run, cola: Path, capsys: pytest.CaptureFixture):
    """Without data of a metric, `evaluate` only fine-tunes; `finetune` then skips what is done."""
    assert main(["evaluate", str(own_run.path), "--glue", str(cola.parent), "--steps", "16"]) == 0
    assert capsys.readouterr().out.startswith("1 fine-tuning done, 0 done before")
    assert set(results.read_task_scores(own_run)["task"]) == {"cola"}
    assert main(["finetune", str(own_run.path), "--glue", str(cola.parent), "--steps", "16"]) == 0
    assert capsys.readouterr().out.startswith("0 fine-tunings done, 1 done before")


def test_evaluate_fine_tunes_after_its_metrics(own_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture):
    """Data are given for token reconstruction and for SQuAD."""
    command = ["evaluate", str(own_run.path), "--metrics", "token_reconstruction", "--treebank"]
    command += [str(REPOSITORY / "data" / "sample" / "treebank.conllu"), "--steps", "16"]
    assert main([*command, "--squad", str(write_squad(tmp_path / "squad"))]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("1 result computed") and second.startswith("1 fine-tuning done")


@pytest.mark.parametrize("command", ["evaluate", "finetune"])
def test_folder_without_tasks_is_refused(own_run: Run, tmp_path: Path, command: str, capsys: pytest.CaptureFixture):
    """The error names the folder and the task folders that were expected."""
    assert main([command, str(own_run.path), "--glue", str(tmp_path)]) == 2
    assert f"No task has data: {tmp_path} holds no folder named cola, sst2" in capsys.readouterr().err


def test_missing_folder_is_refused(own_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture):
    assert main(["evaluate", str(own_run.path), "--squad", str(tmp_path / "none")]) == 2
    assert f"{tmp_path / 'none'} does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["glue", "squad"])
def test_missing_folder_beside_an_existing_one_is_refused(own_run: Run, cola: Path, tmp_path: Path, wrong: str, capsys):
    """A mistyped folder must not be treated as if it had not been given."""
    given = {"glue": cola.parent, "squad": write_squad(tmp_path / "squad")} | {wrong: tmp_path / "typo"}
    folders = [word for name, folder in given.items() for word in (f"--{name}", str(folder))]
    assert main(["finetune", str(own_run.path), *folders, "--steps", "16"]) == 2
    assert str(tmp_path / "typo") in capsys.readouterr().err
