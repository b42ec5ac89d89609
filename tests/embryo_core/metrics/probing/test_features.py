"""Features are the means over a span's pieces of the states that transformers gives, wherever they are held."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AlbertModel

from benchmarks.paper_probing import PaperProbing
from embryo_core.corpora import read_probing
from embryo_core.engine.model import Model
from embryo_core.evaluate.compute import limits
from embryo_core.metrics.probing.data import ProbingData, read_tasks
from embryo_core.metrics.probing.features import span_features
from tests.embryo_core.metrics.probing.test_data import write_task
from tests.rounding import rounding

PLENTY = 2**30


@pytest.fixture(scope="module")
def data(trained: Model, sample: Path) -> ProbingData:
    """Two tasks of the sample, one with two spans."""
    folders = {task: sample / "probing" / task for task in ("constituent", "srl")}
    return read_tasks(folders, trained.tokenizer, limits(trained), None)


def test_spans_by_hand(trained: Model, tmp_path: Path):
    """On one sentence: a word of several pieces, a span at either end, and the whole sentence."""
    text = "Rivers run past unforgettable towns"
    spans = {"A": (0, 1), "B": (3, 4), "C": (4, 5), "D": (0, 5)}
    folder = write_task(tmp_path / "t", train=[(text, list(spans.items()))])
    data = read_tasks({"t": folder}, trained.tokenizer, limits(trained), None)
    features = span_features(trained, data, PLENTY)
    pieces = [trained.tokenizer.encode_words([word]).ids.tolist() for word in text.split()]
    ids = [trained.tokenizer.cls_id, *(i for own in pieces for i in own), trained.tokenizer.sep_id]
    plain = AlbertModel.from_pretrained(trained.checkpoint.path, dtype=torch.float32).eval()
    with torch.no_grad():
        states = plain(torch.tensor([ids]), output_hidden_states=True).hidden_states
    own = data.tasks[0].train
    for (span,), label in zip(own.spans, own.labels, strict=True):
        first, last = spans[data.tasks[0].labels[label]]
        start = 1 + sum(len(own) for own in pieces[:first])
        end = start + sum(len(own) for own in pieces[first:last])
        for layer in range(3):
            expected = states[layer][0, start:end].mean(0)
            assert_as_stored(trained, features[layer, span], expected)


def assert_as_stored(model: Model, features: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal but for the rounding of the pass in float32, and then of the feature to float16."""
    tolerance = rounding(model, model.max_positions, expected.numpy())
    torch.testing.assert_close(features.float(), expected, atol=tolerance, rtol=torch.finfo(torch.float16).eps)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_features_of_whole_tasks_are_those_of_the_paper(trained: Model, data: ProbingData, sample: Path, layer: int):
    """Every target of the test sets, with the spans of a pair in their order."""
    paper = PaperProbing(trained.checkpoint.path, trained.checkpoint.run.tokenizer)
    features = span_features(trained, data, PLENTY)[layer]
    for task in data.tasks:
        expected, labels = paper.features(read_probing(sample / "probing" / task.name, "test"), layer)
        ours = features[torch.from_numpy(task.test.spans)].flatten(1).float()
        assert_as_stored(trained, ours, expected)
        assert [task.labels[label] if label >= 0 else None for label in task.test.labels] == [
            label if label in task.labels else None for label in labels
        ]


def test_on_disk_they_are_the_same(trained: Model, data: ProbingData):
    """Beyond the limit of memory they are mapped from a file that has no name."""
    in_memory, on_disk = span_features(trained, data, PLENTY), span_features(trained, data, 1000)
    assert torch.equal(in_memory, on_disk) and in_memory.dtype == torch.float16
    assert "(deleted)" in Path("/proc/self/maps").read_text() if Path("/proc/self/maps").exists() else True


def test_the_number_of_cores_changes_no_bit(trained: Model, data: ProbingData, monkeypatch: pytest.MonkeyPatch):
    """Nor does the order in which batches come to their end."""
    monkeypatch.setattr(trained, "passes_at_once", 1)
    alone = span_features(trained, data, PLENTY)
    monkeypatch.setattr(trained, "passes_at_once", 3)
    assert torch.equal(alone, span_features(trained, data, PLENTY))
    assert np.isfinite(alone.numpy()).all()
