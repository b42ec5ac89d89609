"""ALBERT: the presets' numbers and their sources, its size, and when sentence order is learned."""

from dataclasses import asdict, replace

import keras
import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining

from embryo_core.errors import ConfigError
from pretrain.export import tensors
from pretrain.families import FAMILIES, preset
from pretrain.families.albert import square_root_rule

# Read anew from the sources, not from the preset.
PAPER = {"batch_size": 512, "learning_rate": 6.2225e-4, "steps": 1_000_000, "warmup_steps": 25_000}  # Table 2
ARCHITECTURE = {  # google-research/albert, config/base/albert_config.json; hidden_act is "gelu", in its tanh form
    "attention_probs_dropout_prob": 0,
    "hidden_dropout_prob": 0,
    "embedding_size": 128,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "type_vocab_size": 2,
    "vocab_size": 30_000,
}
OPTIMISATION = {  # google-research/albert, optimization.py and the defaults of run_pretraining.py
    "optimizer": "lamb",
    "weight_decay": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "clip_norm": 1.0,
    "decay_power": 1.0,
    "decay_positions": True,
    "constant_steps": 0,
    "sentence_order_weight": 1.0,
    "sentence_order_from": 0,
    "save_every": 5_000,
}
EXAMPLES = {  # google-research/albert, create_pretraining_data.py
    "sequence_length": 512,
    "short_steps": 0,
    "masked_share": 0.15,
    "masked_share_end": None,
    "max_ngram": 3,
    "single_word_steps": 0,
    "seed": 12345,
}


@pytest.mark.parametrize("source", [PAPER, OPTIMISATION, EXAMPLES], ids=["paper", "optimisation", "examples"])
def test_albert_base_has_the_numbers_of_its_sources(source: dict):
    """Every one of them, the learning rate to the digits that the paper prints."""
    found = asdict(preset("albert-base"))
    assert {name: found[name] for name in source} == {
        name: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value for name, value in source.items()
    }


def test_albert_base_is_the_architecture_of_albert_base():
    """config.json says what the original's says, with transformers' name for GELU's tanh form."""
    found = FAMILIES["albert"].huggingface(preset("albert-base"))
    assert {name: found[name] for name in ARCHITECTURE} == ARCHITECTURE
    assert found["hidden_act"] == "gelu_new" and found["layer_norm_eps"] == 1e-12


def test_the_rate_of_lamb_follows_the_square_root_of_the_batch():
    """4,096 sequences have the original's rate, 512 the paper's."""
    assert square_root_rule(4096) == 0.00176
    assert square_root_rule(512) == pytest.approx(6.222539674e-4, rel=1e-9)


def test_albert_base_has_12_million_parameters():
    """As Table 1 of Lan et al. says, and exactly as many as transformers makes of its config.json, name by name."""
    family, config = FAMILIES["albert"], preset("albert-base")
    model = family.model(config)
    ids = np.zeros((1, 4), np.int32)
    model({name: ids for name in ("ids", "token_type_ids", "attention_mask", "positions")})
    with torch.device("meta"):
        theirs = AlbertForPreTraining(AlbertConfig(**family.huggingface(config)))
    found = {name: array.shape for name, array in tensors(family, model).items()}
    assert found == {name: tuple(parameter.shape) for name, parameter in theirs.named_parameters()}
    assert round(sum(np.prod(shape) for shape in found.values()) / 1e6) == 12


def test_one_layer_serves_every_depth():
    """Parameters do not grow with the number of layers."""
    family, ids = FAMILIES["albert"], np.zeros((1, 4), np.int32)
    counts = []
    for depth in (2, 4):
        model = family.model(replace(preset("tiny"), num_hidden_layers=depth))
        model({name: ids for name in ("ids", "token_type_ids", "attention_mask", "positions")})
        counts.append(sum(int(np.prod(variable.shape)) for variable in model.trainable_variables))
    assert counts[0] == counts[1]


def test_sentence_order_counts_from_its_first_update_on():
    """Before sentence_order_from its loss has no weight, from there on sentence_order_weight."""
    config = replace(preset("tiny"), sentence_order_from=5, sentence_order_weight=0.3)
    weights = [FAMILIES["albert"].loss_weights(config, step)["sentence_order"] for step in (0, 4, 5, 6)]
    assert weights == [0.0, 0.0, 0.3, 0.3]
    with pytest.raises(ConfigError, match="sentence_order_weight -1 is below 0"):
        replace(config, sentence_order_weight=-1)


def test_each_table_begins_with_values_of_its_own():
    """Words, positions and segments are drawn apart, with the deviations that the configuration asks for."""
    keras.utils.set_random_seed(1)
    config = replace(preset("tiny"), initializer_range=0.3, position_initializer_range=0.9)
    model = FAMILIES["albert"].model(config)
    ids = np.zeros((1, 4), np.int32)
    model({name: ids for name in ("ids", "token_type_ids", "attention_mask", "positions")})
    found = tensors(FAMILIES["albert"], model)
    rows = [tuple(array[0][:4]) for name, array in found.items() if "_embeddings.weight" in name]
    assert len(set(rows)) == 3
    for name, array in found.items():
        if array.ndim == 2 and array.size > 500:
            wanted = 0.9 if "position" in name else 0.3
            # A normal cut at two deviations has 0.88 of its deviation; five standard errors of the estimate either way.
            assert array.std() == pytest.approx(0.88 * wanted, rel=5 / np.sqrt(2 * array.size)), name
