"""ALBERT (Lan et al., 2020): one layer applied N times, factorised embeddings, masked words and sentence order."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from pretrain.config import Config
from pretrain.family import Family


def square_root_rule(batch_size: int) -> float:
    """Learning rate for LAMB at this batch size: 0.00176 at 4,096 sequences, scaled by the square root.

    >>> round(square_root_rule(512), 10)
    0.0006222540
    """
    return 0.00176 * sqrt(batch_size / 4096)


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(Config):
    """Settings of an ALBERT: those of every model, and these."""

    family: ClassVar[str] = "albert"
    counts_of_updates: ClassVar[tuple[str, ...]] = (*Config.counts_of_updates, "sentence_order_from")

    embedding_size: int = 128  # of words, positions and segments, before they are projected to hidden_size
    sentence_order_weight: float = 1.0  # of its loss beside that of the masked words
    sentence_order_from: int = 0  # earlier updates leave its loss out; their examples are the same

    def problems(self) -> dict[str, bool]:
        return super().problems() | {
            f"sentence_order_weight {self.sentence_order_weight} is below 0": self.sentence_order_weight >= 0
        }


PRESETS = {
    # Table 2 of the paper (Chiang et al., 2020). What it does not say is as in google-research/albert.
    "albert-base": AlbertConfig(
        hidden_size=768,  # config/base/albert_config.json, as the next nine
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        embedding_size=128,
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
        sentence_order_weight=1.0,  # run_pretraining.py: the sum of both losses
        optimizer="lamb",  # run_pretraining.py
        steps=1_000_000,  # Table 2
        warmup_steps=25_000,  # Table 2
        learning_rate=square_root_rule(512),  # Table 2: 6.2225e-4
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
    # The demo's size: 40 M tokens in little more than an hour on one core; 64 tokens for nine tenths, then 128. At
    # 30 % masked, twice the recipe's share, a run this short has twice the targets for the tokens it reads.
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
    # A smoke run: seconds on two cores.
    "tiny": AlbertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        embedding_size=16,
        vocab_size=500,
        max_position_embeddings=64,
        batch_size=8,
        sequence_length=32,
        steps=40,
        warmup_steps=5,
        learning_rate=6e-3,
        save_every=10,
        state_every=10,
        log_every=5,
        heldout_sequences=16,
        measured_sequences=16,
    ),
}


class Albert(Family):
    """ALBERT as in google-research/albert; checkpoints load as AlbertForPreTraining."""

    name = "albert"
    objectives: ClassVar = {"masked_lm": "masked language model", "sentence_order": "sentence order"}
    presets: ClassVar = PRESETS

    def model(self, config: AlbertConfig):
        """Embeddings of their own size, projected; the same layer each time: cross-layer sharing; both heads."""
        from pretrain import layers, objectives
        from pretrain.model import PretrainingModel

        initial = {"stddev": config.initializer_range}
        common = initial | {"epsilon": config.layer_norm_eps}
        embeddings = layers.Embeddings(
            config.vocab_size,
            config.max_position_embeddings,
            config.embedding_size,
            position_stddev=config.position_initializer_range or config.initializer_range,
            dropout=config.hidden_dropout_prob,
            name="embeddings",
            **common,
        )
        layer = layers.TransformerLayer(
            config.hidden_size,
            config.num_attention_heads,
            config.intermediate_size,
            dropout=config.hidden_dropout_prob,
            attention_dropout=config.attention_probs_dropout_prob,
            name="layer",
            **common,
        )
        projection = layers.dense(config.hidden_size, name="projection", **initial)
        return PretrainingModel(
            layers.Encoder(embeddings, [layer] * config.num_hidden_layers, projection, name="encoder"),
            heads={
                "masked_lm": layers.MaskedWordHead(embeddings, name="predictions", **common),
                "sentence_order": layers.PairHead(config.hidden_size, name="sentence_order", **initial),
            },
            objectives={
                "masked_lm": objectives.masked_language_model,
                "sentence_order": objectives.sentence_order,
            },
        )

    def modules(self, model) -> dict[str, Any]:
        """Names as in transformers' AlbertForPreTraining."""
        encoder, words, order = model.encoder, model.heads["masked_lm"], model.heads["sentence_order"]
        shared = "albert.encoder.albert_layer_groups.0.albert_layers.0"
        layer, attention = encoder.transformer[0], encoder.transformer[0].attention
        return {
            "albert.embeddings.word_embeddings": encoder.embeddings.word,
            "albert.embeddings.position_embeddings": encoder.embeddings.position,
            "albert.embeddings.token_type_embeddings": encoder.embeddings.segment,
            "albert.embeddings.LayerNorm": encoder.embeddings.norm,
            "albert.encoder.embedding_hidden_mapping_in": encoder.projection,
            f"{shared}.attention.query": attention.query,
            f"{shared}.attention.key": attention.key,
            f"{shared}.attention.value": attention.value,
            f"{shared}.attention.dense": attention.output_dense,
            f"{shared}.attention.LayerNorm": attention.norm,
            f"{shared}.ffn": layer.intermediate,
            f"{shared}.ffn_output": layer.output_dense,
            f"{shared}.full_layer_layer_norm": layer.norm,
            "albert.pooler": order.pooler,
            "predictions.dense": words.transform,
            "predictions.LayerNorm": words.norm,
            "predictions.bias": words.bias,
            "sop_classifier.classifier": order.classifier,
        }

    def huggingface(self, config: AlbertConfig) -> dict[str, Any]:
        """config.json as AlbertForPreTraining reads it."""
        return config.architecture() | {
            "architectures": ["AlbertForPreTraining"],
            "model_type": "albert",
            "embedding_size": config.embedding_size,
            "hidden_act": "gelu_new",
            "classifier_dropout_prob": 0.1,
            "num_hidden_groups": 1,
            "inner_group_num": 1,
        }

    def loss_weights(self, config: AlbertConfig, step: int) -> dict[str, float]:
        """Masked words count fully; sentence order from its first update on, with its weight."""
        order = config.sentence_order_weight if step >= config.sentence_order_from else 0.0
        return {"masked_lm": 1.0, "sentence_order": order}
