"""A model of two encoders: a generator fills the masks with samples, and the main encoder reads the filled text."""

from keras import ops

from pretrain.layers import Encoder, build
from pretrain.masking import DRAWS
from pretrain.model import PretrainingModel, logits
from pretrain.objectives import Detection, at_positions


class GeneratorModel(PretrainingModel):
    """The head "masked_lm" reads the generator; every other head reads all of the main encoder and gives a `Detection`.

    No gradient flows from the samples to the generator, which learns from its own objective alone.
    """

    def __init__(self, generator: Encoder, encoder: Encoder, heads: dict, objectives: dict):
        super().__init__(encoder, heads, objectives)
        self.generator = generator

    def build(self, *_):
        """Make all weights."""
        build({self.generator: None, self.heads["masked_lm"]: self.generator.states_shape})
        super().build()

    def call(self, inputs, training=False):
        """Logits of masked words and detections by the names of their objectives, float32."""
        segments, mask = inputs["token_type_ids"], inputs["attention_mask"]
        found = logits(self.generator, {"masked_lm": self.heads["masked_lm"]}, inputs, training)
        sampled = sample(ops.stop_gradient(found["masked_lm"]), inputs["draws"])
        filled = filled_in(inputs["ids"], sampled, inputs["positions"])
        states = self.encoder(filled, segments, mask, training=training)
        for name, head in self.heads.items():
            if name != "masked_lm":
                found[name] = Detection(head(states[-1]), sampled)
        return found


def sample(logits, draws):
    """A token [B, P] at each position by the softmax of logits [B, P, V]; draws [B, P] are uniform below DRAWS.

    The token at which the cumulative probability passes draws / DRAWS: the same draws give the same tokens whatever
    Keras computes with, but for rounding.
    """
    cumulative = ops.cumsum(ops.softmax(logits), axis=-1)
    chance = ops.cast(draws, "float32") / DRAWS * cumulative[..., -1]
    passed = ops.cast(cumulative <= chance[..., None], "int32")
    return ops.minimum(ops.sum(passed, axis=-1), ops.shape(logits)[-1] - 1)


def filled_in(ids, sampled, positions):
    """ids [B, L] with the sampled tokens [B, P] at their positions [B, P]; position 0 is an unused one."""
    length = ops.shape(ids)[1]
    masked = at_positions(ops.ones_like(positions), positions, length) > 0
    return ops.where(masked, ops.cast(at_positions(sampled, positions, length), "int32"), ids)
