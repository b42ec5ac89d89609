"""Settings: presets, the learning-rate rule, and what is refused."""

from dataclasses import replace

import pytest

from embryo_core.errors import ConfigError, UnknownPreset
from pretrain.config import PRESETS, changed, preset, save_settings, scaled, square_root_rule


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


def test_settings_may_be_true_or_none():
    """A setting that is a choice takes true and false; one that may be absent takes none."""
    config = changed(PRESETS["tiny"], ["decay_positions=false", "position_initializer_range=0.05"])
    assert (config.decay_positions, config.position_initializer_range) == (False, 0.05)
    assert changed(config, ["position_initializer_range=none"]).position_initializer_range is None


def test_checkpoints_are_planned_by_doublings_and_by_updates():
    """Powers of two and the last step always; K per doubling, every so many updates, or both besides."""
    plan = {"steps": 100, "warmup_steps": 1, "save_every": 0}
    grids = [
        replace(PRESETS["tiny"], **plan | grid).checkpoint_steps()
        for grid in ({}, {"save_every": 40}, {"save_per_doubling": 2}, {"save_every": 40, "save_per_doubling": 2})
    ]
    doublings = (0, 1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 100)
    assert grids == [
        (0, 1, 2, 4, 8, 16, 32, 64, 100),
        (0, 1, 2, 4, 8, 16, 32, 40, 80, 100),
        doublings,
        tuple(sorted({*doublings, 40, 80})),
    ]


def test_save_on_the_command_line_replaces_both_grids():
    """--save N, --save log:K, or both; anything else is refused."""
    assert save_settings(["500"]) == ["save_every=500", "save_per_doubling=0"]
    assert save_settings(["log:8", "500"]) == ["save_every=500", "save_per_doubling=8"]
    assert save_settings([]) == []
    for grid in ("log", "log:0", "often", "-3"):
        with pytest.raises(ConfigError, match=f"--save {grid}: write --save N"):
            save_settings([grid])


def test_phases_are_scaled_with_the_steps():
    """Half the updates have half the warm-up and phases, at least one update, and none where there was none."""
    config = replace(PRESETS["tiny"], steps=100, warmup_steps=10, short_steps=80, single_word_steps=1,
                     short_sequence_length=16)  # fmt: skip
    assert scaled(config, 50, without={"short_steps"}) == {"warmup_steps": 5}
    assert scaled(config, 250, without=set()) == {"warmup_steps": 25, "short_steps": 200, "single_word_steps": 2}


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
        ("constant_steps=41", "constant_steps 41 must be between 0 and steps 40"),
        ("masked_share_end=0", "masked_share_end 0.0 must be above 0"),
        ("optimizer=sgd", "optimizer 'sgd' is none of lamb, adamw, muon"),
        ("decay_positions=yes", "'yes' is neither true nor false"),
        ("sentence_order_weight=-1", "sentence_order_weight -1.0 is below 0"),
        ("long_every=-1", "long_every, received -1, must be at least 0"),
        ("masked_share=1.5", "above 0 and below 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(assignment, message):
    """Each refusal names the setting and the rule."""
    with pytest.raises(ConfigError, match=message):
        changed(PRESETS["tiny"], [assignment])
