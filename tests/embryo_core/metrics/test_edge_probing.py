"""Tests of edge probing: F1, control and majority of each task on the whole test set, and the probes' curves."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings
from embryo_core.metrics.edge_probing import TASKS, EdgeProbing
from embryo_core.metrics.probing import training
from embryo_core.metrics.probing.training import Evaluation, ProbeResult
from tests.conftest import shorten_probing
from tests.embryo_core.metrics.conftest import read
from tests.embryo_core.metrics.probing.test_data import write_task

pytestmark = pytest.mark.usefixtures("short_probing")


@pytest.fixture(scope="module")
def findings(trained_model: Model) -> Findings:
    """Compute findings on the sample's four tasks."""
    metric = EdgeProbing()
    with pytest.MonkeyPatch.context() as patch:
        shorten_probing(patch)
        return metric.compute(trained_model, read(metric, trained_model))


def test_every_task_has_scores_in_every_layer(trained_model, findings):
    """Embeddings are layer 0, the majority baseline has no layer, and n is the number of test targets."""
    tasks = read(EdgeProbing(), trained_model).data.tasks
    rows = {(score.metric, score.group, score.layer): score.n for score in findings.scores}
    expected = {}
    for task in tasks:
        expected["edge_probing_majority", task.name, None] = len(task.test.labels)
        for layer in range(trained_model.num_layers + 1):
            for name in ("edge_probing_f1", "edge_probing_control"):
                expected[name, task.name, layer] = len(task.test.labels)
    assert [task.name for task in tasks] == list(TASKS)
    assert rows == expected and len(findings.scores) == len(rows)
    assert all(0 <= score.value <= 1 for score in findings.scores)


def test_scores_and_curves_belong_to_their_task_and_layer(trained_model, monkeypatch):
    """Training is replaced to return distinct numbers for each task, layer and control task."""
    data = read(EdgeProbing(), trained_model)
    numbers = iter(range(1000))

    def come_to(features, tasks, protocol, cores) -> list[list[ProbeResult]]:
        n = [[next(numbers) / 1000 for _ in range(trained_model.num_layers + 1)] for _ in tasks]
        return [
            [ProbeResult((x, -x), [Evaluation(10, (x + 1, x + 2), (x + 3, x + 4))], (10, 10)) for x in own] for own in n
        ]

    monkeypatch.setattr(training, "train_all", come_to)
    computed = EdgeProbing().compute(trained_model, data)
    scores = {(score.metric, score.group, score.layer): score.value for score in computed.scores}
    curves = {
        (row.task, row.layer, row.control): (row.iteration, row.train_loss, row.dev_f1) for row in computed.probes
    }
    places = [(task, layer) for task in TASKS for layer in range(trained_model.num_layers + 1)]
    for number, (task, layer) in enumerate(places):
        x = number / 1000
        assert scores["edge_probing_f1", task, layer] == x and scores["edge_probing_control", task, layer] == -x
        assert curves[task, layer, False] == (10, x + 1, x + 3) and curves[task, layer, True] == (10, x + 2, x + 4)


def test_curve_of_each_probe_ends_with_its_training(trained_model, monkeypatch):
    """The control of every layer stops first."""
    curve = [Evaluation(iteration, (1.0, 1.0), (0.5, 0.5)) for iteration in (10, 20, 30)]
    monkeypatch.setattr(
        training,
        "train_all",
        lambda features, tasks, protocol, cores: [[ProbeResult((0.5, 0.5), curve, (30, 10))] for _ in tasks],
    )
    rows = EdgeProbing().compute(trained_model, read(EdgeProbing(), trained_model)).probes
    assert [row.iteration for row in rows if row.task == "pos" and not row.control] == [10, 20, 30]
    assert [row.iteration for row in rows if row.task == "pos" and row.control] == [10]


def test_memory_is_given_in_mebibytes(trained_model):
    """The default is 2,048."""
    assert read(EdgeProbing(), trained_model).memory == 2**31
    assert read(EdgeProbing(), trained_model, **{"probe-memory": 3}).memory == 3 * 2**20


def test_majority_label_is_that_of_training(trained_model, tmp_path, monkeypatch):
    """The score is this label's share of the test targets, though another label is more frequent there."""
    monkeypatch.setitem(training.PROTOCOLS, "fast", replace(training.PROTOCOLS["fast"], iterations=1, min_epochs=1))
    text = "The dog saw the river"
    labels = {"train": "AABA", "dev": "AB", "test": "BBAB"}
    splits = {split: [(text, [(label, (i, i + 1)) for i, label in enumerate(own)])] for split, own in labels.items()}
    metric = EdgeProbing("mine")
    computed = metric.compute(trained_model, read(metric, trained_model, write_task(tmp_path / "t", **splits)))
    (score,) = [score for score in computed.scores if score.metric == "edge_probing_majority"]
    assert (score.value, score.n) == (1 / 4, 4)


def test_every_task_layer_and_control_has_a_curve(trained_model, findings):
    curves = {(point.task, point.layer, point.control) for point in findings.probes}
    layers = range(trained_model.num_layers + 1)
    assert curves == {(task, layer, control) for task in TASKS for layer in layers for control in (False, True)}


def test_summary_describes_the_probed_tasks(trained_model):
    """It has the sizes of each task and a note for captions."""
    summary = read(EdgeProbing(), trained_model).summary
    assert summary["tasks"]["coref"] == {"train": 58, "dev": 15, "test": 15, "labels": 2}
    assert "coref 15" in summary["note"] and "distinct sentences of probing" in summary["note"]
    assert summary["too_long"] == summary["no_pieces"] == 0


def test_memory_and_parallel_passes_change_no_result(trained_model, findings, monkeypatch):
    """Features on disk and three parallel passes give the same findings."""
    metric, tasks = EdgeProbing(), read(EdgeProbing(), trained_model)
    monkeypatch.setattr(trained_model, "parallel_passes", 3)
    again = metric.compute(trained_model, replace(tasks, memory=0))
    assert (again.scores, again.probes) == (findings.scores, findings.probes)


def test_paper_protocol_gives_scores_and_curves(trained_model, sample, findings, monkeypatch):
    """Training is cut to 60 iterations, with an evaluation after every second one."""
    short = replace(training.PROTOCOLS["paper"], iterations=60)
    monkeypatch.setitem(training.PROTOCOLS, "paper", short)
    metric = EdgeProbing("coref")
    paper = metric.compute(trained_model, read(metric, trained_model, sample / "probing" / "coref", protocol="paper"))
    assert {point.iteration for point in paper.probes} <= set(range(2, 61, 2))
    assert len(paper.scores) == 7 and all(np.isfinite(point.train_loss) for point in paper.probes)


def test_custom_task_has_the_scores_of_the_same_data(trained_model, sample, findings):
    """One of the four tasks is given again as a custom task; sums in another order may change a target or two."""
    metric = EdgeProbing("mine")
    assert metric.name == "edge_probing:mine"
    own = metric.compute(trained_model, read(metric, trained_model, sample / "probing" / "srl"))
    expected = [replace(score, group="mine") for score in findings.scores if score.group == "srl"]
    for score, other in zip(own.scores, expected, strict=True):
        assert replace(score, value=other.value) == other
        assert score.value == pytest.approx(other.value, abs=2.5 / score.n)


# === Wrong folders ===


def test_subset_of_the_four_tasks_is_probed(trained_model, sample, tmp_path: Path):
    """The tasks come in the usual order, and hidden folders are ignored."""
    for task in ("srl", "constituent"):
        copytree(sample / "probing" / task, tmp_path / task)
    (tmp_path / ".cache").mkdir()
    tasks = read(EdgeProbing(), trained_model, tmp_path).data.tasks
    assert [task.name for task in tasks] == ["constituent", "srl"]


def test_unknown_task_is_reported_with_its_option(trained_model, sample, tmp_path: Path):
    """The error names --probe, which takes custom tasks."""
    copytree(sample / "probing", tmp_path / "probing")
    (tmp_path / "probing" / "pos").rename(tmp_path / "probing" / "tags")
    with pytest.raises(CorpusError, match=r"folder 'tags', which is not one of pos, .*--probe tags=FOLDER"):
        read(EdgeProbing(), trained_model, tmp_path / "probing")


def test_folder_without_tasks_is_reported(trained_model, sample):
    """The folder of one task is given in place of the folder of all, and then a file."""
    with pytest.raises(CorpusError, match=r"no folder named pos, .* --probe NAME="):
        read(EdgeProbing(), trained_model, sample / "probing" / "pos")
    with pytest.raises(CorpusError, match="is not a folder"):
        read(EdgeProbing(), trained_model, sample / "treebank.conllu")


def test_missing_split_is_reported(trained_model, sample, tmp_path: Path):
    """The error lists the splits that exist."""
    copytree(sample / "probing" / "pos", tmp_path / "pos")
    (tmp_path / "pos" / "dev.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"dev.jsonl \(or .xz, .gz\) does not exist; .* test.jsonl, train.jsonl"):
        read(EdgeProbing(), trained_model, tmp_path)
