"""Tests of the sizes in config.json, which bound the number of a model's parameters."""

import pytest
from msgspec import ValidationError, convert

from embryo_core.runs import Architecture

SIZES = {
    "vocab_size": 1000,
    "max_position_embeddings": 64,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def sizes(family: str, **more: int) -> Architecture:
    """Return the sizes in config.json of a family."""
    return convert({"model_type": family} | SIZES | more, Architecture)


def test_only_albert_has_layer_groups():
    """In other families every layer has separate weights, whatever num_hidden_groups says."""
    assert sizes("albert").group_count == 1 and sizes("albert", num_hidden_groups=2).group_count == 2
    assert sizes("bert", num_hidden_groups=1).group_count == sizes("roberta", num_hidden_groups=1).group_count == 4


def test_only_factorised_embeddings_have_separate_width():
    """BERT ignores embedding_size: its embeddings are as wide as its layers."""
    assert sizes("electra", embedding_size=8).width == 8 and sizes("bert", embedding_size=8).width == 32


@pytest.mark.parametrize("family", ["albert", "bert", "electra"])
def test_max_parameters_bounds_models_of_transformers(family: str):
    """The bound is below three times the parameters of transformers' model; unknown families have a larger bound."""
    from transformers import AutoConfig, AutoModelForPreTraining

    more = {} if family == "bert" else {"embedding_size": 8}
    model = AutoModelForPreTraining.from_config(AutoConfig.for_model(family, **SIZES, **more))
    made, most = sum(p.numel() for p in model.parameters()), sizes(family, **more).max_parameters
    assert made <= most < 3 * made
    assert sizes("another", **more).max_parameters > most


def test_only_fnet_may_omit_attention_heads():
    """FNet has no attention; in other families the missing field is named."""
    named = {name: size for name, size in SIZES.items() if name != "num_attention_heads"}
    assert convert({"model_type": "fnet"} | named, Architecture).num_attention_heads == 0
    for family in ("bert", "roberta"):
        with pytest.raises(ValidationError, match="missing required field `num_attention_heads`"):
            convert({"model_type": family} | named, Architecture)


@pytest.mark.parametrize("family", ["xlm-roberta", "deberta-v2", "rembert", "electra"])
def test_largest_public_models_are_within_bound(family: str):
    """XLM-RoBERTa large has 0.56 billion parameters; twice its width and 24 times its layers exceed the bound."""
    large = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 250_002}
    assert sizes(family, **large | {"num_hidden_layers": 24, "max_position_embeddings": 514}).hidden_size == 1024
    with pytest.raises(ValidationError, match="parameters; the maximum is 17,179,869,184"):
        sizes(family, **large | {"num_hidden_layers": 576, "hidden_size": 2048, "intermediate_size": 8192})


def test_pythia_12b_is_within_bound():
    pythia = {"hidden_size": 5120, "num_attention_heads": 40, "intermediate_size": 20_480, "vocab_size": 50_688}
    assert sizes("gpt_neox", **pythia | {"num_hidden_layers": 36}).max_parameters > 11.8e9


@pytest.mark.parametrize(
    ("family", "more", "message"),
    [
        ("bert", {"type_vocab_size": 0}, "type_vocab_size is 0, and the model adds the embedding of a segment"),
        ("albert", {"inner_group_num": 2}, "inner_group_num is 2; only 1"),
    ],
)
def test_unsupported_architecture_is_refused(family: str, more: dict, message: str):
    """The same values are accepted for DeBERTa, which may have no segments."""
    with pytest.raises(ValidationError, match=message):
        sizes(family, **more)
    assert sizes("deberta-v2", **more)
