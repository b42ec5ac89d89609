"""Tests of ALBERT: the preset against its sources, shared layers, and the sentence losses."""

from dataclasses import asdict, replace

import keras
import numpy as np
import pytest

from embryo_core.errors import ConfigError
from pretrain.examples import from_another_document, in_order, swapped
from pretrain.export import tensors
from pretrain.families import FAMILIES, preset
from pretrain.families.albert import AlbertConfig
from tests.pretrain.families.counting import parameters

# Copied from the sources, not from the preset.
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
    "sentence_loss": "sop",
    "share": "all",
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
    "tokenizer": "unigram",
    "masked_share": 0.15,
    "mask_token_share": 0.8,
    "random_token_share": 0.1,
    "whole_words": True,
    "masked_share_end": None,
    "max_ngram": 3,
    "single_word_steps": 0,
    "seed": 12345,
}


@pytest.mark.parametrize("source", [PAPER, OPTIMISATION, EXAMPLES], ids=["paper", "optimisation", "examples"])
def test_albert_base_equals_its_sources(source: dict):
    """The learning rate agrees to the digits that the paper prints."""
    settings = asdict(preset("albert-base"))
    assert {name: settings[name] for name in source} == {
        name: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value for name, value in source.items()
    }


def test_albert_base_has_original_architecture():
    """config.json has the original's values, but transformers' name for the tanh form of GELU."""
    config_json = FAMILIES["albert"].huggingface_config(preset("albert-base"))
    assert {name: config_json[name] for name in ARCHITECTURE} == ARCHITECTURE
    assert config_json["hidden_act"] == "gelu_new" and config_json["layer_norm_eps"] == 1e-12


def test_albert_base_has_12_million_parameters():
    """This is the number in Table 1 of Lan et al."""
    (count,) = parameters(preset("albert-base")).values()
    assert round(count / 1e6) == 12


@pytest.mark.parametrize(
    ("share", "groups", "millions"), [("attention", 1, 64), ("ffn", 1, 38), ("none", 1, 90), ("all", 2, 19)]
)
def test_sharing_determines_number_of_parameters(share: str, groups: int, millions: int):
    """The numbers are those of Table 4 of Lan et al. (embeddings of 128), which truncates 89.8 million to 89."""
    config = replace(preset("albert-base"), share=share, num_hidden_groups=groups)
    assert round(unique_parameters(config) / 1e6) == millions


def unique_parameters(config: AlbertConfig) -> int:
    """Return the number of parameters of a configuration's model, shared ones once."""
    with keras.StatelessScope(initialize_variables=False):
        model = FAMILIES["albert"].model(config)
        model.build()
        return sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)


def test_partly_shared_layers_are_exported_as_groups():
    """transformers shares whole layers only: if layers are partly shared, each is a group, and the note says so."""
    albert, tiny = FAMILIES["albert"], replace(preset("tiny"), num_hidden_layers=4)
    groups_and_notes = {}
    for share in ("all", "none", "attention", "ffn"):
        config = replace(tiny, share=share, num_hidden_groups=2)
        groups_and_notes[share] = albert.huggingface_config(config)["num_hidden_groups"], albert.note(config)
    assert groups_and_notes["all"] == (2, "") and groups_and_notes["none"] == (4, "")
    assert groups_and_notes["attention"][0] == groups_and_notes["ffn"][0] == 4
    note = "share their attention alone (share=attention); a checkpoint is an ALBERT of 4 groups"
    assert note in groups_and_notes["attention"][1]
    assert "share their feed-forward network alone (share=ffn)" in groups_and_notes["ffn"][1]


def test_each_sentence_loss_has_its_objective():
    """Without a sentence loss there is no second head, and the class in transformers is AlbertForMaskedLM."""
    albert = FAMILIES["albert"]
    configs = {loss: replace(preset("tiny"), sentence_loss=loss) for loss in ("sop", "nsp", "none")}
    objectives = {
        loss: (list(albert.objectives(config))[1:], albert.pairing(config)) for loss, config in configs.items()
    }
    assert objectives == {
        "sop": (["sentence_order"], swapped),
        "nsp": (["next_sentence"], from_another_document),
        "none": ([], in_order),
    }
    kinds = [albert.huggingface_config(config)["architectures"][0] for config in configs.values()]
    assert kinds == ["AlbertForPreTraining", "AlbertForPreTraining", "AlbertForMaskedLM"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"share": "some"}, "share 'some' is not one of all, attention, ffn, none"),
        ({"num_hidden_groups": 5}, "num_hidden_layers 12 is not a multiple of num_hidden_groups 5"),
        ({"num_hidden_groups": 0}, "num_hidden_layers 12 is not a multiple of num_hidden_groups 0"),
        ({"sentence_loss": "order"}, "sentence_loss 'order' is not one of sop, nsp, none"),
        ({"embedding_size": 0}, "embedding_size 0 must be at least 1"),
    ],
)
def test_invalid_settings_are_refused(change: dict, sentence: str):
    """Each error names the received value and what is allowed."""
    with pytest.raises(ConfigError, match=sentence):
        replace(preset("albert-base"), **change)


def test_sentence_order_has_weight_from_its_first_update():
    """Its weight is 0 before update sentence_order_from, and sentence_order_weight from there on."""
    config = replace(preset("tiny"), sentence_order_from=5, sentence_order_weight=0.3)
    weights = [FAMILIES["albert"].loss_weights(config, step)["sentence_order"] for step in (0, 4, 5, 6)]
    assert weights == [0.0, 0.0, 0.3, 0.3]
    with pytest.raises(ConfigError, match="sentence_order_weight -1 is below 0"):
        replace(config, sentence_order_weight=-1)


def test_embedding_tables_are_drawn_independently():
    """Words, positions and segments start with different values, of the configured standard deviations."""
    keras.utils.set_random_seed(1)
    config = replace(preset("tiny"), initializer_range=0.3, position_initializer_range=0.9)
    model = FAMILIES["albert"].model(config)
    model.build()
    arrays = tensors(FAMILIES["albert"].modules(model))
    rows = [tuple(array[0][:4]) for name, array in arrays.items() if "_embeddings.weight" in name]
    assert len(set(rows)) == 3
    for name, array in arrays.items():
        if array.ndim == 2 and array.size > 500:
            expected = 0.9 if "position" in name else 0.3
            # A normal truncated at two deviations has 0.88 of its deviation; the tolerance is five standard errors.
            assert array.std() == pytest.approx(0.88 * expected, rel=5 / np.sqrt(2 * array.size)), name
