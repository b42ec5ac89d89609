"""Tests of held-out measures against a slow computation from the logits, one prediction at a time."""

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops

from pretrain.batches import Data
from pretrain.families import FAMILIES, preset
from pretrain.measure import HeldoutEvaluator, heldout_entry, heldout_row, summarise
from pretrain.model import PretrainingModel


def test_measures_equal_those_from_the_logits(model: PretrainingModel, data: Data, monkeypatch: pytest.MonkeyPatch):
    """For every length and masking, all positions, each bucket of positions and sentence order are compared."""
    monkeypatch.setattr("pretrain.measure.BUCKET_SIZE", 16)
    heldout = list(data.heldout())
    measures = HeldoutEvaluator(model, heldout).measure()
    assert [(row["length"], row["masking"]) for row in measures] == [(p.length, p.masking) for p in heldout]
    for part, row in zip(heldout, measures, strict=True):
        losses, right, orders = [], defaultdict(list), []
        for batch in part.batches:
            logits = {name: np.array(ops.convert_to_numpy(each)) for name, each in model(batch.inputs()).items()}
            for at in zip(*np.nonzero(batch.weights), strict=True):
                scores = logits["masked_lm"][at].astype(np.float64)
                losses.append(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[batch.labels[at]])
                right[batch.positions[at] // 16].append(scores.argmax() == batch.labels[at])
            orders += (logits["sentence_order"].argmax(1) == batch.pair).tolist()
        everything = [each for there in right.values() for each in there]
        assert row["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
        assert (row["accuracy"], row["n"]) == (pytest.approx(np.mean(everything)), len(everything))
        assert row["sentence_order_accuracy"] == pytest.approx(np.mean(orders))
        assert row["sentence_order_n"] == len(orders)
        assert [(b["first"], b["last"], b["n"], b["accuracy"]) for b in row["positions"]] == [
            (16 * b, 16 * b + 15, len(right[b]), pytest.approx(np.mean(right[b]))) for b in sorted(right)
        ]


def test_heldout_row_has_the_values_of_the_first_measure(model: PretrainingModel, data: Data):
    """The first measure is masked as in training; the loss of the row is the sum of both objectives."""
    measures = HeldoutEvaluator(model, list(data.heldout())[:1]).measure()
    actual = heldout_row(measures, FAMILIES["albert"].objectives(preset("tiny")))
    assert actual["masked_lm_loss"] == measures[0]["loss"] and measures[0]["masking"] == "training"
    assert actual["sentence_order_accuracy"] == measures[0]["sentence_order_accuracy"]
    assert actual["loss"] == pytest.approx(measures[0]["loss"] + measures[0]["sentence_order_loss"])


def test_baseline_is_the_accuracy_of_the_most_frequent_answer():
    """It is a mean over the counted predictions of all batches; for ELECTRA, the most frequent answer is "original"."""
    rng = np.random.default_rng(0)
    scored = [{name: rng.random((4, 3, 5)) for name in ("own", "other")} for _ in range(2)]
    for each in scored:
        for numbers in each.values():
            numbers[2] = numbers[2] > 0.5  # 1 for predictions that count
    positions = [SimpleNamespace(positions=np.zeros((3, 2), int))] * 2  # shaped for another objective
    actual = summarise(("own", "other"), positions, scored)
    for name, prefix in (("own", ""), ("other", "other_")):
        counted = [rows for each in scored for rows in each[name].reshape(4, -1).T.tolist() if rows[2]]
        losses, right, _, usual = zip(*counted, strict=True)
        assert actual[f"{prefix}n"] == len(counted)
        for kind, values in (("loss", losses), ("accuracy", right), ("baseline", usual)):
            assert actual[prefix + kind] == pytest.approx(sum(values) / len(counted))


def test_log_row_has_the_means_of_the_first_measure():
    """The loss is the sum over objectives, the counts are those of the first measure, and all measures are kept."""
    first = {"loss": 2.0, "accuracy": 0.5, "n": 10}
    first |= {"tokens_loss": 0.25, "tokens_accuracy": 0.875, "tokens_n": 40, "tokens_baseline": 0.75}
    measures = [first, {name: value + 1 for name, value in first.items()}]
    heldout = [SimpleNamespace(sequences=4), SimpleNamespace(sequences=2)]
    objectives = ("words", "tokens")
    evaluator = SimpleNamespace(measure=lambda: measures, heldout=heldout, objectives=objectives, count_key="n_masked")
    row, more = heldout_entry(evaluator)
    assert row == {
        "loss": 2.25,
        "words_loss": 2.0,
        "words_accuracy": 0.5,
        "tokens_loss": 0.25,
        "tokens_accuracy": 0.875,
        "tokens_baseline": 0.75,
    }
    assert more == {"n_masked": 10, "n_sequences": 4, "measures": measures}
