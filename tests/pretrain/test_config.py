"""Settings: changed by name, planned checkpoints, and what is refused."""

from dataclasses import replace

import pytest

from embryo_core.errors import ConfigError
from pretrain.config import changed, save_settings, scaled
from pretrain.families import preset


def test_settings_change_by_name_and_keep_their_type():
    """--set takes any field; numbers may carry underscores."""
    config = changed(preset("tiny"), ["batch_size=1_6", "learning_rate=1e-3", "checkpoint_dtype=float16"])
    assert (config.batch_size, config.learning_rate, config.checkpoint_dtype) == (16, 1e-3, "float16")


def test_settings_may_be_true_or_none():
    """A setting that is a choice takes true and false; one that may be absent takes none."""
    config = changed(preset("tiny"), ["decay_positions=false", "position_initializer_range=0.05"])
    assert (config.decay_positions, config.position_initializer_range) == (False, 0.05)
    assert changed(config, ["position_initializer_range=none"]).position_initializer_range is None


def test_checkpoints_are_planned_by_doublings_and_by_updates():
    """Powers of two and the last step always; K per doubling, every so many updates, or both besides."""
    plan = {"steps": 100, "warmup_steps": 1, "save_every": 0}
    grids = [
        replace(preset("tiny"), **plan | grid).checkpoint_steps()
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
    config = replace(preset("tiny"), steps=100, warmup_steps=10, short_steps=80, single_word_steps=1,
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
        ("optimizer=sgd", "optimizer 'sgd' is none of lamb, adamw_bert, adamw, muon"),
        ("hidden_act=relu", "hidden_act 'relu' is none of gelu, gelu_new"),
        ("tokenizer=characters", "tokenizer 'characters' is none of unigram, wordpiece, bpe"),
        ("mask_token_share=0.95", "mask_token_share 0.95 and random_token_share 0.1 must be 0 or more, and at most 1"),
        ("hidden_dropout_prob=1", "hidden_dropout_prob 1.0 must be at least 0 and below 1"),
        ("decay_positions=yes", "'yes' is neither true nor false"),
        ("long_every=-1", "long_every, received -1, must be at least 0"),
        ("masked_share=1.5", "above 0 and below 1"),
        ("intermediate_size=0", "intermediate_size, received 0, must be at least 1"),
        ("seed=-1", "seed -1 must be between 0 and 4294967295"),
        ("learning_rate=nan", "learning_rate nan must be above 0"),
        ("learning_rate=-1", "learning_rate -1.0 must be above 0"),
        ("clip_norm=0", "clip_norm 0.0 must be above 0"),
        ("weight_decay=inf", "weight_decay inf must be a number from 0 on"),
        ("initializer_range=-1", "initializer_range -1.0 must be a number from 0 on"),
        ("beta_1=2", "beta_1 2.0 must be at least 0 and below 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(assignment, message):
    """Each refusal names the setting and the rule."""
    with pytest.raises(ConfigError, match=message):
        changed(preset("tiny"), [assignment])
