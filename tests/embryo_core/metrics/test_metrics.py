"""Tests of what all metrics have in common: their contract, their names and their batches."""

import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from embryo_core import metrics, results
from embryo_core.engine.model import load
from embryo_core.errors import UnknownMetric
from embryo_core.metric import Page
from embryo_core.metrics import METRICS
from embryo_core.metrics.batches import compute_in_order, equal_length_batches
from tests.conftest import checkpoint_at, copy_run
from tests.embryo_core.metrics.conftest import read


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_metric_keeps_its_contract(metric, trained_model, electra, gpt2, tmp_path, short_probing):
    """It describes the data it reads, and computes findings that the store accepts, the same ones in a second run."""
    assert metric.page in get_args(Page) and metric.form
    assert metric.needs <= {"masked_words", "next_words", "words", "replaced_tokens", "states", "attentions"}
    model = next(model for model in (trained_model, load(electra), gpt2) if metric.needs <= model.capabilities)
    data = read(metric, model)
    assert data.summary["note"]
    findings = metric.compute(model, data)
    own = copy_run(model.checkpoint.run, tmp_path)
    results.write(checkpoint_at(own, 16), metric.name, findings)
    assert results.steps_by_metric(own)[metric.name] == {16}
    again = metric.compute(model, data)
    for rows in ("scores", "words", "cloze", "variants", "pairs", "surprisals", "grams", "probes"):
        assert getattr(findings, rows) == getattr(again, rows)
    for one, other in zip(findings.attention, again.attention, strict=True):
        assert np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize("name", ["mask_prediction", "head_behaviour", "attention", "positions"])
def test_note_of_one_sentence_is_singular(name, trained_model, tmp_path):
    rows = [("the", "DT", 2), ("cat", "NN", 0), ("sat", "VBD", 2)]
    lines = [f"{i}\t{word}\t_\t_\t{tag}\t_\t{head}\t_\t_\t_" for i, (word, tag, head) in enumerate(rows, start=1)]
    (tmp_path / "one.conllu").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (metric,) = metrics.get_metrics([name])
    note = read(metric, trained_model, tmp_path / "one.conllu").summary["note"]
    assert "1 sentence of one.conllu" in note


def test_metric_names_are_unique():
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_unknown_metric_is_reported_with_the_nearest_name():
    """Known metrics come in the order of METRICS, each once."""
    names = ["world_knowledge", "token_reconstruction", "world_knowledge"]
    assert [metric.name for metric in metrics.get_metrics(names)] == ["token_reconstruction", "world_knowledge"]
    with pytest.raises(UnknownMetric, match="Did you mean 'mask_prediction'"):
        metrics.get_metrics(["mask_predictions"])


def test_list_of_metrics_imports_no_torch():
    """A page can list the metrics without loading a model's libraries."""
    code = "import sys, embryo_core.metrics; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# === Batches ===


def test_batches_hold_every_sequence_once():
    """The sequences of a batch have equal lengths; only a single sequence may exceed the budget."""
    lengths = np.array([3, 5, 3, 90, 5, 3, 3, 41])
    batches = list(equal_length_batches(lengths, tokens=10))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(set(lengths[batch])) == 1
        assert len(batch) == 1 or lengths[batch].sum() <= 10
    assert list(equal_length_batches(np.array([], int), tokens=10)) == []


def test_error_in_a_batch_is_raised():
    def fail(batch: np.ndarray) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(compute_in_order(np.full(100, 5), 2, fail, tokens=5))
