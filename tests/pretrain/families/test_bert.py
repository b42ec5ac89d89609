"""Tests of BERT: the presets against their sources, the number of parameters, and the objectives."""

from dataclasses import asdict, replace

import pytest

from embryo_core.errors import ConfigError
from pretrain.families import FAMILIES, preset
from tests.pretrain.families.counting import parameters

# Copied from the sources, not from the preset.
ARCHITECTURE = {  # uncased_L-12_H-768_A-12/bert_config.json; hidden_act is "gelu", in the tanh form of modeling.py
    "attention_probs_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30_522,
}
SMALL = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}  # README.md
PAPER = {  # Section A.2 of Devlin et al. (2019)
    "batch_size": 256,
    "short_batch_size": 256,
    "steps": 1_000_000,
    "short_steps": 900_000,
    "short_sequence_length": 128,
    "sequence_length": 512,
    "learning_rate": 1e-4,
    "warmup_steps": 10_000,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
OPTIMISATION = {  # google-research/bert, optimization.py
    "optimizer": "adamw_bert",
    "weight_decay": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "clip_norm": 1.0,
    "decay_power": 1.0,
    "decay_positions": True,
    "constant_steps": 0,
}
EXAMPLES = {  # google-research/bert, create_pretraining_data.py
    "tokenizer": "wordpiece",
    "masked_share": 0.15,
    "masked_share_end": None,
    "mask_token_share": 0.8,
    "random_token_share": 0.1,
    "whole_words": False,
    "max_ngram": 1,
    "single_word_steps": 0,
    "sentence_loss": "nsp",
    "long_every": 0,
    "seed": 12_345,
}


@pytest.mark.parametrize("name", ["bert-base", "bert-small"])
@pytest.mark.parametrize("source", [PAPER, OPTIMISATION, EXAMPLES], ids=["paper", "optimisation", "examples"])
def test_presets_equal_their_sources(name: str, source: dict):
    """Both sizes share the recipe."""
    settings = asdict(preset(name))
    assert {setting: settings[setting] for setting in source} == source


@pytest.mark.parametrize(("name", "sizes"), [("bert-base", {}), ("bert-small", SMALL)])
def test_presets_have_original_architecture(name: str, sizes: dict):
    """config.json has the original's values, but transformers' name for the tanh form of GELU."""
    config_json = FAMILIES["bert"].huggingface_config(preset(name))
    expected = ARCHITECTURE | sizes
    assert {setting: config_json[setting] for setting in expected} == expected
    assert config_json["hidden_act"] == "gelu_new" and config_json["layer_norm_eps"] == 1e-12


@pytest.mark.parametrize(("name", "millions"), [("bert-base", 110), ("bert-small", 29)])
def test_models_have_original_sizes(name: str, millions: int):
    """The millions of parameters are those of Devlin et al. and the README."""
    (count,) = parameters(preset(name)).values()
    assert round(count / 1e6) == millions


def test_sentence_loss_determines_second_head():
    """It learns next sentence, as in the original, or sentence order; without it, the class is BertForMaskedLM."""
    family = FAMILIES["bert"]
    configs = {loss: replace(preset("bert-tiny"), sentence_loss=loss) for loss in ("nsp", "sop", "none")}
    objectives = {loss: list(family.objectives(config)) for loss, config in configs.items()}
    assert objectives == {
        "nsp": ["masked_lm", "next_sentence"],
        "sop": ["masked_lm", "sentence_order"],
        "none": ["masked_lm"],
    }
    kinds = {loss: family.huggingface_config(config)["architectures"] for loss, config in configs.items()}
    assert kinds == {"nsp": ["BertForPreTraining"], "sop": ["BertForPreTraining"], "none": ["BertForMaskedLM"]}
    with pytest.raises(ConfigError, match="sentence_loss 'nextt' is not one of sop, nsp, none"):
        replace(configs["nsp"], sentence_loss="nextt")
