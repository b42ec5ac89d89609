"""The objectives of ALBERT's pretraining, one function each: logits and targets in, means and their counts out."""

from typing import Any, NamedTuple

from keras import ops


class Outcome(NamedTuple):
    """What one objective makes of each of its predictions; tensors of the backend, all of one shape."""

    losses: Any  # cross entropy in nats, float32
    right: Any  # 1 where the prediction is the target, else 0, float32
    weights: Any  # 1 where there is something to predict, 0 where the arrays are only filled up, float32

    @property
    def count(self):
        """How many predictions there are, at least 1."""
        return ops.maximum(ops.sum(self.weights), 1.0)

    @property
    def mean_loss(self):
        """Loss per prediction."""
        return ops.sum(self.losses * self.weights) / self.count

    @property
    def accuracy(self):
        """Share of the predictions that are right."""
        return ops.sum(self.right * self.weights) / self.count


def masked_language_model(logits, labels, weights) -> Outcome:
    """Cross entropy over the masked positions: logits [B, P, V], labels [B, P], weights [B, P] (1 used, 0 not)."""
    largest = ops.max(logits, axis=-1, keepdims=True)
    logsumexp = ops.log(ops.sum(ops.exp(logits - largest), axis=-1)) + largest[..., 0]
    true = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    right = ops.cast(ops.equal(ops.argmax(logits, axis=-1), labels), "float32")
    return Outcome(logsumexp - true, right, ops.convert_to_tensor(weights))  # numpy where Keras runs on torch


def sentence_order(logits, swapped) -> Outcome:
    """Cross entropy of the segments' order: logits [B, 2], swapped [B] (0 in order, 1 swapped)."""
    margin = (logits[:, 1] - logits[:, 0]) * (1.0 - 2.0 * ops.cast(swapped, "float32"))
    right = ops.cast(margin < 0, "float32")
    return Outcome(ops.softplus(margin), right, ops.ones_like(right))
