"""GPT-2 (Radford et al., 2019): a decoder that normalises before each sublayer and learns to predict the next token."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from pretrain.collators import NextTokenCollator
from pretrain.config import SMOKE_SETTINGS, Config
from pretrain.family import Family
from pretrain.tokenizer import WordStarts


@dataclass(frozen=True, kw_only=True)
class Gpt2Config(Config):
    """Settings of a GPT-2: the defaults are those of the original code and papers."""

    family: ClassVar[str] = "gpt2"

    # The defaults hold for every preset. They are from openai/gpt-2, src/model.py, which has no training code; the rest
    # is from the papers: Radford et al., 2018 (GPT), which GPT-2 follows, and Brown et al., 2020 (GPT-3).
    tokenizer: str = "bpe"  # byte-level (Section 2.2 of Radford et al., 2019)
    vocab_size: int = 50_257  # n_vocab of the 124M model's hparams.json
    max_position_embeddings: int = 1024  # n_ctx
    # The normals of the next two are truncated here, not there, which makes the standard deviation 0.88 times as large.
    initializer_range: float = 0.02  # w_init_stdev of conv1d, and wte
    position_initializer_range: float | None = 0.01  # wpe
    layer_norm_eps: float = 1e-5  # norm, epsilon
    hidden_act: str = "gelu_new"  # gelu
    hidden_dropout_prob: float = 0.1  # GPT, Section 4.1, of residuals, embeddings and attention
    attention_probs_dropout_prob: float = 0.1
    optimizer: str = "adamw"  # GPT, Section 4.1: Adam with decoupled weight decay
    weight_decay: float = 0.1  # GPT-3, Appendix B, as the next four
    beta_1: float = 0.9
    beta_2: float = 0.95
    epsilon: float = 1e-8
    clip_norm: float = 1.0
    decay_power: float = 1.0  # ours: linear to zero; GPT and GPT-3 follow a cosine


PRESETS = {
    # The smallest model, 124 million parameters: 117M in the paper, 124M in openai/gpt-2's DEVELOPERS.md.
    "gpt2-small": Gpt2Config(
        hidden_size=768,  # n_embd of hparams.json; Table 2
        num_hidden_layers=12,  # n_layer; Table 2
        num_attention_heads=12,  # n_head
        intermediate_size=3072,  # model.py, block: mlp of 4 * n_embd
        batch_size=512,  # Radford et al., 2019, Section 2.3
        sequence_length=1024,  # the same section
        steps=572_000,  # GPT-3, Section 2.2: 300 billion tokens; GPT-2's paper has no number
        warmup_steps=715,  # GPT-3, Appendix B: 375 million tokens
        learning_rate=6e-4,  # GPT-3, Table 2.1, the model of 125 million parameters
    ),
    "gpt2-tiny": Gpt2Config(
        learning_rate=3e-3,
        **SMOKE_SETTINGS,
    ),
}


class Gpt2(Family[Gpt2Config]):
    """GPT-2 as in openai/gpt-2; a checkpoint loads as GPT2LMHeadModel."""

    name = "gpt2"
    presets: ClassVar = PRESETS
    reads_segments: ClassVar = False

    def objectives(self, config: Gpt2Config) -> dict[str, str]:
        """Return the only objective, the next token."""
        return {"next_token": "next token"}

    def collator(self, config: Gpt2Config, begins_word: WordStarts) -> NextTokenCollator:
        """Return the collator of sequences in which every next token is predicted."""
        return NextTokenCollator(config, begins_word)

    def model(self, config: Gpt2Config):
        """Build the decoder, and a head tied to its word embeddings.

        Each layer adds to the residual stream twice; the initial weights of the projections that do so are divided by
        the square root of the number of additions (Section 2.3).
        """
        from pretrain import encoders, heads, layers, objectives
        from pretrain.model import PretrainingModel

        embeddings = layers.DecoderEmbeddings(config)
        residual_stddev = config.initializer_range / sqrt(2 * config.num_hidden_layers)
        transformer = layers.stack(config, kind=layers.PreNormLayer, output_stddev=residual_stddev)
        return PretrainingModel(
            encoders.Decoder(embeddings, transformer, epsilon=config.layer_norm_eps, name="encoder"),
            heads={"next_token": heads.NextTokenHead(embeddings, name="next_token")},
            objectives={"next_token": objectives.predicted_tokens},
        )

    def modules(self, model) -> dict[str, Any]:
        """Return the weights by their names in transformers' GPT2LMHeadModel, whose kernels are not transposed."""
        decoder = model.encoder
        modules = {
            "transformer.wte": decoder.embeddings.word,
            "transformer.wpe": decoder.embeddings.position,
            "transformer.ln_f": decoder.norm,
        }
        for i, layer in enumerate(decoder.transformer):
            name, attention = f"transformer.h.{i}", layer.attention
            modules |= {f"{name}.ln_1": attention.norm, f"{name}.ln_2": layer.norm}
            modules |= _kernel_and_bias(f"{name}.attn.c_attn", attention.query, attention.key, attention.value)
            modules |= _kernel_and_bias(f"{name}.attn.c_proj", attention.output_dense)
            modules |= _kernel_and_bias(f"{name}.mlp.c_fc", layer.intermediate)
            modules |= _kernel_and_bias(f"{name}.mlp.c_proj", layer.output_dense)
        return modules

    def huggingface_config(self, config: Gpt2Config) -> dict[str, Any]:
        """Return config.json for transformers' GPT-2; a text begins with [CLS] and ends with [SEP]."""
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "vocab_size": config.vocab_size,
            "n_positions": config.max_position_embeddings,
            "n_embd": config.hidden_size,
            "n_layer": config.num_hidden_layers,
            "n_head": config.num_attention_heads,
            "n_inner": config.intermediate_size,
            "activation_function": config.hidden_act,
            "layer_norm_epsilon": config.layer_norm_eps,
            "initializer_range": config.initializer_range,
            "resid_pdrop": config.hidden_dropout_prob,
            "embd_pdrop": config.hidden_dropout_prob,
            "attn_pdrop": config.attention_probs_dropout_prob,
        } | {
            name: value
            for name, value in config.architecture().items()
            if name in ("pad_token_id", "bos_token_id", "eos_token_id", "tie_word_embeddings", "dtype")
        }


def _kernel_and_bias(name: str, *dense) -> dict[str, Any]:
    """Return the weights of dense layers with the same input, concatenated in one tensor."""
    return {
        f"{name}.weight": tuple(layer.kernel for layer in dense),
        f"{name}.bias": tuple(layer.bias for layer in dense),
    }


FAMILY = Gpt2()
