"""Measurements on held-out text at every checkpoint: loss and accuracy by length, masking and position."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pretrain.collators import HeldoutBatches, MaskedPairCollator
from pretrain.masking import Batch
from pretrain.model import PretrainingModel, Scores

BUCKET_SIZE = 64  # positions whose accuracies are averaged together


class HeldoutEvaluator:
    """The held-out batches of a run and the functions that score them, compiled once for all checkpoints."""

    def __init__(
        self, model: PretrainingModel, heldout: list[HeldoutBatches], count_key: str = MaskedPairCollator.count_key
    ):
        self.heldout, self.objectives, self.count_key = heldout, tuple(model.objectives), count_key
        self.scores = {_shape(sample.batches[0]): Scores(model) for sample in heldout}

    def measure(self) -> list[dict[str, Any]]:
        """Return the measures (see `summarise`) of the model's current weights at each length, for each masking."""
        return [
            {"length": sample.length, "masking": sample.masking}
            | summarise(
                self.objectives,
                sample.batches,
                [self.scores[_shape(batch)].score_batch(batch) for batch in sample.batches],
            )
            for sample in self.heldout
        ]


def summarise(
    objectives: tuple[str, ...], batches: list[Batch], outputs: list[dict[str, np.ndarray]]
) -> dict[str, Any]:
    """Return loss, accuracy and n, the number of predictions, of every objective over batches scored by `Scores`.

    The main objective has the keys "loss", "accuracy", "n" and, if it predicts tokens, "positions": accuracy and n of
    every 64 positions. Other objectives have a prefix, as in "sentence_order_accuracy". "baseline" is the accuracy of
    always giving the most frequent answer, for objectives that have one.
    """
    main_objective, *other_names = objectives
    is_used, losses, correct, *default_answers = _used(outputs, main_objective)
    result = _means(losses, correct, *default_answers)
    positions = np.concatenate([batch.positions for batch in batches])
    if positions.shape == is_used.shape:
        result["positions"] = _by_position(positions[is_used], correct)
    for name in other_names:
        result |= {f"{name}_{quantity}": value for quantity, value in _means(*_used(outputs, name)[1:]).items()}
    return result


def _by_position(positions: np.ndarray, correct: np.ndarray) -> list[dict[str, Any]]:
    buckets = positions // BUCKET_SIZE * BUCKET_SIZE
    return [
        {
            "first": start,
            "last": start + BUCKET_SIZE - 1,
            "accuracy": _mean(correct[buckets == start]),
            "n": int((buckets == start).sum()),
        }
        for start in np.unique(buckets).tolist()
    ]


def heldout_entry(evaluator: HeldoutEvaluator) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure the current model; return two parts of a held-out row of the log: means, and counts with all measures."""
    measures = evaluator.measure()
    counts = {evaluator.count_key: measures[0]["n"], "n_sequences": evaluator.heldout[0].sequences}
    return heldout_row(measures, evaluator.objectives), counts | {"measures": measures}


def heldout_row(measures: list[dict[str, Any]], objectives: Iterable[str]) -> dict[str, float]:
    """Return the means of a held-out row: those of the first measure (shortest length, masked as in training)."""
    first_measure, (main_objective, *other_names) = measures[0], objectives
    prefixes = {main_objective: ""} | {name: f"{name}_" for name in other_names}
    row = {"loss": sum(first_measure[f"{prefix}loss"] for prefix in prefixes.values())}
    for name, prefix in prefixes.items():
        row |= {f"{name}_{kind}": first_measure[prefix + kind] for kind in ("loss", "accuracy")}
    return row | {
        f"{name}_baseline": first_measure[f"{name}_baseline"]
        for name in other_names
        if f"{name}_baseline" in first_measure
    }


def _used(outputs: list[dict[str, np.ndarray]], name: str) -> list[np.ndarray]:
    """Return which predictions of an objective are used (bool [N, ...]), and the loss and correctness of those used.

    If the objective has a default answer, its correctness follows.
    """
    losses, correct, weights, *default_answers = np.concatenate([output[name] for output in outputs], axis=1)
    is_used = weights > 0
    return [is_used, *(values[is_used] for values in (losses, correct, *default_answers))]


def _means(losses: np.ndarray, correct: np.ndarray, baseline_correct: np.ndarray | None = None) -> dict[str, Any]:
    result = {"loss": _mean(losses), "accuracy": _mean(correct), "n": len(correct)}
    return result if baseline_correct is None else result | {"baseline": _mean(baseline_correct)}


def _shape(batch: Batch) -> tuple[int, ...]:
    return *batch.ids.shape, batch.positions.shape[1]


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64))
