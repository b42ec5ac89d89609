"""Measurements on held-out text at every checkpoint: loss and accuracy by length, masking and position."""

from typing import Any

import numpy as np

from pretrain.collators import HeldOut, MaskedPairs
from pretrain.masking import MaskedBatch
from pretrain.model import PretrainingModel, Scores

BUCKET = 64  # positions whose accuracies are averaged together


class Measurement:
    """The held-out batches of a run and the functions that score them, compiled once for all checkpoints."""

    def __init__(self, model: PretrainingModel, heldout: list[HeldOut], counted: str = MaskedPairs.counted):
        self.heldout, self.objectives, self.counted = heldout, tuple(model.objectives), counted
        self.scores = {_shape(part.batches[0]): Scores(model) for part in heldout}

    def take(self) -> list[dict[str, Any]]:
        """Return the measures (see `measured`) of the model's current weights at each length, for each masking."""
        return [
            {"length": part.length, "masking": part.masking, **self._measured(part.batches)} for part in self.heldout
        ]

    def _measured(self, batches: list[MaskedBatch]) -> dict[str, Any]:
        scores = self.scores[_shape(batches[0])]
        return measured(self.objectives, batches, [scores.score_batch(batch) for batch in batches])


def measured(
    objectives: tuple[str, ...], batches: list[MaskedBatch], scored: list[dict[str, np.ndarray]]
) -> dict[str, Any]:
    """Return loss, accuracy and n, the number of predictions, of every objective over batches scored by `Scores`.

    The main objective has the keys "loss", "accuracy", "n" and, if it predicts tokens, "positions": accuracy and n of
    every 64 positions. Other objectives have a prefix, as in "sentence_order_accuracy". "baseline" is the accuracy of
    always giving the most frequent answer, for objectives that have one.
    """
    main, *others = objectives
    used, losses, right, *usual = _used(scored, main)
    means = _means(losses, right, *usual)
    positions = np.concatenate([batch.positions for batch in batches])
    if positions.shape == used.shape:
        means["positions"] = _by_position(positions[used], right)
    for name in others:
        means |= {f"{name}_{kind}": value for kind, value in _means(*_used(scored, name)[1:]).items()}
    return means


def _by_position(positions: np.ndarray, right: np.ndarray) -> list[dict[str, Any]]:
    buckets = positions // BUCKET * BUCKET
    return [
        {
            "first": first,
            "last": first + BUCKET - 1,
            "accuracy": _mean(right[buckets == first]),
            "n": int((buckets == first).sum()),
        }
        for first in np.unique(buckets).tolist()
    ]


def heldout_entry(measurement: Measurement, objectives: dict[str, str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure the current model; return two parts of a held-out row of the log: means, and counts with all measures."""
    measures = measurement.take()
    counts = {measurement.counted: measures[0]["n"], "n_sequences": measurement.heldout[0].sequences}
    return heldout_row(measures, objectives), counts | {"measures": measures}


def heldout_row(measures: list[dict[str, Any]], objectives: dict[str, str]) -> dict[str, float]:
    """Return the means of a held-out row: those of the first measure (shortest length, masked as in training)."""
    first, (main, *others) = measures[0], objectives
    losses = {main: first["loss"]} | {name: first[f"{name}_loss"] for name in others}
    accuracies = {main: first["accuracy"]} | {name: first[f"{name}_accuracy"] for name in others}
    row = {"loss": sum(losses.values())}
    for name in objectives:
        row |= {f"{name}_loss": losses[name], f"{name}_accuracy": accuracies[name]}
    return row | {f"{name}_baseline": first[f"{name}_baseline"] for name in others if f"{name}_baseline" in first}


def _used(scored: list[dict[str, np.ndarray]], name: str) -> list[np.ndarray]:
    """Return which predictions of an objective are used (bool [N, ...]), and the loss and correctness of those used.

    If the objective has a default answer, its correctness follows.
    """
    losses, right, weights, *usual = np.concatenate([outputs[name] for outputs in scored], axis=1)
    used = weights > 0
    return [used, *(each[used] for each in (losses, right, *usual))]


def _means(losses: np.ndarray, right: np.ndarray, usual: np.ndarray | None = None) -> dict[str, Any]:
    means = {"loss": _mean(losses), "accuracy": _mean(right), "n": len(right)}
    return means if usual is None else means | {"baseline": _mean(usual)}


def _shape(batch: MaskedBatch) -> tuple[int, ...]:
    return *batch.ids.shape, batch.positions.shape[1]


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64))
