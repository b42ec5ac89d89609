"""Tests of settings: changes by name and by flags, planned checkpoints, and refused values."""

from dataclasses import replace

import pytest

from embryo_core.errors import ConfigError
from pretrain.__main__ import parser
from pretrain.config import Config
from pretrain.families import preset
from pretrain.settings import apply_options, scale_counts


def settings(line: str) -> Config:
    """Return the configuration that a command line sets."""
    options = parser().parse_args([*line.split(), "--corpus", "x", "--run", "y"])
    return apply_options(preset(options.preset), options)


def test_settings_change_by_name_and_keep_their_type():
    """--set changes fields of any type; numbers may contain underscores."""
    config = settings("tiny --set batch_size=1_6 learning_rate=1e-3 checkpoint_dtype=float16")
    assert (config.batch_size, config.learning_rate, config.checkpoint_dtype) == (16, 1e-3, "float16")


def test_settings_can_be_false_or_none():
    """The value false sets a boolean setting, and none an optional one."""
    config = settings("tiny --set decay_positions=false position_initializer_range=0.05")
    assert (config.decay_positions, config.position_initializer_range) == (False, 0.05)
    assert settings("tiny --set position_initializer_range=none").position_initializer_range is None


def test_checkpoints_are_planned_by_doublings_and_updates():
    """Powers of two and the last step are always saved; K steps per doubling, every N updates, or both can be added."""
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


def test_save_option_replaces_both_grids():
    """--save takes N, log:K or both, and refuses anything else; without it, the preset's save_every stays."""
    for line, expected in (("500", (500, 0)), ("log:8 500", (500, 8)), ("log:8", (0, 8))):
        config = settings(f"tiny --save {line}")
        assert (config.save_every, config.save_per_doubling) == expected
    assert settings("tiny").save_every == preset("tiny").save_every
    for grid in ("log", "log:0", "often", "log:-3"):
        with pytest.raises(ConfigError, match=f"--save {grid}: write --save N"):
            settings(f"tiny --save {grid}")


def test_phases_scale_with_the_number_of_steps():
    """With half the steps, phases are half as long but at least one update; a phase of 0 steps stays at 0."""
    config = replace(preset("tiny"), steps=100, warmup_steps=10, short_steps=80, single_word_steps=1,
                     short_sequence_length=16)  # fmt: skip
    assert scale_counts(config, 50, explicit={"short_steps"}) == {"warmup_steps": 5}
    assert scale_counts(config, 250, explicit=()) == {"warmup_steps": 25, "short_steps": 200, "single_word_steps": 2}


def test_steps_option_scales_settings_that_are_not_set(capsys: pytest.CaptureFixture[str]):
    """The command reports the scaled settings; --set takes precedence, also for the number of steps."""
    config = settings("tiny --steps 80 --set short_steps=4 short_sequence_length=16")
    assert (config.steps, config.warmup_steps, config.short_steps) == (80, 10, 4)
    assert "--steps 80: warmup_steps is 10 in proportion" in capsys.readouterr().out
    assert settings("tiny --steps 80 --set steps=60").steps == 60


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("batchsize=3", "Did you mean 'batch_size'"),
        ("batch_size=many", "'many' is not a number"),
        ("batch_size", "Unknown setting|Write it as"),
        ("hidden_size=33", "not a multiple of num_attention_heads"),
        ("sequence_length=4096", "exceed max_position_embeddings 64"),
        ("checkpoint_dtype=int8", "not one of float32, float16"),
        ("warmup_steps=1000", "between 0 and steps"),
        ("constant_steps=41", "constant_steps 41 must be between 0 and steps 40"),
        ("minutes=9 warmup_steps=41", "warmup_steps 41 must be between 0 and steps 40"),
        ("masked_share_end=0", "masked_share_end 0.0 must be above 0"),
        ("optimizer=sgd", "optimizer 'sgd' is not one of lamb, adamw_bert, adamw, muon"),
        ("hidden_act=relu", "hidden_act 'relu' is not one of gelu, gelu_new"),
        ("tokenizer=characters", "tokenizer 'characters' is not one of unigram, wordpiece, bpe"),
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
        ("weight_decay=inf", "weight_decay inf must be 0 or more"),
        ("initializer_range=-1", "initializer_range -1.0 must be 0 or more"),
        ("beta_1=2", "beta_1 2.0 must be at least 0 and below 1"),
    ],
)
def test_invalid_settings_are_refused(assignment, message):
    """Each message says which rule the setting or its value breaks."""
    with pytest.raises(ConfigError, match=message):
        settings(f"tiny --set {assignment}")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tiny --embedding-size 8", {"embedding_size": 8}),
        ("electra-tiny --embedding-size 8", {"embedding_size": 8}),
        ("tiny --share attention --groups 2", {"share": "attention", "num_hidden_groups": 2}),
        ("tiny --sentence-loss nsp", {"sentence_loss": "nsp"}),
        ("bert-tiny --sentence-loss none", {"sentence_loss": "none"}),
        ("tiny --dropout 0.1", {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}),
        ("bert-tiny --ngram 3", {"max_ngram": 3}),
        ("tiny --mask-rate 0.3:0.15", {"masked_share": 0.3, "masked_share_end": 0.15}),
        ("tiny --mask-rate 0.2", {"masked_share": 0.2, "masked_share_end": None}),
        ("tiny --ngram 2 --set max_ngram=1", {"max_ngram": 1}),
    ],
)
def test_flags_change_the_settings_they_abbreviate(line: str, expected: dict):
    """A flag works in every family that has the setting; --set takes precedence."""
    config = settings(line)
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("bert-tiny --share all", "--share all: the family bert has no such setting; albert has it"),
        ("electra-tiny --sentence-loss sop", "sop: .* electra has no such setting; albert, bert has it"),
        ("bert-tiny --embedding-size 8", "the family bert has no such setting; albert, electra has it"),
        ("tiny --dropout 1", "hidden_dropout_prob 1.0 must be at least 0 and below 1"),
        ("tiny --mask-rate 30", "masked_share 30.0 must be above 0 and below 1"),
        ("tiny --ngram many", "--ngram many: 'many' is not a number"),
    ],
)
def test_unavailable_flags_and_invalid_values_are_refused(line: str, sentence: str):
    """If a family lacks a flag's setting, the message names the families that have it."""
    with pytest.raises(ConfigError, match=sentence):
        settings(line)
