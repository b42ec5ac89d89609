"""ALBERT for pretraining as one Keras model: encoder, both heads, both objectives, and what is logged of them."""

import keras
import numpy as np
from keras import ops

from pretrain.config import Config
from pretrain.encoder import Encoder
from pretrain.heads import MaskedLanguageModelHead, SentenceOrderHead
from pretrain.masking import MaskedBatch
from pretrain.objectives import masked_language_model, sentence_order


class Albert(keras.Model):
    """Inputs: `MaskedBatch.inputs()`; targets: `MaskedBatch.targets()`; loss: masked tokens plus sentence order."""

    def __init__(self, config: Config):
        super().__init__(name="albert")
        self.encoder = Encoder(config, name="encoder")
        self.masked_language_model = MaskedLanguageModelHead(config, self.encoder.embeddings, name="predictions")
        self.sentence_order = SentenceOrderHead(config, name="sentence_order")
        names = ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss", "sentence_order_accuracy")
        self.trackers = {name: keras.metrics.Mean(name=name) for name in names}
        self.by_shape = {}  # compiled training functions

    def call(self, inputs, training=False):
        """Logits of both heads: {"masked_lm": [B, P, V], "sentence_order": [B, 2]}, float32."""
        states = self.encoder(
            inputs["ids"], inputs["token_type_ids"], inputs["attention_mask"], training=training
        )[-1]
        return {
            "masked_lm": self.masked_language_model(states, inputs["positions"]),
            "sentence_order": self.sentence_order(states),
        }

    def train(self, batch: MaskedBatch) -> dict[str, float]:
        """One update on this batch; returns the means of both objectives before it.

        Each shape of batch has a compiled function of its own, because Keras's single one is made anew whenever the
        shape is another than before.
        """
        shape = batch.ids.shape
        if shape not in self.by_shape:
            self.make_train_function(force=True)
            self.by_shape[shape] = self.train_function
        self.train_function = self.by_shape[shape]
        return self.train_on_batch(batch.inputs(), batch.targets(), return_dict=True)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Mean loss of the masked tokens plus the weighted one of the sentence order, in nats."""
        masked = masked_language_model(y_pred["masked_lm"], y["labels"], y["weights"])
        order = sentence_order(y_pred["sentence_order"], y["swapped"])
        for name, outcome in (("masked_lm", masked), ("sentence_order", order)):
            self.trackers[f"{name}_loss"].update_state(outcome.mean_loss, sample_weight=outcome.count)
            self.trackers[f"{name}_accuracy"].update_state(outcome.accuracy, sample_weight=outcome.count)
        return masked.mean_loss + ops.mean(y["order_weights"]) * order.mean_loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Loss and accuracy of both objectives over the batch: Keras resets the trackers before each."""
        return {name: tracker.result() for name, tracker in self.trackers.items()}


class Scores(keras.Model):
    """Loss and correctness of every single prediction of a model, without training it.

    Each shape of batch needs a `Scores` of its own, or Keras compiles it anew at every change of shape.
    """

    def __init__(self, model: Albert):
        super().__init__(name="scores")
        self.model = model
        self.compile(optimizer=None, jit_compile=model.jit_compile)

    def call(self, inputs):
        """Losses and whether each prediction is right: {"masked_lm": [2, B, P], "sentence_order": [2, B]}, float32."""
        logits = self.model(inputs)
        masked = masked_language_model(logits["masked_lm"], inputs["labels"], inputs["weights"])
        order = sentence_order(logits["sentence_order"], inputs["swapped"])
        return {
            "masked_lm": ops.stack([masked.losses, masked.right]),
            "sentence_order": ops.stack([order.losses, order.right]),
        }

    def of(self, batch: MaskedBatch) -> dict[str, np.ndarray]:
        """The same for one batch, as numpy arrays."""
        return self.predict_on_batch(batch.inputs() | batch.targets())
