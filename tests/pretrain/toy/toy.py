"""A family of one file: two layers of their own, the order of sentences first and masked words second."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pretrain.config import MaskedConfig
from pretrain.examples import swapped
from pretrain.families.bert import LAYER_NAME, PARTS
from pretrain.family import Family, encoder_modules


@dataclass(frozen=True, kw_only=True)
class ToyConfig(MaskedConfig):
    """Settings of the toy: those of every model, and one."""

    family: ClassVar[str] = "toy"
    hidden_act: str = "gelu"
    order_weight: float = 0.5

    def problems(self) -> dict[str, bool]:
        return super().problems() | {f"order_weight {self.order_weight} is below 0": self.order_weight >= 0}


class Toy(Family[ToyConfig]):
    """Two layers of their own, embeddings as wide as the layers, sentence order first and masked words second."""

    name = "toy"
    presets: ClassVar = {
        "toy-tiny": ToyConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            vocab_size=500,
            max_position_embeddings=32,
            batch_size=4,
            sequence_length=32,
            steps=10,
            warmup_steps=2,
            learning_rate=1e-3,
            save_every=5,
            heldout_sequences=8,
            measured_sequences=0,
        )
    }

    def objectives(self, config: ToyConfig) -> dict[str, str]:
        return {"sentence_order": "order of two segments", "masked_lm": "masked words"}

    def pairing(self, config: ToyConfig):
        return swapped

    def model(self, config: ToyConfig):
        from pretrain import encoders, heads, layers, objectives
        from pretrain.model import PretrainingModel

        common = {"stddev": config.initializer_range, "epsilon": config.layer_norm_eps}
        embeddings = layers.Embeddings(config, config.hidden_size)
        return PretrainingModel(
            encoders.Encoder(embeddings, layers.stack(config), name="encoder"),
            heads={
                "sentence_order": heads.PairHead(config.hidden_size, stddev=config.initializer_range, name="order"),
                "masked_lm": heads.MaskedWordHead(embeddings, activation=layers.gelu, name="words", **common),
            },
            objectives={"sentence_order": objectives.sentence_pair, "masked_lm": objectives.predicted_tokens},
        )

    def modules(self, model) -> dict[str, Any]:
        order, words = model.heads["sentence_order"], model.heads["masked_lm"]
        return encoder_modules("toy", model.encoder, LAYER_NAME, PARTS) | {
            "words.dense": words.transform,
            "words.norm": words.norm,
            "words.bias": words.bias,
            "order.pooler": order.pooler,
            "order.classifier": order.classifier,
        }

    def huggingface_config(self, config: ToyConfig) -> dict[str, Any]:
        return config.architecture() | {
            "model_type": "toy",
            "architectures": ["ToyForPreTraining"],
        }

    def loss_weights(self, config: ToyConfig, step: int) -> dict[str, float]:
        return {"sentence_order": config.order_weight, "masked_lm": 1.0}


FAMILY = Toy()
