"""A model's parameters are bounded by its sizes, as its family counts them."""

import pytest
from msgspec import convert

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
    """What config.json of a family says."""
    return convert({"model_type": family} | SIZES | more, Architecture)


def test_only_families_that_share_layers_have_groups():
    """Elsewhere every layer has weights of its own, whatever config.json says."""
    assert sizes("albert").groups == 1 and sizes("albert", num_hidden_groups=2).groups == 2
    assert sizes("bert", num_hidden_groups=1).groups == sizes("roberta", num_hidden_groups=1).groups == 4


def test_only_factorised_embeddings_have_a_width_of_their_own():
    """BERT's are as wide as its layers."""
    assert sizes("electra", embedding_size=8).width == 8 and sizes("bert", embedding_size=8).width == 32


@pytest.mark.parametrize("family", ["albert", "bert", "electra"])
def test_no_model_of_these_sizes_has_more_parameters(family: str):
    """The bound is above what transformers makes of them, and not by much; other families have some room."""
    from transformers import AutoConfig, AutoModelForPreTraining

    more = {} if family == "bert" else {"embedding_size": 8}
    model = AutoModelForPreTraining.from_config(AutoConfig.for_model(family, **SIZES, **more))
    made, most = sum(p.numel() for p in model.parameters()), sizes(family, **more).most_parameters
    assert made <= most < 3 * made
    assert sizes("another", **more).most_parameters > most
