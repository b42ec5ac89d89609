"""Tests of ELECTRA: the presets against their sources, and the sizes of both networks."""

from dataclasses import asdict, replace

import pytest

from embryo_core.errors import ConfigError
from pretrain.families import FAMILIES, preset
from tests.pretrain.families.counting import parameters

# Copied from the sources, not from the preset.
BOTH = {  # google-research/electra, configure_pretraining.py and model/optimization.py
    "generator_weight": 1.0,
    "discriminator_weight": 50.0,
    "masked_share": 0.15,
    "masked_share_end": None,
    "decay_power": 1.0,
    "weight_decay": 0.01,
    "warmup_steps": 10_000,
    "vocab_size": 30_522,
    "tokenizer": "wordpiece",
    "optimizer": "adamw_bert",
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "clip_norm": 1.0,
    "constant_steps": 0,
    "save_every": 1_000,
}
MASKS = {  # pretrain/pretrain_helpers.py, mask: 85 % [MASK], the rest unchanged
    "mask_token_share": 0.85,
    "random_token_share": 0.0,
    "whole_words": False,
    "max_ngram": 1,
}
SMALL = {  # configure_pretraining.py
    "learning_rate": 5e-4,
    "steps": 1_000_000,
    "batch_size": 128,
    "sequence_length": 128,
    "short_steps": 0,
    "embedding_size": 128,
    "generator_size": 0.25,
}
BASE = {  # the comment on larger models there, and Table 6 of Clark et al. (2020)
    "learning_rate": 2e-4,
    "steps": 766_000,
    "batch_size": 256,
    "sequence_length": 512,
    "short_steps": 0,
    "embedding_size": 768,
    "generator_size": pytest.approx(0.33333, abs=1e-5),
}
COMMON = {  # model/modeling.py, BertConfig
    "attention_probs_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "num_hidden_layers": 12,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
SIZES = {  # util/training_utils.py, and run_pretraining.py, get_generator_config
    "electra-small": {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    "electra-base": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
}
GENERATORS = {
    "electra-small": {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256},
    "electra-base": {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
}


@pytest.mark.parametrize(("name", "own"), [("electra-small", SMALL), ("electra-base", BASE)])
def test_presets_equal_their_sources(name: str, own: dict):
    settings = asdict(preset(name))
    expected = BOTH | MASKS | own
    assert {setting: settings[setting] for setting in expected} == expected


@pytest.mark.parametrize("name", SIZES)
def test_presets_have_original_architecture(name: str):
    """The sizes are those of the discriminator and the generator."""
    config = preset(name)
    config_json = FAMILIES["electra"].huggingface_config(config)
    expected = COMMON | SIZES[name] | {"embedding_size": config.embedding_size}
    assert {setting: config_json[setting] for setting in expected} == expected
    assert config.generator == GENERATORS[name]


@pytest.mark.parametrize(("name", "discriminator", "generator"), [("electra-small", 14, 5), ("electra-base", 110, 34)])
def test_models_have_original_sizes(name: str, discriminator: int, generator: int):
    """Clark et al. give the millions of the discriminators, rounded; the shared embeddings count in both networks."""
    millions = {part: n / 1e6 for part, n in parameters(preset(name)).items()}
    assert millions == {"": pytest.approx(discriminator, abs=0.6), "generator": pytest.approx(generator, abs=0.6)}


def test_impossible_sizes_and_weights_are_refused():
    """The generator must not be larger than the discriminator, and its heads must divide its width."""
    small = preset("electra-small")
    for change, sentence in (
        ({"generator_size": 1.5}, "generator_size 1.5 must be above 0 and at most 1"),
        ({"generator_size": 0.7}, "the generator's 179 .* is not divisible by 2 heads"),
        ({"discriminator_weight": -1.0}, "discriminator_weight -1.0 is below 0"),
        ({"embedding_size": 0}, "embedding_size 0 must be at least 1"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            replace(small, **change)
