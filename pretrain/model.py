"""An encoder, its heads and its objectives as one Keras model, which trains on batches and scores predictions."""

from typing import Any

import keras
import numpy as np
from keras import ops

from pretrain.encoders import Decoder, Encoder
from pretrain.layers import build
from pretrain.masking import DRAWS, Batch
from pretrain.objectives import Detection, Objective, at_positions

Heads = dict[str, keras.layers.Layer]  # name of an objective -> head


class PretrainingModel(keras.Model):
    """An encoder with a head for each objective; the main objective comes first.

    Inputs: `Batch.inputs()`. Targets: `targets(batch, loss_weights)`. Loss: the weighted sum over the objectives.
    """

    def __init__(self, encoder: Encoder | Decoder, heads: Heads, objectives: dict[str, Objective]):
        super().__init__(name="model")
        self.encoder, self.heads, self.objectives = encoder, heads, objectives
        mean, total = keras.metrics.Mean, keras.metrics.Sum
        metric_classes = {"loss": mean, "accuracy": mean, "n": total}
        names = [(objective, quantity) for objective in objectives for quantity in metric_classes]
        self.trackers = {
            f"{name}_{quantity}": metric_classes[quantity](name=f"{name}_{quantity}") for name, quantity in names
        }
        self.by_shape: dict[tuple, Any] = {}  # shape of a batch -> compiled training function
        self.train_function: Any = None

    def build(self, *_):
        """Create all weights."""
        build({self.encoder: None} | dict.fromkeys(self.heads.values(), self.encoder.states_shape))

    def call(self, inputs, training=False):
        """Return the float32 logits of every head by the name of its objective."""
        return logits(self.encoder, self.heads, inputs, training)

    def train(self, batch: Batch, loss_weights: dict[str, float]) -> dict[str, float]:
        """Update the weights on a batch; return loss, accuracy and n of every objective, computed before the update.

        Keras would recompile its single function at every change of shape; here each shape of batch has a function.
        """
        shape = batch.ids.shape
        if shape not in self.by_shape:
            self.make_train_function(force=True)
            self.by_shape[shape] = self.train_function
        self.train_function = self.by_shape[shape]
        return self.train_on_batch(batch.inputs(), targets(batch, loss_weights), return_dict=True)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Return the weighted sum of the objectives' mean losses (nats)."""
        total = 0.0
        for name, objective in self.objectives.items():
            outcome = objective(y_pred[name], y)
            self.trackers[f"{name}_loss"].update_state(outcome.mean_loss, sample_weight=outcome.count)
            self.trackers[f"{name}_accuracy"].update_state(outcome.accuracy, sample_weight=outcome.count)
            self.trackers[f"{name}_n"].update_state(outcome.count)
            total = total + ops.mean(y[f"{name}_weight"]) * outcome.mean_loss
        return total

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Return loss, accuracy and n of every objective over the batch."""
        return {name: tracker.result() for name, tracker in self.trackers.items()}


def logits(encoder: Encoder | Decoder, heads: Heads, inputs, training: bool) -> dict:
    """Return the logits of each head; if all heads have `rows`, last states are computed only at these positions."""
    segments, mask = inputs["token_type_ids"], inputs["attention_mask"]
    if not all(hasattr(head, "rows") for head in heads.values()):
        states = encoder(inputs["ids"], segments, mask, training=training)[-1]
        return {name: head(states) for name, head in heads.items()}
    rows = [head.rows(inputs) for head in heads.values()]
    states = encoder(inputs["ids"], segments, mask, rows=ops.concatenate(rows, axis=1), training=training)[-1]
    by_objective, start = {}, 0
    for (name, head), rows_of_head in zip(heads.items(), rows, strict=True):
        end = start + ops.shape(rows_of_head)[1]
        by_objective[name], start = head(states[:, start:end]), end
    return by_objective


def targets(batch: Batch, loss_weights: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the targets of a batch, and the loss weight of each objective, repeated for every sequence."""
    weights = {f"{name}_weight": np.full(len(batch.ids), weight, np.float32) for name, weight in loss_weights.items()}
    return batch.targets() | weights


class GeneratorModel(PretrainingModel):
    """A model whose encoder reads text in which a generator filled the masks.

    The head "masked_lm" reads the generator's states; every other head reads all states of the encoder and gives the
    logits of a `Detection`. No gradient flows from the samples to the generator, which learns only from its objective.
    """

    def __init__(self, generator: Encoder, encoder: Encoder, heads: dict, objectives: dict):
        super().__init__(encoder, heads, objectives)
        self.generator = generator

    def build(self, *_):
        """Create all weights."""
        build({self.generator: None, self.heads["masked_lm"]: self.generator.states_shape})
        super().build()

    def call(self, inputs, training=False):
        """Return float32 logits of masked words, and each `Detection`, by the name of the objective."""
        segments, mask = inputs["token_type_ids"], inputs["attention_mask"]
        logits_of = logits(self.generator, {"masked_lm": self.heads["masked_lm"]}, inputs, training)
        samples = sample(ops.stop_gradient(logits_of["masked_lm"]), inputs["draws"])
        filled_ids = fill_masks(inputs["ids"], samples, inputs["positions"])
        states = self.encoder(filled_ids, segments, mask, training=training)
        for name, head in self.heads.items():
            if name != "masked_lm":
                logits_of[name] = Detection(head(states[-1]), samples)
        return logits_of


def sample(logits, draws):
    """Sample tokens [B, P] from the softmax of logits [B, P, V] at each position; draws [B, P] are uniform below DRAWS.

    A sample is the first token at which the cumulative probability exceeds draws / DRAWS, so the same draws give the
    same tokens on every backend of Keras, up to rounding.
    """
    cumulative = ops.cumsum(ops.softmax(logits), axis=-1)
    chance = ops.cast(draws, "float32") / DRAWS * cumulative[..., -1]
    is_passed = ops.cast(cumulative <= chance[..., None], "int32")
    return ops.minimum(ops.sum(is_passed, axis=-1), ops.shape(logits)[-1] - 1)


def fill_masks(ids, samples, positions):
    """Return ids [B, L] with the sampled tokens [B, P] at their positions [B, P]; position 0 means unused."""
    length = ops.shape(ids)[1]
    is_masked = at_positions(ops.ones_like(positions), positions, length) > 0
    return ops.where(is_masked, ops.cast(at_positions(samples, positions, length), "int32"), ids)


class Scores(keras.Model):
    """The loss and correctness of every single prediction of a model, and the correctness of the default answer.

    Each shape of batch needs its own `Scores`, since Keras recompiles it at every change of shape.
    """

    def __init__(self, model: PretrainingModel):
        super().__init__(name="scores", dtype="float32")
        self.model = model
        self.compile(optimizer=None, jit_compile=model.jit_compile)

    def call(self, inputs):
        """Return the fields of each objective's `Outcome` that are not None as one array: float32 [3 or 4, B, ...]."""
        logits = self.model(inputs)
        outcomes = {name: objective(logits[name], inputs) for name, objective in self.model.objectives.items()}
        return {
            name: ops.stack([values for values in outcome if values is not None]) for name, outcome in outcomes.items()
        }

    def score_batch(self, batch: Batch) -> dict[str, np.ndarray]:
        """Return the result of `call` for one batch, as numpy arrays."""
        return self.predict_on_batch(batch.inputs() | batch.targets())
