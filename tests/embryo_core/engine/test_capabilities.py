"""What a checkpoint gives is read off its config.json, without torch."""

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
def test_what_each_architecture_gives(own_run: Run, family: str, architectures: list[str], given: set[str]) -> None:
    """Words need the head of that name; a family that no engine reads gives nothing."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = {"model_type": family} | ({"architectures": architectures} if architectures else {})
    (checkpoint.path / "config.json").write_text(json.dumps(config))
    assert checkpoint_capabilities(checkpoint) == given


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_config_that_cannot_be_read(own_run: Run, content: str | None) -> None:
    """It is a broken checkpoint."""
    path = runs.checkpoint(own_run, 8).path / "config.json"
    path.write_text(content) if content else path.unlink()
    with pytest.raises(BrokenCheckpoint, match=r"config.json .*; copy this step again"):
        checkpoint_capabilities(runs.checkpoint(own_run, 8))


def test_asking_imports_no_torch() -> None:
    """An evaluation can be planned without it."""
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
def test_which_layers_share_their_heads(tiny_run: Run, family: str, config: dict, groups: int | None) -> None:
    """It depends on the family and on the `share` setting of its pretraining."""
    assert head_groups(replace(tiny_run, family=family, config=config)) == groups
