"""Tests of fine-tuning a run task by task; a killed command that is run again ends with the same tables."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from transformers import AutoModelForTimeSeriesPrediction

from embryo_core import corpora, results, runs
from embryo_core.errors import ConfigError, CorpusError, DatasetMismatch, MissingCapability
from embryo_core.finetune import rates, task_specs, training, workers
from embryo_core.finetune.encoded_tasks import score
from embryo_core.finetune.finetuning import finetune
from embryo_core.runs import write_json
from embryo_core.types import Run
from tests.conftest import REPOSITORY
from tests.embryo_core.evaluation.test_evaluator import files
from tests.embryo_core.finetune.conftest import sentences, write_cola, write_pairs, write_split, write_squad


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tune with a few updates instead of hundreds, and two learning rates instead of four."""
    monkeypatch.setattr(task_specs, "QUICK_UPDATES", 4)
    monkeypatch.setattr("embryo_core.finetune.rates.QUICK_RATES", (1e-4, 1e-3))
    for task, settings in task_specs.PAPER_SETTINGS.items():
        monkeypatch.setitem(task_specs.PAPER_SETTINGS, task, replace(settings, updates=3, warmup=1, batch=8))


def test_scores_answers_and_curves_are_stored(own_run: Run, cola: Path):
    """Every step and seed has the model's score, the control's, 64 answers, and the curve."""
    report = finetune(own_run, {"cola": cola}, [0, 16], seeds=2, jobs=1)
    assert (report.computed, report.done_before, report.failures) == (4, 0, [])
    scores = results.read_task_scores(own_run, "cola")
    assert len(scores) == 8 and set(scores["predictor"]) == {"model", "majority"}
    assert set(zip(scores["step"], scores["seed"], strict=True)) == {(0, 1), (0, 2), (16, 1), (16, 2)}
    assert (scores.loc[scores["predictor"] == "majority", "value"] == 0).all() and (scores["n"] == 64).all()
    answers = results.read_answers(own_run, "cola").query("step == 16")
    assert len(answers) == 128 and set(answers["answer"]) <= {0.0, 1.0}
    assert results.read_tuning(own_run, "cola").groupby(["step", "seed"])["update"].last().eq(4).all()


def test_further_seeds_share_the_learning_rate(own_run: Run, cola: Path):
    """Finished fine-tunings are skipped; the rate is chosen once, and stored with the scores of all candidates."""
    finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    noted = results.read_sources(own_run)["finetuning:cola:1"]
    assert noted["learning_rate"] in (1e-4, 1e-3) and noted["rate_step"] == 16
    assert sorted(map(float, noted["rates"])) == [1e-4, 1e-3]
    report = finetune(own_run, {"cola": cola}, [0, 16], seeds=2, jobs=1)
    assert (report.computed, report.done_before) == (2, 2)
    assert results.read_sources(own_run)["finetuning:cola:2"] == noted


def test_learning_rate_is_stored_once_it_is_chosen(
    own_run: Run, cola: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """If the trials of the next task are interrupted, the same command runs only these; a bar counts the trials."""
    tried, attempt = [], rates._try

    def stopped(trial: rates.RateTrial, *args: object) -> rates.TrialResult:
        if trial.task == "rte":
            raise KeyboardInterrupt
        return counted(trial, *args)

    def counted(trial: rates.RateTrial, *args: object) -> rates.TrialResult:
        tried.append(trial.task)
        return attempt(trial, *args)

    folders = {"cola": cola, "rte": write_pairs(tmp_path / "rte", 2)}
    monkeypatch.setattr(rates, "_try", stopped)
    with pytest.raises(KeyboardInterrupt):
        finetune(own_run, folders, [16], jobs=1)
    monkeypatch.setattr(rates, "_try", counted)
    assert finetune(own_run, folders, [16], jobs=1, progress=True).computed == 2
    assert tried == ["cola", "cola", "rte", "rte"]
    assert "learning rates, at step 16: 100%" in capsys.readouterr().err


def test_tried_learning_rate_is_not_tried_again(
    own_run: Run, cola: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """After an interruption the same command tries only the second rate; a malformed file of a trial is ignored."""
    tried, attempt, cache = [], rates._try, tmp_path / "cache" / "finetuning" / own_run.name

    def counted(trial: rates.RateTrial, *args: object) -> rates.TrialResult:
        if stop and tried:
            raise KeyboardInterrupt
        tried.append(trial.settings.learning_rate)
        return attempt(trial, *args)

    def again() -> list[float]:
        tried.clear()
        finetune(own_run, {"cola": cola}, [16], jobs=1)
        return tried

    monkeypatch.setattr(rates, "_try", counted)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        again()
    (file,) = cache.glob("rate-*.json")
    stop = False
    assert again() == [1e-3] and not file.exists()
    noted = results.read_sources(own_run)["finetuning:cola:1"]
    shutil.rmtree(own_run.results)
    write_json(file, {"score": "high"})
    assert again() == [1e-4, 1e-3] and not file.exists()
    assert results.read_sources(own_run)["finetuning:cola:1"] == noted


def test_other_data_are_refused_without_overwrite(own_run: Run, cola: Path):
    """With --overwrite the earlier scores are replaced."""
    finetune(own_run, {"cola": cola}, [16], jobs=1)
    write_cola(cola, n=40)
    with pytest.raises(DatasetMismatch, match="finetuning:cola:1"):
        finetune(own_run, {"cola": cola}, [0], jobs=1)
    finetune(own_run, {"cola": cola}, [0], jobs=1, overwrite=True)
    assert set(results.read_task_scores(own_run)["step"]) == {0}


def test_scores_of_steps_without_weights_are_never_overwritten(own_run: Run, cola: Path):
    """Even with --overwrite other data are refused, and the error gives the reason."""
    finetune(own_run, {"cola": cola}, [8, 16], jobs=1)
    runs.remove_weights(runs.checkpoint(own_run, 8))
    write_cola(cola, n=40)
    with pytest.raises(
        DatasetMismatch, match="give the same data, since those of 1 step without weights cannot be computed again"
    ):
        finetune(own_run, {"cola": cola}, [16], jobs=1, overwrite=True)
    assert set(results.read_task_scores(own_run)["step"]) == {8, 16}


def test_paper_protocol_starts_from_weights_after_mnli(own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """RTE and STS-B start from these weights, which are deleted when all tasks are done."""
    started = []
    tune = workers.tune
    monkeypatch.setattr(workers, "tune", lambda *args: started.append((args[1].name, args[5])) or tune(*args))
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
        "stsb": write_pairs(tmp_path / "stsb", 5, value=True),
    }
    assert finetune(own_run, folders, [16], protocol="paper", jobs=1).computed == 3
    assert [(name, start is not None) for name, start in started] == [("mnli", False), ("rte", True), ("stsb", True)]
    assert not list((tmp_path / "cache").rglob("*.safetensors"))
    assert set(results.read_task_scores(own_run)["metric"]) == {"accuracy", "spearman", "pearson"}


def test_mnli_is_tuned_again_if_its_weights_are_needed(own_run: Run, tmp_path: Path):
    """MNLI has results, but a task that starts from its weights has none."""
    folders = {"mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched")}
    finetune(own_run, folders, [16], protocol="paper", jobs=1)
    folders["rte"] = write_pairs(tmp_path / "rte", 2)
    report = finetune(own_run, folders, [16], protocol="paper", jobs=1)
    assert (report.computed, report.done_before) == (1, 1)


def test_results_before_an_error_of_the_same_job_are_kept(
    own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """MNLI's result is written before RTE, which starts from its weights, ends with a full disk; the weights stay."""
    tune = workers.tune

    def full(checkpoint, trainee, *more):
        if trainee.name == "rte":
            raise OSError(28, "No space left on device")
        return tune(checkpoint, trainee, *more)

    folders = {"mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"), "rte": write_pairs(tmp_path / "rte", 2)}
    monkeypatch.setattr(workers, "tune", full)
    with pytest.raises(OSError, match="No space left"):
        finetune(own_run, folders, [16], protocol="paper", jobs=1)
    monkeypatch.setattr(workers, "tune", tune)
    assert list((tmp_path / "cache").rglob("*.safetensors"))
    report = finetune(own_run, folders, [16], protocol="paper", jobs=1)
    assert (report.computed, report.done_before) == (1, 1)


def test_damaged_weights_after_mnli_are_recreated(own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The weights remain if the task after MNLI fails, and may be damaged before the next command."""
    tune, failing = workers.tune, {"rte"}

    def sometimes(checkpoint, trainee, *more):
        if trainee.name in failing:
            raise ValueError("planted")
        return tune(checkpoint, trainee, *more)

    monkeypatch.setattr(workers, "tune", sometimes)
    folders = {"mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"), "rte": write_pairs(tmp_path / "rte", 2)}
    assert "planted" in finetune(own_run, folders, [16], protocol="paper", jobs=1).failures[0]
    (weights,) = (tmp_path / "cache").rglob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    failing.clear()
    report = finetune(own_run, folders, [16], protocol="paper", jobs=1)
    assert (report.computed, report.failures) == (1, [])


def test_tasks_after_mnli_are_skipped_if_it_fails(own_run: Run, tmp_path: Path):
    """MNLI fails at the broken step 0, where RTE is reported too; step 16 is done."""
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
    }
    (own_run.path / "checkpoints" / "step0" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, folders, [0, 16], protocol="paper", jobs=1)
    assert report.computed == 2 and len(report.failures) == 2
    assert "needs the weights after MNLI" in report.failures[1]


def test_paper_protocol_needs_mnli(own_run: Run, tmp_path: Path):
    """Tasks outside GLUE have no settings in the protocol either."""
    with pytest.raises(ConfigError, match="add mnli to --tasks"):
        finetune(own_run, {"rte": write_pairs(tmp_path / "rte", 2)}, protocol="paper")
    with pytest.raises(ConfigError, match="no settings for the task 'mine'"):
        finetune(own_run, {"mine": write_cola(tmp_path / "mine")}, protocol="paper")


def test_squad_is_tuned_and_every_answer_is_stored(own_run: Run, tmp_path: Path):
    """The answers are stored as spans of the paragraph."""
    report = finetune(own_run, {"squad": write_squad(tmp_path / "squad", unanswerable=True)}, [16], jobs=1)
    assert report.failures == []
    assert len(results.read_spans(own_run, "squad")) == 4
    assert set(results.read_task_scores(own_run, "squad")["metric"]) == {"exact", "f1"}


def test_broken_checkpoint_is_reported_and_skipped(own_run: Run, cola: Path):
    (own_run.path / "checkpoints" / "step0" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, {"cola": cola}, jobs=1)
    assert report.computed == 2 and "step0" in report.failures[0] and len(report.failures) == 1


def test_learning_rate_is_chosen_at_the_last_readable_checkpoint(own_run: Run, cola: Path):
    """The broken checkpoint at step 16 is reported, and step 8 takes its place."""
    (own_run.path / "checkpoints" / "step16" / "model.safetensors").write_bytes(b"")
    report = finetune(own_run, {"cola": cola}, [8, 16], jobs=1)
    assert report.computed == 1 and len(report.failures) == 1
    assert results.read_sources(own_run)["finetuning:cola:1"]["rate_step"] == 8


def test_model_without_an_encoder_is_refused(own_run: Run, cola: Path):
    """The family is T5 here."""
    for config in own_run.path.glob("checkpoints/*/config.json"):
        config.write_text(config.read_text().replace('"albert"', '"t5"'))
    with pytest.raises(MissingCapability, match="checkpoints of run 'tiny'"):
        finetune(own_run, {"cola": cola})


def test_missing_task_folder_is_reported(own_run: Run, tmp_path: Path):
    """The error names the argument that takes a folder."""
    with pytest.raises(CorpusError, match="for the task 'cola', is not a folder; give one with --glue"):
        finetune(own_run, {"cola": tmp_path / "nowhere"})


def test_full_disk_keeps_finished_results(own_run: Run, cola: Path, monkeypatch: pytest.MonkeyPatch):
    """The system's error is raised, and the next call does the rest."""
    write = results.write

    def full(checkpoint, *args):
        if checkpoint.step == 16:
            raise OSError(28, "No space left on device")
        write(checkpoint, *args)

    monkeypatch.setattr(results, "write", full)
    with pytest.raises(OSError, match="No space left"):
        finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    monkeypatch.setattr(results, "write", write)
    report = finetune(own_run, {"cola": cola}, [0, 16], jobs=1)
    assert (report.computed, report.done_before) == (1, 1)


def test_task_without_a_chosen_learning_rate_is_reported(own_run: Run, cola: Path, tmp_path: Path, monkeypatch):
    """Families such as ESM have no head for questions: SQuAD fails with the reason, and CoLA is done."""
    monkeypatch.setitem(training.MODEL_CLASSES, "span", AutoModelForTimeSeriesPrediction)
    folders = {"squad": write_squad(tmp_path / "squad"), "cola": cola}
    report = finetune(own_run, folders, [16], jobs=1)
    assert report.computed == 1 and len(report.failures) == 1
    assert report.failures[0].startswith("Choosing the learning rate of 'squad' at step 16 failed: family 'albert' has")
    assert set(results.read_task_scores(own_run)["task"]) == {"cola"}


def test_no_learning_rate_is_chosen_if_all_diverge(own_run: Run, cola: Path, monkeypatch: pytest.MonkeyPatch):
    """The report lists the rates that were tried."""
    monkeypatch.setattr(rates, "QUICK_RATES", (1e30, 2e30))
    report = finetune(own_run, {"cola": cola}, [16], jobs=1)
    assert report.computed == 0 and "diverged with each of 1e+30, 2e+30" in report.failures[0]


@pytest.mark.parametrize(("losses", "best"), [((0.5, 0.4, 0.6), 2.0), ((0.4, 0.4, 0.1), 1.0)])
def test_tied_scores_are_decided_by_the_lower_loss(losses: tuple[float, ...], best: float):
    """Equal losses are decided by the smaller rate; neither a lower score nor a diverged rate is ever chosen."""
    trials = dict(zip((1.0, 2.0, 4.0), map(rates.TrialResult, (0.3, 0.3, 0.2), losses), strict=True))
    choice = rates._best_rate(16, "cola", trials | {8.0: rates.TrialResult()})
    assert choice.learning_rate == best and choice.is_tied
    assert choice.losses == dict(zip((1.0, 2.0, 4.0), losses, strict=True))
    assert task_specs.RateChoice.read({"learning_rate": best, **choice.summary}) == choice


def test_rates_are_compared_on_held_out_training_data(own_run: Run, cola: Path):
    """Other validation labels do not change the losses, which are stored with the scores of the rates."""
    finetune(own_run, {"cola": cola}, [16], jobs=1)
    noted = results.read_sources(own_run)["finetuning:cola:1"]
    assert noted["rate_losses"].keys() == noted["rates"].keys()
    results_of = own_run.results
    shutil.rmtree(results_of)
    texts, _ = sentences(64, seed=9)
    write_split(cola, "validation", sentence=texts, label=[i % 2 for i in range(64)], idx=list(range(64)))
    finetune(own_run, {"cola": cola}, [16], jobs=1)
    assert results.read_sources(own_run)["finetuning:cola:1"]["rate_losses"] == noted["rate_losses"]


def test_overwriting_removes_all_seeds_of_other_data(own_run: Run, cola: Path):
    """With one seed instead of two, the second seed stays if its data are the same, and goes if they are not."""
    finetune(own_run, {"cola": cola}, [16], seeds=2, jobs=1)
    finetune(own_run, {"cola": cola}, [16], seeds=1, jobs=1, overwrite=True)
    assert set(results.read_task_scores(own_run)["seed"]) == {1, 2}
    write_cola(cola, n=40)
    finetune(own_run, {"cola": cola}, [16], seeds=1, jobs=1, overwrite=True)
    assert set(results.read_task_scores(own_run)["seed"]) == {1}
    assert not [name for name in results.read_sources(own_run) if name == "finetuning:cola:2"]


def test_overwriting_all_scores_chooses_a_new_learning_rate(own_run: Run, cola: Path, monkeypatch: pytest.MonkeyPatch):
    """No score with the old rate is left, so there is nothing to remark."""
    finetune(own_run, {"cola": cola}, [8, 16], seeds=2, jobs=1)
    (before,) = {source["learning_rate"] for source in results.read_sources(own_run).values()}
    monkeypatch.setattr(rates, "QUICK_RATES", (3e-4,))
    report = finetune(own_run, {"cola": cola}, [0, 8, 16], seeds=2, jobs=1, overwrite=True)
    assert (report.computed, report.remarks) == (6, [])
    assert before != 3e-4 == results.read_sources(own_run)["finetuning:cola:1"]["learning_rate"]
    assert len({str(noted) for noted in results.read_sources(own_run).values()}) == 1
    assert len(results.read_task_scores(own_run, "cola")) == 12


@pytest.mark.parametrize(
    ("steps", "seeds", "stays"), [([16], 2, "step 8 and seed 1"), ([8, 16], 1, "step 8 and seed 2")]
)
def test_overwriting_some_scores_keeps_the_learning_rate(
    own_run: Run, cola: Path, steps: list[int], seeds: int, stays: str, monkeypatch: pytest.MonkeyPatch
):
    """The remaining scores have that rate and are averaged with the new ones; a remark says so."""
    finetune(own_run, {"cola": cola}, [8, 16], seeds=2, jobs=1)
    noted = results.read_sources(own_run)
    monkeypatch.setattr(rates, "QUICK_RATES", (3e-4,))
    report = finetune(own_run, {"cola": cola}, steps, seeds=seeds, jobs=1, overwrite=True)
    assert results.read_sources(own_run) == noted and report.computed == 2
    assert len(results.read_task_scores(own_run, "cola")) == 8
    (remark,) = report.remarks
    assert remark.startswith("'cola' keeps its learning rate") and stays in remark


def test_learning_rate_stays_if_some_scores_cannot_be_recomputed(own_run: Run, cola: Path):
    """The weights of step 8 are gone."""
    finetune(own_run, {"cola": cola}, [8, 16], jobs=1)
    runs.remove_weights(runs.checkpoint(own_run, 8))
    report = finetune(own_run, {"cola": cola}, jobs=1, overwrite=True)
    assert "such as that of step 8 and seed 1" in report.remarks[0]
    assert set(results.read_task_scores(own_run, "cola")["step"]) == {0, 8, 16}


def test_seeds_of_a_task_need_the_same_data(own_run: Run, cola: Path):
    """The first seed has no results any more, but the second has those of the earlier data."""
    finetune(own_run, {"cola": cola}, [16], seeds=2, jobs=1)
    results.note_dataset(own_run, "finetuning:cola:1", {"sha256": "another"}, {}, overwrite=True)
    write_cola(cola, n=40)
    with pytest.raises(DatasetMismatch, match="finetuning:cola:2"):
        finetune(own_run, {"cola": cola}, [16], jobs=1)


def test_unread_file_does_not_change_the_data(own_run: Run, cola: Path):
    """Results that store the hash of the whole folder, as earlier versions did, are accepted too."""
    finetune(own_run, {"cola": cola}, [16], jobs=1)
    (cola / "README.md").write_text("about")
    assert finetune(own_run, {"cola": cola}, [16], seeds=2, jobs=1).computed == 1
    sources = results.read_sources(own_run)
    before = corpora.open_source(cola).sha256
    assert before != sources["finetuning:cola:1"]["sha256"]
    for noted in sources.values():
        noted["sha256"] = before
    write_json(own_run.results / "sources.json", sources)
    assert finetune(own_run, {"cola": cola}, [16], seeds=3, jobs=1).computed == 1
    assert results.read_sources(own_run)["finetuning:cola:3"]["sha256"] == before


def test_leftover_weights_after_mnli_are_deleted(own_run: Run, tmp_path: Path):
    """Weights are deleted once the tasks that start from them are done; those of another step stay."""
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
    }
    finetune(own_run, folders, [16], protocol="paper", jobs=1)
    cache = tmp_path / "cache" / "finetuning" / own_run.name
    cache.mkdir(parents=True, exist_ok=True)
    left, other = (cache / f"step{step}-seed1-0123456789ab.safetensors" for step in (16, 8))
    left.write_bytes(b"")
    other.write_bytes(b"")
    finetune(own_run, {"mnli": folders["mnli"]}, [16], protocol="paper", jobs=1)
    assert left.exists()
    finetune(own_run, folders, [16], protocol="paper", jobs=1)
    assert not left.exists() and other.exists()


def test_scores_of_a_regression_equal_those_of_stored_answers(own_run: Run, tmp_path: Path):
    """The scores are equal to the last bit."""
    folder = write_pairs(tmp_path / "mine", 5, value=True)
    texts, _ = sentences(20, seed=4)
    gold = (1000 + np.random.default_rng(0).random(20)).tolist()
    for split in ("train", "validation"):
        write_split(folder, split, sentence1=texts, sentence2=texts[::-1], label=gold)
    finetune(own_run, {"mine": folder}, [16], jobs=1)
    answers, stored_rows = results.read_answers(own_run, "mine"), results.read_task_scores(own_run, "mine")
    for metric in ("spearman", "pearson"):
        of_model = stored_rows[(stored_rows["predictor"] == "model") & (stored_rows["metric"] == metric)]
        assert score(metric, answers["gold"].to_numpy(), answers["answer"].to_numpy()) == of_model["value"].item()


def test_whole_floats_as_labels_are_remarked_as_a_regression(own_run: Run, tmp_path: Path):
    """The remark says how to make them classes."""
    folder = write_split(tmp_path / "mine", "train", sentence=["a river", "a king"] * 8, label=[0.0, 1.0] * 8)
    write_split(folder, "validation", sentence=["a river", "a king"], label=[0.0, 1.0])
    report = finetune(own_run, {"mine": folder}, [16], jobs=1)
    assert len(report.remarks) == 1 and "scored as a regression; store them as integers" in report.remarks[0]


def test_model_of_few_positions_is_refused(own_run: Run, cola: Path, monkeypatch: pytest.MonkeyPatch):
    """The model reads 8 tokens at once."""
    monkeypatch.setattr("embryo_core.finetune.finetuning.max_sequence_length", lambda checkpoint: 8)
    with pytest.raises(MissingCapability, match="read 8 pieces at once; fine-tuning needs 16"):
        finetune(own_run, {"cola": cola}, [16], jobs=1)


@pytest.mark.slow
def test_killed_command_continues_to_the_same_tables(tiny_run: Run, own_run: Run, cola: Path, tmp_path: Path):
    """The first process is killed with SIGKILL after its first part; the next ends with the rows of an unkilled one."""
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
@pytest.mark.parametrize("protocol", ["quick", "paper"])
def test_two_processes_write_the_files_of_one(own_run: Run, cola: Path, tmp_path: Path, protocol: str):
    """Each process has one thread; in the paper's protocol RTE follows MNLI in any process, and its weights go."""
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
        "cola": cola,
    }
    finetune(own_run, folders, [0, 16], protocol=protocol, jobs=1)
    alone = files(own_run)
    shutil.rmtree(own_run.results)
    assert finetune(own_run, folders, [0, 16], protocol=protocol, jobs=2).computed == 6
    assert files(own_run) == alone
    assert not list((tmp_path / "cache").rglob("*.safetensors"))
