"""ALBERT for pretraining as one Keras model: encoder, both heads, both objectives, and what is logged of them."""

import keras

from pretrain.config import Config
from pretrain.encoder import Encoder
from pretrain.heads import MaskedLanguageModelHead, SentenceOrderHead
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

    def call(self, inputs, training=False):
        """Logits of both heads: {"masked_lm": [B, P, V], "sentence_order": [B, 2]}, float32."""
        states = self.encoder(
            inputs["ids"], inputs["token_type_ids"], inputs["attention_mask"], training=training
        )[-1]
        return {
            "masked_lm": self.masked_language_model(states, inputs["positions"]),
            "sentence_order": self.sentence_order(states),
        }

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Sum of the two objectives' mean losses, in nats."""
        masked = masked_language_model(y_pred["masked_lm"], y["labels"], y["weights"])
        order = sentence_order(y_pred["sentence_order"], y["swapped"])
        for name, outcome in (("masked_lm", masked), ("sentence_order", order)):
            self.trackers[f"{name}_loss"].update_state(outcome.loss, sample_weight=outcome.count)
            self.trackers[f"{name}_accuracy"].update_state(outcome.accuracy, sample_weight=outcome.count)
        return masked.loss + order.loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Loss and accuracy of both objectives over the batch: Keras resets the trackers before each."""
        return {name: tracker.result() for name, tracker in self.trackers.items()}
