"""The objectives of pretraining, one function each: logits of its head and the batch's targets in, an `Outcome` out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops


class Outcome(NamedTuple):
    """Losses and correctness of one objective's predictions; float32 tensors of the backend, all of one shape."""

    losses: Any  # cross entropy in nats
    correct: Any  # 1 if the prediction is the target, else 0
    weights: Any  # 1 for a prediction, 0 for padding
    baseline_correct: Any = None  # 1 if the target is the most frequent answer; None if there is no such answer

    @property
    def count(self):
        """Return the number of predictions."""
        return ops.sum(self.weights)

    @property
    def mean_loss(self):
        """Return the loss per prediction; 0 without predictions."""
        return ops.sum(self.losses * self.weights) / ops.maximum(self.count, 1.0)

    @property
    def accuracy(self):
        """Return the share of correct predictions; 0 without predictions."""
        return ops.sum(self.correct * self.weights) / ops.maximum(self.count, 1.0)


Objective = Callable[[Any, dict[str, Any]], Outcome]


def predicted_tokens(logits, targets) -> Outcome:
    """Compute the loss of masked or next tokens: logits [B, P, V]; labels [B, P]; weights [B, P], 0 if unused."""
    labels = ops.convert_to_tensor(targets["labels"])  # NumPy arrays with the torch backend, like the weights
    by_token = ops.reshape(logits, (-1, ops.shape(logits)[-1]))  # (B P, V), the fast shape for torch
    losses = ops.sparse_categorical_crossentropy(ops.reshape(labels, (-1,)), by_token, from_logits=True)
    correct = ops.cast(ops.equal(argmax(logits), labels), "float32")
    return Outcome(ops.reshape(losses, ops.shape(labels)), correct, ops.convert_to_tensor(targets["weights"]))


def argmax(logits):
    """Return the first index of the largest of logits [..., V]: int32 [...].

    XLA on a CPU compiles argmax to a scalar loop, which took 7 % of an ALBERT's update; it vectorises the maximum and
    minimum used here.
    """
    if keras.backend.backend() == "torch":
        return ops.argmax(logits, axis=-1)
    size = ops.shape(logits)[-1]
    is_largest = ops.equal(logits, ops.max(logits, axis=-1, keepdims=True))
    return ops.min(ops.where(is_largest, ops.arange(size, dtype="int32"), size), axis=-1)


def sentence_pair(logits, targets) -> Outcome:
    """Compute the loss of the relation of two segments: logits [B, 2]; pair [B], 0 if B follows A, else 1."""
    margin = (logits[:, 1] - logits[:, 0]) * (1.0 - 2.0 * ops.cast(targets["pair"], "float32"))
    correct = ops.cast(margin < 0, "float32")
    return Outcome(ops.softplus(margin), correct, ops.ones_like(correct))


class Detection(NamedTuple):
    """The logits of a detector of replaced tokens, and the sampled tokens."""

    logits: Any  # [B, L], above 0: replaced
    sampled: Any  # [B, P], the tokens sampled at the masked positions


def replaced_tokens(detection: Detection, targets) -> Outcome:
    """Compute the loss of detecting replaced tokens, over all tokens; a sample equal to the original is not one."""
    is_other = ops.cast(ops.not_equal(detection.sampled, targets["labels"]), "float32")
    is_replaced = at_positions(is_other, targets["positions"], ops.shape(detection.logits)[1])
    correct = ops.cast(ops.equal(detection.logits > 0, is_replaced > 0), "float32")
    losses = ops.softplus(detection.logits) - detection.logits * is_replaced
    return Outcome(losses, correct, ops.cast(targets["attention_mask"], "float32"), baseline_correct=1.0 - is_replaced)


def at_positions(values, positions, length: int):
    """Scatter values [B, P] to positions [B, P], with 0 elsewhere: float32 [B, L]. Position 0, [CLS], is unused."""
    selection = ops.one_hot(positions, length, dtype="float32")  # (B, P, L)
    used_values = ops.cast(positions > 0, "float32") * ops.cast(values, "float32")
    return ops.sum(selection * used_values[:, :, None], axis=1)
