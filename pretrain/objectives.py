"""The objectives of ALBERT's pretraining, one function each: logits and targets in, means and their counts out."""

from typing import Any, NamedTuple

from keras import ops


class Outcome(NamedTuple):
    """Mean loss (nats) and accuracy of one objective over `count` predictions; scalars of the backend."""

    loss: Any
    accuracy: Any
    count: Any


def masked_language_model(logits, labels, weights) -> Outcome:
    """Cross entropy over the masked positions: logits [B, P, V], labels [B, P], weights [B, P] (1 used, 0 not)."""
    largest = ops.max(logits, axis=-1, keepdims=True)
    normaliser = ops.log(ops.sum(ops.exp(logits - largest), axis=-1)) + largest[..., 0]
    true = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    right = ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")
    return _mean(normaliser - true, right, weights)


def sentence_order(logits, swapped) -> Outcome:
    """Cross entropy of the segments' order: logits [B, 2], swapped [B] (0 in order, 1 swapped)."""
    margin = (logits[:, 1] - logits[:, 0]) * (1.0 - 2.0 * ops.cast(swapped, "float32"))
    right = ops.cast(margin < 0, "float32")
    return _mean(ops.softplus(margin), right, ops.ones_like(right))


def _mean(loss, right, weights) -> Outcome:
    weights = ops.convert_to_tensor(weights)  # Keras on torch passes targets on as numpy arrays
    count = ops.maximum(ops.sum(weights), 1.0)
    return Outcome(ops.sum(loss * weights) / count, ops.sum(right * weights) / count, count)
