"""What is measured on held-out text at every checkpoint: loss and accuracy by length, masking and position."""

from typing import Any

import numpy as np

from pretrain.data import HeldOut
from pretrain.masking import MaskedBatch
from pretrain.model import Albert, Scores

BUCKET = 64  # positions counted together


class Measurement:
    """The held-out batches of a run and what scores them, compiled once for all checkpoints."""

    def __init__(self, model: Albert, heldout: list[HeldOut]):
        self.heldout = heldout
        self.scores = {_shape(part.batches[0]): Scores(model) for part in heldout}

    def take(self) -> list[dict[str, Any]]:
        """A measure for each length and masking, with the weights that the model has now; see `measured`."""
        return [
            {"length": part.length, "masking": part.masking, **self._measured(part.batches)} for part in self.heldout
        ]

    def _measured(self, batches: list[MaskedBatch]) -> dict[str, Any]:
        scores = self.scores[_shape(batches[0])]
        return measured(batches, [scores.of(batch) for batch in batches])


def measured(batches: list[MaskedBatch], scored: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Means over all predictions of these batches, as `Scores` gives them: of masked tokens and of sentence order.

    `n` and `sentence_order_n` count the predictions; "positions" has accuracy and n of each 64 positions.
    """
    used = np.concatenate([batch.weights for batch in batches]) > 0
    positions = np.concatenate([batch.positions for batch in batches])[used]
    losses, right = np.concatenate([found["masked_lm"] for found in scored], axis=1)[:, used]
    order_losses, order_right = np.concatenate([found["sentence_order"] for found in scored], axis=1)
    buckets = [(first, positions // BUCKET * BUCKET == first) for first in range(0, batches[0].ids.shape[1], BUCKET)]
    return {
        "loss": _mean(losses),
        "accuracy": _mean(right),
        "n": len(right),
        "positions": [
            {"first": first, "last": first + BUCKET - 1, "accuracy": _mean(right[there]), "n": int(there.sum())}
            for first, there in buckets
            if there.any()
        ],
        "sentence_order_loss": _mean(order_losses),
        "sentence_order_accuracy": _mean(order_right),
        "sentence_order_n": len(order_right),
    }


def as_in_training(measures: list[dict[str, Any]]) -> dict[str, float]:
    """The means of a held-out row of the log: those of its first measure, the shortest length masked as in training."""
    found = measures[0]
    return {
        "loss": found["loss"] + found["sentence_order_loss"],
        "masked_lm_loss": found["loss"],
        "masked_lm_accuracy": found["accuracy"],
        "sentence_order_loss": found["sentence_order_loss"],
        "sentence_order_accuracy": found["sentence_order_accuracy"],
    }


def _shape(batch: MaskedBatch) -> tuple[int, ...]:
    return *batch.ids.shape, batch.positions.shape[1]


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64))
