"""Settings: presets, the learning-rate rule, and what is refused."""

import pytest

from embryo_core.errors import ConfigError, UnknownPreset
from pretrain.config import PRESETS, changed, preset, square_root_rule


def test_albert_base_follows_the_square_root_rule_of_the_paper():
    """512 sequences give the paper's rate of 6.2225e-4."""
    assert preset("albert-base").learning_rate == pytest.approx(6.222539674e-4, rel=1e-9)
    assert square_root_rule(4096) == pytest.approx(0.00176)


def test_albert_base_is_the_size_of_albert_base():
    """Its config.json is that of ALBERT base: 12 layers, 768 wide, embeddings of 128."""
    found = preset("albert-base").huggingface()
    assert (found["num_hidden_layers"], found["hidden_size"], found["embedding_size"]) == (12, 768, 128)
    assert (found["intermediate_size"], found["num_attention_heads"], found["vocab_size"]) == (3072, 12, 30_000)


def test_an_unknown_preset_is_named_with_the_known_ones():
    """The message says what was received and what exists."""
    with pytest.raises(UnknownPreset, match="Unknown preset 'albert-smal'. Did you mean 'albert-small'"):
        preset("albert-smal")


def test_settings_change_by_name_and_keep_their_type():
    """--set takes any field; numbers may carry underscores."""
    config = changed(PRESETS["tiny"], ["batch_size=1_6", "learning_rate=1e-3", "checkpoint_dtype=float16"])
    assert (config.batch_size, config.learning_rate, config.checkpoint_dtype) == (16, 1e-3, "float16")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("batchsize=3", "Did you mean 'batch_size'"),
        ("batch_size=many", "'many' is not a number"),
        ("batch_size", "Unknown setting|Write it as"),
        ("hidden_size=33", "not a multiple of num_attention_heads"),
        ("sequence_length=4096", "exceed max_position_embeddings 64"),
        ("checkpoint_dtype=int8", "neither float32 nor float16"),
        ("warmup_steps=1000", "between 0 and steps"),
        ("masked_share=1.5", "above 0 and below 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(assignment, message):
    """Each refusal names the setting and the rule."""
    with pytest.raises(ConfigError, match=message):
        changed(PRESETS["tiny"], [assignment])
