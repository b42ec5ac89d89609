"""What edge probing stores: F1, control and majority of each task, over the whole test set, and the probes' curves."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.metrics.edge_probing import TASKS, EdgeProbing
from embryo_core.metrics.probing import regimen
from embryo_core.types import Findings, Sources


@pytest.fixture(scope="module")
def found(trained: Model, sources: Sources) -> Findings:
    """Findings on the sample's four tasks."""
    metric = EdgeProbing()
    return metric.compute(trained, trained.checkpoint, metric.read(trained, sources))


def test_every_task_has_its_scores_in_every_layer(trained, sources, found):
    """Embeddings are layer 0, the majority baseline has no layer, and n is the number of test targets."""
    tasks = EdgeProbing().read(trained, sources).data.tasks
    rows = {(score.metric, score.group, score.layer): score.n for score in found.scores}
    expected = {}
    for task in tasks:
        expected["edge_probing_majority", task.name, None] = len(task.test.labels)
        for layer in range(trained.num_layers + 1):
            for name in ("edge_probing_f1", "edge_probing_control"):
                expected[name, task.name, layer] = len(task.test.labels)
    assert [task.name for task in tasks] == list(TASKS)
    assert rows == expected and len(found.scores) == len(rows)
    assert all(0 <= score.value <= 1 for score in found.scores)


def test_the_majority_is_that_of_the_training_set(trained, sources, found):
    """Its share among the test targets."""
    for task in EdgeProbing().read(trained, sources).data.tasks:
        labels = [task.labels[label] for label in task.train.labels]
        most_frequent = task.labels.index(max(sorted(set(labels)), key=labels.count))
        (score,) = [s for s in found.scores if (s.metric, s.group) == ("edge_probing_majority", task.name)]
        assert score.value == np.mean(task.test.labels == most_frequent)


def test_curves_come_with_the_scores(trained, found):
    """Of each task, layer, and control task, with finite losses."""
    curves = {(point.task, point.layer, point.control) for point in found.probes}
    layers = range(trained.num_layers + 1)
    assert curves == {(task, layer, control) for task in TASKS for layer in layers for control in (False, True)}


def test_facts_say_what_was_probed(trained, sources):
    """Sizes of each task, and one sentence for captions."""
    facts = EdgeProbing().read(trained, sources).facts
    assert facts["tasks"]["coref"] == {"train": 58, "dev": 15, "test": 15, "labels": 2}
    assert "coref 15" in facts["note"] and "distinct sentences of probing" in facts["note"]
    assert facts["too_long"] == facts["no_pieces"] == 0


def test_memory_and_cores_change_no_number(trained, sources, found, monkeypatch):
    """Features on disk and another number of cores give the same findings."""
    metric, tasks = EdgeProbing(), EdgeProbing().read(trained, sources)
    monkeypatch.setattr(trained, "cores", 3)
    again = metric.compute(trained, trained.checkpoint, replace(tasks, memory=0))
    assert (again.scores, again.probes) == (found.scores, found.probes)


def test_the_paper_protocol_runs(trained, sources, found, monkeypatch):
    """It trains otherwise, so its curves are others; here it is cut short."""
    short = replace(regimen.PROTOCOLS["paper"], iterations=60)
    monkeypatch.setitem(regimen.PROTOCOLS, "paper", short)
    metric = EdgeProbing("coref")
    own = replace(sources, probing=sources.probing / "coref", protocol="paper")
    paper = metric.compute(trained, trained.checkpoint, metric.read(trained, own))
    assert {point.iteration for point in paper.probes} <= set(range(2, 61, 2))
    assert len(paper.scores) == 7 and all(np.isfinite(point.train_loss) for point in paper.probes)


def test_a_task_of_ones_own_has_the_same_scores_under_its_name(trained, sources, found):
    """The folder of one of the four, given as a fifth; sums in another order may turn a target or two."""
    metric = EdgeProbing("mine")
    assert metric.name == "edge_probing:mine"
    data = metric.read(trained, replace(sources, probing=sources.probing / "srl"))
    own = metric.compute(trained, trained.checkpoint, data)
    expected = [replace(score, group="mine") for score in found.scores if score.group == "srl"]
    for score, other in zip(own.scores, expected, strict=True):
        assert replace(score, value=other.value) == other
        assert score.value == pytest.approx(other.value, abs=2.5 / score.n)


# === Wrong folders ===


def test_some_of_the_four_tasks_are_enough(trained, sources, tmp_path: Path):
    """Those that are there are probed, in the usual order; hidden folders are none."""
    for task in ("srl", "constituent"):
        copytree(sources.probing / task, tmp_path / task)
    (tmp_path / ".cache").mkdir()
    tasks = EdgeProbing().read(trained, Sources(probing=tmp_path)).data.tasks
    assert [task.name for task in tasks] == ["constituent", "srl"]


def test_an_unknown_task_is_told_how_it_is_given(trained, sources, tmp_path: Path):
    """By --probe."""
    copytree(sources.probing, tmp_path / "probing")
    (tmp_path / "probing" / "pos").rename(tmp_path / "probing" / "tags")
    with pytest.raises(CorpusError, match=r"folder 'tags', which is none of pos, .*--probe tags=FOLDER"):
        EdgeProbing().read(trained, Sources(probing=tmp_path / "probing"))


def test_a_folder_without_tasks_is_told(trained, sources):
    """As when the folder of one task is given for that of all."""
    with pytest.raises(CorpusError, match="no folder named pos, .* --probe NAME="):
        EdgeProbing().read(trained, Sources(probing=sources.probing / "pos"))
    with pytest.raises(CorpusError, match="is no folder"):
        EdgeProbing().read(trained, Sources(probing=sources.treebank))


def test_a_missing_split_is_told(trained, sources, tmp_path: Path):
    """With what there is."""
    copytree(sources.probing / "pos", tmp_path / "pos")
    (tmp_path / "pos" / "dev.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"dev.jsonl \(or .xz\) does not exist, there is test.jsonl, train.jsonl"):
        EdgeProbing().read(trained, Sources(probing=tmp_path))
