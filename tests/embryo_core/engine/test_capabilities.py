"""Tests of the capabilities of a checkpoint, which are read from its config.json without torch."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.engine.capabilities import checkpoint_capabilities, head_groups
from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Run

ENCODER = {"states", "attentions", "trainable"}


@pytest.mark.parametrize(
    ("family", "architectures", "given"),
    [
        ("albert", ["AlbertForPreTraining"], ENCODER | {"masked_words", "words"}),
        ("albert", ["AlbertModel"], ENCODER),
        ("bert", ["BertForMaskedLM"], ENCODER | {"masked_words", "words"}),
        ("bert", None, ENCODER | {"masked_words", "words"}),
        ("electra", ["ElectraForPreTraining"], ENCODER | {"replaced_tokens"}),
        ("electra", ["ElectraForMaskedLM"], ENCODER | {"masked_words", "words"}),
        ("gpt2", ["GPT2LMHeadModel"], ENCODER | {"next_words", "words"}),
        ("gpt2", ["GPT2Model"], ENCODER),
        ("mamba", ["MambaForCausalLM"], {"states", "trainable", "next_words", "words"}),
        ("whisper", ["WhisperForCausalLM"], set()),
    ],
)
def test_capabilities_follow_from_architecture(
    own_run: Run, family: str, architectures: list[str], given: set[str]
) -> None:
    """Predicting words requires the class with that head; a family that no engine reads has no capabilities."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = {"model_type": family} | ({"architectures": architectures} if architectures else {})
    (checkpoint.path / "config.json").write_text(json.dumps(config))
    assert checkpoint_capabilities(checkpoint) == given


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_unreadable_config_raises_broken_checkpoint(own_run: Run, content: str | None) -> None:
    """A missing file, invalid JSON and JSON that is not an object raise the same error, which says what to do."""
    path = runs.checkpoint(own_run, 8).path / "config.json"
    path.write_text(content) if content else path.unlink()
    with pytest.raises(BrokenCheckpoint, match=r"config.json .*; copy this step again"):
        checkpoint_capabilities(runs.checkpoint(own_run, 8))


def test_capabilities_import_neither_torch_nor_numpy() -> None:
    """An evaluation can be planned without loading either library."""
    code = "import sys, embryo_core.engine.capabilities; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("family", "config", "groups"),
    [
        ("albert", {}, 1),
        ("albert", {"share": "attention", "num_hidden_groups": 2}, 2),
        ("albert", {"share": "ffn"}, None),
        ("bert", {"num_hidden_groups": 1}, None),
        ("roberta", {}, None),
    ],
)
def test_number_of_head_groups_follows_family_and_sharing(
    tiny_run: Run, family: str, config: dict, groups: int | None
) -> None:
    """The number of groups depends on the family and on the `share` setting of its pretraining."""
    assert head_groups(replace(tiny_run, family=family, config=config)) == groups
