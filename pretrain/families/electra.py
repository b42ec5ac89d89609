"""ELECTRA (Clark et al., 2020): a small generator fills masks with samples, which a discriminator detects."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pretrain.config import SMOKE_SETTINGS, MaskedConfig
from pretrain.families.bert import LAYER_NAME, PARTS
from pretrain.family import Family, encoder_modules
from pretrain.originals import EMBEDDING_PATTERN, LAYER_PATTERN, OriginalFormat


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(MaskedConfig):
    """Settings of an ELECTRA; the sizes common to all families are the discriminator's."""

    family: ClassVar[str] = "electra"

    # The defaults hold for every preset. They are from google-research/electra: configure_pretraining.py, unless
    # another file is named.
    tokenizer: str = "wordpiece"
    vocab_size: int = 30_522
    max_position_embeddings: int = 512  # model/modeling.py, BertConfig, as the next four
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    mask_token_share: float = 0.85  # pretrain/pretrain_helpers.py, mask, as the next
    random_token_share: float = 0.0
    masked_share: float = 0.15  # mask_prob
    whole_words: bool = False
    max_ngram: int = 1
    optimizer: str = "adamw_bert"  # model/optimization.py, as beta_1, beta_2, epsilon and clip_norm
    decay_power: float = 1.0  # lr_decay_power
    weight_decay: float = 0.01  # weight_decay_rate
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    save_every: int = 1_000  # save_checkpoints_steps
    embedding_size: int  # size of the embeddings, which generator and discriminator share
    generator_size: float  # hidden size of the generator, as a share of the discriminator's (generator_hidden_size)
    generator_weight: float = 1.0  # weight of the generator's loss (gen_weight)
    discriminator_weight: float = 50.0  # weight of the discriminator's loss (disc_weight)

    def problems(self) -> dict[str, bool]:
        """Add the rules of embeddings, generator and weights."""
        checks = super().problems() | {
            f"embedding_size {self.embedding_size} must be at least 1": self.embedding_size >= 1,
            f"generator_size {self.generator_size} must be above 0 and at most 1": 0 < self.generator_size <= 1,
        }
        hidden, heads = self.generator["hidden_size"], self.generator["num_attention_heads"]
        checks[f"the generator's {hidden} (generator_size {self.generator_size}) is not divisible by {heads} heads"] = (
            hidden > 0 and hidden % heads == 0
        )
        for name in ("generator_weight", "discriminator_weight"):
            checks[f"{name} {getattr(self, name)} is below 0"] = getattr(self, name) >= 0
        return checks

    @property
    def generator(self) -> dict[str, int]:
        """Return the generator's sizes that differ from the discriminator's (as in run_pretraining.py)."""
        hidden = round(self.hidden_size * self.generator_size)
        heads = max(1, hidden // 64)
        return {"hidden_size": hidden, "num_attention_heads": heads, "intermediate_size": 4 * hidden}


PRESETS = {
    # configure_pretraining.py, the model of size "small", which is the default.
    "electra-small": ElectraConfig(
        hidden_size=256,  # util/training_utils.py, as the next three
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=1024,
        embedding_size=128,
        generator_size=0.25,
        batch_size=128,  # train_batch_size
        sequence_length=128,  # max_seq_length
        steps=1_000_000,  # num_train_steps
        warmup_steps=10_000,  # num_warmup_steps
        learning_rate=5e-4,
    ),
    # The numbers for "base" in the comment at the end of configure_pretraining.py, and Table 6 of Clark et al.
    "electra-base": ElectraConfig(
        hidden_size=768,  # util/training_utils.py, as the next three
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        embedding_size=768,
        generator_size=1 / 3,  # generator_hidden_size 0.33333
        batch_size=256,
        sequence_length=512,
        steps=766_000,  # Table 6
        warmup_steps=10_000,  # Table 6
        learning_rate=2e-4,
    ),
    "electra-tiny": ElectraConfig(
        embedding_size=16,
        generator_size=0.5,
        learning_rate=3e-3,
        measured_sequences=16,
        **SMOKE_SETTINGS,
    ),
}


ORIGINAL = OriginalFormat(
    mark="electra/encoder/",
    scopes={
        rf"electra/{EMBEDDING_PATTERN}": r"electra.embeddings.\1_embeddings",
        r"electra/embeddings/LayerNorm": "electra.embeddings.LayerNorm",
        rf"(?:electra|generator)/{LAYER_PATTERN}": r"electra.encoder.layer.\1.\2",
        r"(?:electra|generator)/embeddings_project": "electra.embeddings_project",
        r"discriminator_predictions/dense": "discriminator_predictions.dense",
        r"discriminator_predictions/dense_1": "discriminator_predictions.dense_prediction",
        r"generator_predictions/(dense|LayerNorm)": r"generator_predictions.\1",
        r"generator_predictions": "generator_lm_head",
    },
    head_size=64,
)


class Electra(Family[ElectraConfig]):
    """ELECTRA as in google-research/electra; a checkpoint is an ElectraForPreTraining with generator/ inside it."""

    name = "electra"
    presets: ClassVar = PRESETS
    original: ClassVar = ORIGINAL

    def objectives(self, config: ElectraConfig) -> dict[str, str]:
        """Return the generator's objective, masked words, and the discriminator's, replaced tokens."""
        return {"masked_lm": "masked language model", "replaced_token": "replaced token detection"}

    def loss_weights(self, config: ElectraConfig, step: int) -> dict[str, float]:
        """Return the weights of the configuration, the same at every step."""
        return {"masked_lm": config.generator_weight, "replaced_token": config.discriminator_weight}

    def model(self, config: ElectraConfig):
        """Build two encoders on the same embeddings, and a head for each."""
        from pretrain import heads, layers, objectives
        from pretrain.model import GeneratorModel

        embeddings = layers.Embeddings(config, config.embedding_size)
        initial = {"stddev": config.initializer_range}
        words = heads.MaskedWordHead(  # GELU by the error function, whatever hidden_act is, as in transformers
            embeddings, activation=layers.gelu, epsilon=config.layer_norm_eps, name="predictions", **initial
        )
        tokens = heads.TokenHead(
            config.hidden_size, activation=layers.activation(config.hidden_act), name="replaced_token", **initial
        )
        return GeneratorModel(
            self._encoder(config, embeddings, "generator", **config.generator),
            self._encoder(config, embeddings, "encoder"),
            heads={"masked_lm": words, "replaced_token": tokens},
            objectives={
                "masked_lm": objectives.predicted_tokens,
                "replaced_token": objectives.replaced_tokens,
            },
        )

    def _encoder(self, config: ElectraConfig, embeddings, name: str, **sizes: Any):
        """Build an encoder; embeddings of another size than its hidden states are projected."""
        import keras

        from pretrain import encoders, layers

        transformer = layers.stack(config, **sizes)
        hidden_size, projection = sizes.get("hidden_size", config.hidden_size), None
        if config.embedding_size != hidden_size:
            projection = keras.layers.Dense(hidden_size, name="projection")  # Glorot's weights, as in the original
        return encoders.Encoder(embeddings, transformer, projection, name=name)

    def modules(self, model) -> dict[str, Any]:
        """Return weights by their names in transformers' ElectraForPreTraining, which is the discriminator."""
        head = model.heads["replaced_token"]
        return _encoder_modules(model.encoder) | {
            "discriminator_predictions.dense": head.transform,
            "discriminator_predictions.dense_prediction": head.classifier,
        }

    def inner_checkpoints(self, config: ElectraConfig, model) -> dict[str, tuple[dict, dict]]:
        """Return the generator, for the folder generator/, with names as in transformers' ElectraForMaskedLM."""
        head = model.heads["masked_lm"]
        modules = _encoder_modules(model.generator) | {
            "generator_predictions.dense": head.transform,
            "generator_predictions.LayerNorm": head.norm,
            "generator_lm_head.bias": head.bias,
        }
        architecture = {"architectures": ["ElectraForMaskedLM"]} | config.generator
        return {"generator": (modules, self.huggingface_config(config) | architecture)}

    def huggingface_config(self, config: ElectraConfig) -> dict[str, Any]:
        """Return config.json of the discriminator."""
        return config.architecture() | {
            "architectures": ["ElectraForPreTraining"],
            "model_type": "electra",
            "embedding_size": config.embedding_size,
        }


def _encoder_modules(encoder) -> dict[str, Any]:
    projection = {"electra.embeddings_project": encoder.projection} if encoder.projection else {}
    return encoder_modules("electra", encoder, LAYER_NAME, PARTS) | projection


FAMILY = Electra()
