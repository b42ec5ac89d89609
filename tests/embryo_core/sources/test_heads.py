"""Tests that the names of its tensors decide what a checkpoint supports, not the class in config.json."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModelForMaskedLM,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)
from transformers.modeling_utils import PreTrainedModel

from embryo_core import runs
from embryo_core.cli import main
from embryo_core.engine.capabilities import checkpoint_capabilities
from embryo_core.engine.model import load
from embryo_core.sources import add
from tests.rounding import rounding

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
MORE = {"vocab_size": 640, "max_position_embeddings": 60, "pad_token_id": 1}
ENCODER = {"states", "attentions", "trainable"}


def model_of(kind: type = RobertaConfig, **settings: object) -> PreTrainedModel:
    """Return a masked language model with random weights."""
    torch.manual_seed(0)
    return AutoModelForMaskedLM.from_config(kind(**SIZES, **MORE, initializer_range=0.3, **settings)).eval()


def save(folder: Path, byte_level: Path, model: PreTrainedModel, **config: object) -> Path:
    """Write a checkpoint with its tokenizer; update its config.json, and drop settings that are None."""
    model.save_pretrained(folder)
    PreTrainedTokenizerFast.from_pretrained(byte_level).save_pretrained(folder)
    path = folder / "config.json"
    content = json.loads(path.read_text()) | config
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    return folder


@pytest.mark.parametrize("kind", [RobertaConfig, ModernBertConfig])
@pytest.mark.parametrize("pickled", [False, True])
def test_tensors_decide_on_masked_words(root, byte_level, tmp_path, kind, pickled):
    """An encoder labelled as a masked LM predicts no words; a masked LM does, even with a wrong label or none."""
    model = model_of(kind)
    encoder = model.base_model
    for name, whole, architectures, words in (
        ("bare", encoder, [type(model).__name__], False),
        ("unnamed", model, None, True),
        ("misnamed", model, [type(encoder).__name__], True),
    ):
        folder = save(tmp_path / name, byte_level, whole, architectures=architectures)
        if pickled:
            torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
            (folder / "model.safetensors").unlink()
        added = add([f"3:{folder}"], name)
        given = checkpoint_capabilities(runs.checkpoint(added.run, 3))
        assert given >= ENCODER and ("masked_words" in given) == words
        loaded, ids = load(runs.checkpoint(added.run, 3)), np.array([[0, 9, 8, 7, 2]])
        assert loaded.hidden_states(ids).shape == (3, 1, 5, 32)
        if words:
            assert loaded.mlm_logits(ids, [0], [2]).shape == (1, loaded.vocabulary_size)


def test_add_prints_capabilities_of_checkpoints(root, byte_level, tmp_path, capsys):
    """The output lists masked words, states and attentions by step, before any question is asked."""
    model = model_of()
    for step, part in ((1, model), (2, model.base_model), (3, model.base_model)):
        save(tmp_path / f"checkpoint-{step}", byte_level, part, architectures=["RobertaForMaskedLM"])
    main(["add", str(tmp_path), "--name", "mixed"])
    printed = capsys.readouterr().out
    assert "Checkpoints of step 1 give masked words, states, attentions." in printed
    assert "Checkpoints of steps 2, 3" in printed and "give states, attentions; no masked words" in printed


def test_weight_file_with_the_head_is_preferred(root, byte_level, tmp_path):
    """pytorch_model.bin is used if model.safetensors has only the encoder; else safetensors is, as in transformers."""
    model = model_of()
    for name, part in (("bare", model.base_model), ("whole", model)):
        folder = save(tmp_path / name, byte_level, part, architectures=["RobertaForMaskedLM"])
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        one = runs.checkpoint(add([f"3:{folder}"], name).run, 3)
        assert Path(one.pointer.file).name == ("pytorch_model.bin" if name == "bare" else "model.safetensors")
        assert "masked_words" in load(one).capabilities


def test_original_deberta_head_is_read(root, byte_level, tmp_path):
    """DeBERTa's original code names the head lm_predictions; config.json has neither the class nor the legacy flag."""
    model = DebertaV2ForMaskedLM(
        DebertaV2Config(**SIZES, **MORE, initializer_range=0.3, legacy=False, type_vocab_size=0)
    ).eval()
    assert any(name.startswith("lm_predictions.") for name in model.state_dict())
    folder = save(tmp_path / "deberta", byte_level, model, architectures=None, legacy=None)
    loaded, ids = load(runs.checkpoint(add([f"3:{folder}"], "deberta").run, 3)), np.array([[0, 9, 8, 7, 2]])
    with torch.no_grad():
        expected = model(torch.tensor(ids)).logits[0, 1:4, : loaded.vocabulary_size].numpy()
    logits = loaded.mlm_logits(ids, [0, 0, 0], [1, 2, 3])
    np.testing.assert_allclose(logits, expected, atol=rounding(loaded, 5, expected))
