"""Flags that are short for settings: what they set, and whose settings they are."""

import pytest

from embryo_core.errors import ConfigError
from pretrain.__main__ import configured, parser
from pretrain.config import Config
from pretrain.families import preset
from pretrain.flags import flag_settings


def settings(line: str) -> Config:
    """The configuration of a command line with these flags."""
    options = parser().parse_args([*line.split(), "--corpus", "x", "--run", "y"])
    config = preset(options.preset)
    return configured(config, options.steps, [*flag_settings(config, vars(options)), *options.set])


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
def test_flags_are_short_for_settings(line: str, expected: dict):
    """Each sets what its name says, in every family that has it; --set has the last word."""
    found = settings(line)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("bert-tiny --share all", "--share all: the family bert has no such setting; albert has it"),
        ("electra-tiny --sentence-loss sop", "sop: .* electra has no such setting; albert, bert has it"),
        ("bert-tiny --embedding-size 8", "the family bert has no such setting; albert, electra has it"),
        ("tiny --dropout 1", "hidden_dropout_prob 1.0 must be at least 0 and below 1"),
        ("tiny --mask-rate 30", "masked_share 30.0 must be above 0 and below 1"),
        ("tiny --ngram many", "max_ngram=many: 'many' is not a number"),
    ],
)
def test_what_a_family_does_not_have_is_refused(line: str, sentence: str):
    """One sentence that says what was received and who has it."""
    with pytest.raises(ConfigError, match=sentence):
        settings(line)
