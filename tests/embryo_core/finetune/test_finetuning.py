"""A run is fine-tuned task by task into parts of the results; killed and run again it goes on to the same table."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.errors import ConfigError, CorpusError, MissingCapability, OtherData
from embryo_core.finetune import protocols, rates, units
from embryo_core.finetune.finetuning import finetune
from embryo_core.types import Run
from tests.conftest import REPOSITORY
from tests.embryo_core.finetune.conftest import write_cola, write_pairs, write_squad


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few updates in place of hundreds, two learning rates in place of four."""
    monkeypatch.setattr(protocols, "QUICK_UPDATES", 4)
    monkeypatch.setattr("embryo_core.finetune.rates.QUICK_RATES", (1e-4, 1e-3))
    for task, settings in protocols.PAPER.items():
        monkeypatch.setitem(protocols.PAPER, task, replace(settings, updates=3, warmup=1, batch=8))


def test_scores_answers_and_curves_are_kept(own_run: Run, cola: Path):
    """For every step and seed: the model's score, the control's, 64 answers, and the curve."""
    report = finetune(own_run, {"cola": cola}, [0, 16], seeds=2, jobs=1)
    assert (report.computed, report.done_before, report.failures) == (4, 0, [])
    scores = results.read_task_scores(own_run, "cola")
    assert len(scores) == 8 and set(scores["predictor"]) == {"model", "majority"}
    assert set(zip(scores["step"], scores["seed"], strict=True)) == {(0, 1), (0, 2), (16, 1), (16, 2)}
    assert (scores.loc[scores["predictor"] == "majority", "value"] == 0).all() and (scores["n"] == 64).all()
    answers = results.read_answers(own_run, "cola", step=16)
    assert len(answers) == 128 and set(answers["answer"]) <= {0.0, 1.0}
    assert results.read_tuning(own_run, "cola").groupby(["step", "seed"])["update"].last().eq(4).all()


def test_what_is_done_is_skipped_and_more_seeds_share_the_learning_rate(own_run: Run, cola: Path):
    """The learning rate is chosen once, and noted with what every candidate scored."""
    finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    noted = results.read_sources(own_run)["finetuning:cola:1"]
    assert noted["learning_rate"] in (1e-4, 1e-3) and noted["rate_step"] == 16
    assert sorted(map(float, noted["rates"])) == [1e-4, 1e-3]
    report = finetune(own_run, {"cola": cola}, [0, 16], seeds=2, jobs=1)
    assert (report.computed, report.done_before) == (2, 2)
    assert results.read_sources(own_run)["finetuning:cola:2"] == noted


def test_a_learning_rate_is_noted_as_soon_as_it_is_chosen(
    own_run: Run, cola: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Stopped while those of the next task are tried, the same command tries these alone; a bar counts the trials."""
    tried, attempt = [], rates._try

    def stopped(trial: rates.Trial, *given: object) -> float:
        if trial.task == "rte":
            raise KeyboardInterrupt
        return counted(trial, *given)

    def counted(trial: rates.Trial, *given: object) -> float:
        tried.append(trial.task)
        return attempt(trial, *given)

    folders = {"cola": cola, "rte": write_pairs(tmp_path / "rte", 2)}
    monkeypatch.setattr(rates, "_try", stopped)
    with pytest.raises(KeyboardInterrupt):
        finetune(own_run, folders, [16], jobs=1)
    monkeypatch.setattr(rates, "_try", counted)
    assert finetune(own_run, folders, [16], jobs=1, progress=True).computed == 2
    assert tried == ["cola", "cola", "rte", "rte"]
    assert "learning rates, at step 16: 100%" in capsys.readouterr().err


def test_other_data_are_refused(own_run: Run, cola: Path):
    """As for every metric; --overwrite replaces what was there."""
    finetune(own_run, {"cola": cola}, [16], jobs=1)
    write_cola(cola, n=40)
    with pytest.raises(OtherData, match="finetuning:cola:1"):
        finetune(own_run, {"cola": cola}, [0], jobs=1)
    finetune(own_run, {"cola": cola}, [0], jobs=1, overwrite=True)
    assert set(results.read_task_scores(own_run)["step"]) == {0}


def test_the_paper_begins_from_the_weights_after_mnli(own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """RTE, MRPC and STS-B do; the weights go once all are done."""
    started = []
    tune = units.tune
    monkeypatch.setattr(units, "tune", lambda *given: started.append((given[1].name, given[5])) or tune(*given))
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
        "stsb": write_pairs(tmp_path / "stsb", 5, value=True),
    }
    assert finetune(own_run, folders, [16], protocol="paper", jobs=1).computed == 3
    assert [(name, start is not None) for name, start in started] == [("mnli", False), ("rte", True), ("stsb", True)]
    assert not list((tmp_path / "cache").rglob("*.safetensors"))
    assert set(results.read_task_scores(own_run)["metric"]) == {"accuracy", "spearman", "pearson"}


def test_mnli_is_tuned_again_for_its_weights_alone(own_run: Run, tmp_path: Path):
    """Where its results are there, and those of a task that begins from it are not."""
    folders = {"mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched")}
    finetune(own_run, folders, [16], protocol="paper", jobs=1)
    folders["rte"] = write_pairs(tmp_path / "rte", 2)
    report = finetune(own_run, folders, [16], protocol="paper", jobs=1)
    assert (report.computed, report.done_before) == (1, 1)


def test_where_mnli_fails_the_tasks_after_it_are_not_tuned(own_run: Run, tmp_path: Path):
    """A sentence for each, and nothing written; other steps are done."""
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
    }
    (own_run.path / "checkpoints" / "step0" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, folders, [0, 16], protocol="paper", jobs=1)
    assert report.computed == 2 and len(report.failures) == 2
    assert "begins from weights after MNLI" in report.failures[1]


def test_the_paper_needs_mnli(own_run: Run, tmp_path: Path):
    """And has no settings for a task of one's own."""
    with pytest.raises(ConfigError, match="add mnli to --tasks"):
        finetune(own_run, {"rte": write_pairs(tmp_path / "rte", 2)}, protocol="paper")
    with pytest.raises(ConfigError, match="no settings for the task 'mine'"):
        finetune(own_run, {"mine": write_pairs(tmp_path / "mine", 2)}, protocol="paper")


def test_squad_is_tuned_and_every_answer_kept(own_run: Run, tmp_path: Path):
    """As characters of the paragraph."""
    report = finetune(own_run, {"squad": write_squad(tmp_path / "squad", unanswerable=True)}, [16], jobs=1)
    assert report.failures == []
    assert len(results.read_spans(own_run, "squad")) == 4
    assert set(results.read_task_scores(own_run, "squad")["metric"]) == {"exact", "f1"}


def test_a_broken_checkpoint_is_reported_and_passed_over(own_run: Run, cola: Path):
    """The others are done."""
    (own_run.path / "checkpoints" / "step0" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, {"cola": cola}, jobs=1)
    assert report.computed == 2 and "step0" in report.failures[0] and len(report.failures) == 1


def test_where_the_last_checkpoint_is_broken_the_one_before_chooses_the_learning_rate(own_run: Run, cola: Path):
    """And the last is told."""
    (own_run.path / "checkpoints" / "step16" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, {"cola": cola}, [8, 16], jobs=1)
    assert report.computed == 1 and len(report.failures) == 1
    assert results.read_sources(own_run)["finetuning:cola:1"]["rate_step"] == 8


def test_a_model_without_an_encoder_is_refused(own_run: Run, cola: Path):
    """One sentence, before the data are read."""
    for config in own_run.path.glob("checkpoints/*/config.json"):
        config.write_text(config.read_text().replace('"albert"', '"gpt2"'))
    with pytest.raises(MissingCapability, match="No checkpoint of run 'tiny'"):
        finetune(own_run, {"cola": cola})


def test_a_folder_that_is_none_is_reported(own_run: Run, tmp_path: Path):
    """With the arguments that name one."""
    with pytest.raises(CorpusError, match="for the task 'cola', is no folder; give one with --glue"):
        finetune(own_run, {"cola": tmp_path / "nowhere"})


def test_a_full_disk_ends_it_and_what_is_done_stays(own_run: Run, cola: Path, monkeypatch: pytest.MonkeyPatch):
    """The error is the system's own; the next call goes on."""
    write = results.write

    def full(checkpoint, *given):
        if checkpoint.step == 16:
            raise OSError(28, "No space left on device")
        write(checkpoint, *given)

    monkeypatch.setattr(results, "write", full)
    with pytest.raises(OSError, match="No space left"):
        finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    monkeypatch.setattr(results, "write", write)
    report = finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    assert (report.computed, report.done_before) == (1, 1)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_table(tiny_run: Run, own_run: Run, cola: Path, tmp_path: Path):
    """Kill -9 after the first part; another process ends with the rows of one that was never killed."""
    command = [sys.executable, "-m", "embryo_core", "finetune", str(own_run.path), "--tasks", "cola", "--glue"]
    command += [str(cola.parent), "--jobs", "1", "--steps"]
    process = subprocess.Popen([*command, "0", "8", "16"], cwd=REPOSITORY)
    while process.poll() is None and not list(own_run.results.glob("parts/*/step0/*.parquet")):
        time.sleep(0.02)
    process.kill()
    process.wait()
    subprocess.run([*command, "0", "8", "16"], cwd=REPOSITORY, check=True)
    killed = results.read_task_scores(own_run), results.read_answers(own_run, "cola")
    shutil.rmtree(own_run.results)
    subprocess.run([*command, "0", "8", "16"], cwd=REPOSITORY, check=True)
    whole = results.read_task_scores(own_run), results.read_answers(own_run, "cola")
    for one, other in zip(killed, whole, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.slow
def test_two_processes_give_the_table_of_one(own_run: Run, cola: Path):
    """Each with a thread of its own, as one has here."""
    finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    alone = results.read_answers(own_run, "cola")
    shutil.rmtree(own_run.results)
    assert finetune(own_run, {"cola": cola}, [0, 16], jobs=2).computed == 2
    pd.testing.assert_frame_equal(results.read_answers(own_run, "cola"), alone)
