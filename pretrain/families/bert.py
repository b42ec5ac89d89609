"""BERT (Devlin et al., 2019): layers that share nothing, WordPiece, masked pieces and next-sentence prediction."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pretrain.config import SMOKE_SETTINGS
from pretrain.examples import SENTENCE_LOSSES
from pretrain.family import PairConfig, PairFamily, encoder_modules
from pretrain.originals import EMBEDDING_PATTERN, LAYER_PATTERN, OriginalFormat


@dataclass(frozen=True, kw_only=True)
class BertConfig(PairConfig):
    """Settings of a BERT: the defaults are those of the original code."""

    family: ClassVar[str] = "bert"

    # The defaults hold for every preset. They are from google-research/bert: create_pretraining_data.py and
    # tokenization.py (data), modeling.py (initial weights, dropout), optimization.py (the optimizer).
    tokenizer: str = "wordpiece"
    vocab_size: int = 30_522  # uncased_L-12_H-768_A-12/bert_config.json
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12  # of tf.contrib.layers.layer_norm
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    masked_share: float = 0.15  # masked_lm_prob
    mask_token_share: float = 0.8  # create_masked_lm_predictions, as the next
    random_token_share: float = 0.1
    whole_words: bool = False  # do_whole_word_mask
    max_ngram: int = 1
    optimizer: str = "adamw_bert"
    decay_power: float = 1.0
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    seed: int = 12_345  # random_seed
    sentence_loss: str = "nsp"  # nsp (whether the second segment follows the first), sop (their order) or none


# Section A.2 of Devlin et al.: 1,000,000 updates on 256 sequences, 128 tokens long in the first 90 % and then 512; the
# rate grows to 1e-4 over 10,000 updates and falls linearly.
RECIPE: dict[str, Any] = {
    "batch_size": 256,
    "sequence_length": 512,
    "short_steps": 900_000,
    "short_sequence_length": 128,
    "short_batch_size": 256,
    "steps": 1_000_000,
    "warmup_steps": 10_000,
    "learning_rate": 1e-4,
}
PRESETS = {
    "bert-base": BertConfig(
        hidden_size=768,  # uncased_L-12_H-768_A-12/bert_config.json
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        **RECIPE,
    ),
    # README.md of google-research/bert, the smaller models of March 2020, which share the recipe.
    "bert-small": BertConfig(
        hidden_size=512,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=2048,
        **RECIPE,
    ),
    "bert-tiny": BertConfig(
        short_steps=30,
        short_sequence_length=16,
        short_batch_size=16,
        learning_rate=3e-3,
        measured_sequences=16,
        **SMOKE_SETTINGS,
    ),
}


ORIGINAL = OriginalFormat(
    mark="bert/encoder/layer_0/",
    scopes={
        rf"bert/{EMBEDDING_PATTERN}": r"bert.embeddings.\1_embeddings",
        r"bert/embeddings/LayerNorm": "bert.embeddings.LayerNorm",
        rf"bert/{LAYER_PATTERN}": r"bert.encoder.layer.\1.\2",
        r"bert/pooler/dense": "bert.pooler.dense",
        r"cls/predictions/transform/(dense|LayerNorm)": r"cls.predictions.transform.\1",
        r"cls/predictions": "cls.predictions",
        r"cls/seq_relationship": "cls.seq_relationship",
    },
)


LAYER_NAME = "encoder.layer.{}"  # the name of a layer in transformers' BERT, as in its ELECTRA
PARTS = (
    "attention.self.query attention.self.key attention.self.value attention.output.dense attention.output.LayerNorm "
    "intermediate.dense output.dense output.LayerNorm"
).split()


class Bert(PairFamily[BertConfig]):
    """BERT as in google-research/bert; checkpoints load as BertForPreTraining, or BertForMaskedLM."""

    name = "bert"
    presets: ClassVar = PRESETS
    original: ClassVar = ORIGINAL

    def model(self, config: BertConfig):
        """Build embeddings as wide as the layers, layers that share nothing, and the heads."""
        from pretrain import encoders, layers

        embeddings = layers.Embeddings(config, config.hidden_size)
        return self.with_heads(config, encoders.Encoder(embeddings, layers.stack(config), name="encoder"))

    def modules(self, model) -> dict[str, Any]:
        """Return layers and variables by the names of their weights in transformers' BertForPreTraining."""
        words, *pairs = model.heads.values()
        modules = encoder_modules("bert", model.encoder, LAYER_NAME, PARTS) | {
            "cls.predictions.transform.dense": words.transform,
            "cls.predictions.transform.LayerNorm": words.norm,
            "cls.predictions.bias": words.bias,
        }
        for head in pairs:
            modules |= {"bert.pooler.dense": head.pooler, "cls.seq_relationship": head.classifier}
        return modules

    def huggingface_config(self, config: BertConfig) -> dict[str, Any]:
        """Return config.json for transformers' BERT; without a sentence loss there is no second head."""
        has_pairs = SENTENCE_LOSSES[config.sentence_loss] is not None
        return config.architecture() | {
            "architectures": ["BertForPreTraining" if has_pairs else "BertForMaskedLM"],
            "model_type": "bert",
        }


FAMILY = Bert()
