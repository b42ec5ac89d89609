"""ALBERT (Lan et al., 2020): shared layers, factorised embeddings, masked words and a loss on sentence pairs."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from pretrain.config import SMOKE_SETTINGS
from pretrain.examples import SENTENCE_LOSSES
from pretrain.family import PairConfig, PairFamily, encoder_modules
from pretrain.originals import EMBEDDING_PATTERN, OriginalFormat

SHARED = ("all", "attention", "ffn", "none")


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(PairConfig):
    """Settings of an ALBERT: its embeddings, what layers share, and the weight of the sentence loss."""

    family: ClassVar[str] = "albert"
    counts_of_updates: ClassVar[tuple[str, ...]] = (*PairConfig.counts_of_updates, "sentence_order_from")

    embedding_size: int = 128  # size of the embeddings, before they are projected to hidden_size
    share: str = "all"  # what layers share: all, attention, ffn (the feed-forward network) or none
    num_hidden_groups: int = 1  # number of groups of successive layers; layers share weights within a group
    sentence_order_weight: float = 1.0  # weight of the sentence loss; the weight of masked words is 1
    sentence_order_from: int = 0  # first update with the sentence loss; the examples do not depend on it

    def problems(self) -> dict[str, bool]:
        """Add the rules of embeddings, sharing and the sentence loss."""
        layers, groups = self.num_hidden_layers, self.num_hidden_groups
        return super().problems() | {
            f"embedding_size {self.embedding_size} must be at least 1": self.embedding_size >= 1,
            f"share '{self.share}' is not one of {', '.join(SHARED)}": self.share in SHARED,
            f"num_hidden_layers {layers} is not a multiple of num_hidden_groups {groups}": (
                groups >= 1 and layers % groups == 0
            ),
            f"sentence_order_weight {self.sentence_order_weight} is below 0": self.sentence_order_weight >= 0,
        }

    def weights_of(self, part: str) -> list[int]:
        """Return the number of each layer's "attention" or "ffn" weights; layers with the same number share them."""
        layers = range(self.num_hidden_layers)
        if self.share in ("all", part):
            return [layer * self.num_hidden_groups // self.num_hidden_layers for layer in layers]
        return list(layers)

    @property
    def exported_groups(self) -> int:
        """Return the number of distinct layers in a checkpoint, where transformers can share only whole layers."""
        return self.num_hidden_groups if self.share == "all" else self.num_hidden_layers


PRESETS = {
    # Table 2 of the paper (Chiang et al., 2020). Other settings are those of google-research/albert.
    "albert-base": AlbertConfig(
        hidden_size=768,  # config/base/albert_config.json, as the next ten
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        embedding_size=128,
        num_hidden_groups=1,
        vocab_size=30_000,
        max_position_embeddings=512,
        initializer_range=0.02,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-12,  # of tf.contrib.layers.layer_norm, which modeling.py calls
        batch_size=512,  # Table 2
        sequence_length=512,  # create_pretraining_data.py, max_seq_length
        masked_share=0.15,  # create_pretraining_data.py, masked_lm_prob
        max_ngram=3,  # create_pretraining_data.py, ngram, with favor_shorter_ngram: p(n) proportional to 1/n
        tokenizer="unigram",  # README.md: SentencePiece, model_type=unigram
        whole_words=True,  # create_pretraining_data.py, do_whole_word_mask
        sentence_loss="sop",  # create_pretraining_data.py, random_next_sentence false
        sentence_order_weight=1.0,  # run_pretraining.py: the sum of both losses
        optimizer="lamb",  # run_pretraining.py
        steps=1_000_000,  # Table 2
        warmup_steps=25_000,  # Table 2
        learning_rate=0.00176 * sqrt(512 / 4096),  # Table 2: 6.2225e-4
        decay_power=1.0,  # run_pretraining.py, poly_power
        weight_decay=0.01,  # optimization.py, as the next four
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        clip_norm=1.0,
        seed=12345,  # create_pretraining_data.py, random_seed
        save_every=5_000,  # run_pretraining.py, save_checkpoints_steps
        state_every=1_000,  # ours, as every setting below and in the other presets
        save_per_doubling=0,
    ),
    # The size of the demo: 40 M tokens in little more than an hour on one core; sequences of 64 tokens for nine tenths
    # of the updates, then of 128. 30 % masked, twice the paper's share, gives a short run twice the targets.
    "albert-small": AlbertConfig(
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=6,
        intermediate_size=768,
        embedding_size=64,
        vocab_size=8_000,
        max_position_embeddings=128,
        masked_share=0.30,
        batch_size=16,
        sequence_length=128,
        short_steps=18_000,
        short_sequence_length=64,
        short_batch_size=32,
        steps=20_000,
        warmup_steps=300,
        learning_rate=6e-3,
        save_every=1_500,
        state_every=250,
        checkpoint_dtype="float16",
    ),
    "tiny": AlbertConfig(
        embedding_size=16,
        learning_rate=6e-3,
        measured_sequences=16,
        **SMOKE_SETTINGS,
    ),
}


SHARED_SCOPE = r"bert/encoder/transformer/group_(\d+)/inner_group_0"  # modeling.py, attention_ffn_block
SHARED_LAYER = r"albert.encoder.albert_layer_groups.\1.albert_layers.0"
ORIGINAL = OriginalFormat(
    mark="/group_0/",
    scopes={
        rf"bert/{EMBEDDING_PATTERN}": r"albert.embeddings.\1_embeddings",
        r"bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
        r"bert/encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
        rf"{SHARED_SCOPE}/attention_1/self/(query|key|value)": rf"{SHARED_LAYER}.attention.\2",
        rf"{SHARED_SCOPE}/attention_1/output/dense": rf"{SHARED_LAYER}.attention.dense",
        rf"{SHARED_SCOPE}/LayerNorm": rf"{SHARED_LAYER}.attention.LayerNorm",
        rf"{SHARED_SCOPE}/ffn_1/intermediate/dense": rf"{SHARED_LAYER}.ffn",
        rf"{SHARED_SCOPE}/ffn_1/intermediate/output/dense": rf"{SHARED_LAYER}.ffn_output",
        rf"{SHARED_SCOPE}/LayerNorm_1": rf"{SHARED_LAYER}.full_layer_layer_norm",
        r"bert/pooler/dense": "albert.pooler",
        r"cls/predictions/transform/(dense|LayerNorm)": r"predictions.\1",
        r"cls/predictions": "predictions",
        r"cls/seq_relationship": "sop_classifier.classifier",
    },
    layers=("num_hidden_groups", r"albert_layer_groups\.(\d+)\."),
    inner="ffn",
    only_configured=("num_attention_heads", "num_hidden_layers"),
    projection="albert.encoder.embedding_hidden_mapping_in",
)


LAYER_NAME = "encoder.albert_layer_groups.{}.albert_layers.0"  # the name of a layer in transformers
PARTS = "attention.query attention.key attention.value attention.dense attention.LayerNorm ffn ffn_output".split()
PARTS += ["full_layer_layer_norm"]


class Albert(PairFamily[AlbertConfig]):
    """ALBERT as in google-research/albert; checkpoints load as AlbertForPreTraining, or AlbertForMaskedLM."""

    name = "albert"
    presets: ClassVar = PRESETS
    original: ClassVar = ORIGINAL
    can_widen: ClassVar = True  # the embeddings, to which the masked-word head is tied, keep their size

    def loss_weights(self, config: AlbertConfig, step: int) -> dict[str, float]:
        """Return 1 for masked words and, for the sentence loss, its weight, or 0 before `sentence_order_from`."""
        pairs = config.sentence_order_weight if step >= config.sentence_order_from else 0.0
        return dict.fromkeys(self.objectives(config), pairs) | {"masked_lm": 1.0}

    def model(self, config: AlbertConfig):
        """Build projected embeddings, layers that share weights as configured, and the heads."""
        from pretrain import encoders, layers

        embeddings = layers.Embeddings(config, config.embedding_size)
        shared_parts = config.weights_of("attention"), config.weights_of("ffn")
        transformer = layers.stack(config, *shared_parts)
        projection = layers.dense(config.hidden_size, config.initializer_range, name="projection")
        return self.with_heads(config, encoders.Encoder(embeddings, transformer, projection, name="encoder"))

    def modules(self, model) -> dict[str, Any]:
        """Return weights by their names in AlbertForPreTraining; a part that distinct layers share is repeated."""
        words, *pairs = model.heads.values()
        modules = encoder_modules("albert", model.encoder, LAYER_NAME, PARTS) | {
            "albert.encoder.embedding_hidden_mapping_in": model.encoder.projection,
            "predictions.dense": words.transform,
            "predictions.LayerNorm": words.norm,
            "predictions.bias": words.bias,
        }
        for head in pairs:
            modules |= {"albert.pooler": head.pooler, "sop_classifier.classifier": head.classifier}
        return modules

    def huggingface_config(self, config: AlbertConfig) -> dict[str, Any]:
        """Return config.json for transformers' ALBERT; without a sentence loss there is no second head."""
        has_pairs = SENTENCE_LOSSES[config.sentence_loss] is not None
        return config.architecture() | {
            "architectures": ["AlbertForPreTraining" if has_pairs else "AlbertForMaskedLM"],
            "model_type": "albert",
            "embedding_size": config.embedding_size,
            "classifier_dropout_prob": 0.1,
            "num_hidden_groups": config.exported_groups,
            "inner_group_num": 1,
        }

    def note(self, config: AlbertConfig) -> str:
        """Return a note on repeated weights if layers share only one part, which transformers does not support."""
        if config.share not in ("attention", "ffn"):
            return ""
        part = {"attention": "attention", "ffn": "feed-forward network"}[config.share]
        return (
            f"The layers share their {part} alone (share={config.share}); a checkpoint is an ALBERT of "
            f"{config.exported_groups} groups in which the shared weights are repeated."
        )


FAMILY = Albert()
