"""Tests of decoders: they give the numbers of transformers, and are recognised by config.json alone."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, BertConfig, BertLMHeadModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from embryo_core import runs
from embryo_core.engine.capabilities import DECODER_FAMILIES, OPTIONAL_DECODER_FAMILIES, checkpoint_capabilities
from embryo_core.engine.model import load
from embryo_core.errors import BrokenCheckpoint, MissingCapability
from embryo_core.types import Checkpoint, Run
from tests import decoders

FAMILIES = (
    "bloom gemma gemma2 gpt2 gpt_neo gpt_neox gptj llama mistral modernbert-decoder olmo olmo2 opt phi qwen2 qwen3 "
    "smollm3"
).split()
GIVEN = {"states", "attentions", "trainable", "next_words", "words"}
NOT_TEXT_ALONE = {  # models of images, sound or bytes, and XLNet, which sees what follows
    "bert-generation", "blt", "dots3_note", "emu3", "fuyu", "gemma3", "gemma3n", "gemma4", "gemma4_assistant",
    "gemma4_unified", "gemma4_unified_assistant", "git", "got_ocr2", "llama4", "mllama", "moshi", "musicgen",
    "musicgen_melody", "phi4_multimodal", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "trocr", "whisper", "xlnet",
}  # fmt: skip


def write(run: Run, model: torch.nn.Module) -> Checkpoint:
    """Write a model in place of the run's checkpoint at step 8."""
    folder = runs.checkpoint(run, 8).path
    model.save_pretrained(folder)
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, 8, None, None)
    return runs.checkpoint(run, 8)


@pytest.mark.parametrize("family", FAMILIES)
def test_decoder_outputs_equal_those_of_transformers(own_run: Run, family: str) -> None:
    """Logits after each piece, states and attentions agree; the lens applies final norm and head to the last states."""
    checkpoint = write(own_run, decoders.make(family))
    model = load(checkpoint)
    own = AutoModelForCausalLM.from_pretrained(checkpoint.path, attn_implementation="eager").eval()
    ids = np.array([[1, *range(5, 14), 2], [1, *range(20, 29), 2]])
    before: list[torch.Tensor] = []  # the last layer's states, before the final norm
    layers = next(part for part in own.modules() if isinstance(part, torch.nn.ModuleList) and len(part) == 2)
    layers[1].register_forward_hook(lambda _, __, out: before.append(out[0] if isinstance(out, tuple) else out))
    with torch.inference_mode():
        output = own(torch.as_tensor(ids), output_hidden_states=True, output_attentions=True)
    rows, columns = np.array([0, 1, 1]), np.array([4, 0, 10])
    logits = model.next_logits(ids, rows, columns)
    np.testing.assert_allclose(logits, output.logits.numpy()[rows, columns], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.hidden_states(ids), torch.stack(output.hidden_states), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.attentions(ids), torch.stack(output.attentions), atol=1e-6)
    lens = model.next_head(before[0].numpy()[rows, columns])
    np.testing.assert_allclose(lens, logits, rtol=1e-5, atol=1e-4)
    assert model.capabilities == GIVEN and model.max_positions == 40
    words, positions = model.embeddings()
    assert len(words) == 700 and (len(positions) == 40 if family in ("gpt2", "gpt_neo", "opt") else positions is None)


@pytest.mark.parametrize("norm_first", [True, False])
def test_opt_with_narrow_embeddings_has_states_of_one_width(own_run: Run, norm_first: bool) -> None:
    """The last states are those before the projection to the width of the embeddings, as in opt-350m."""
    change = {"word_embed_proj_dim": 16, "do_layer_norm_before": norm_first}
    checkpoint = write(own_run, decoders.make("opt", **change))
    model, own = load(checkpoint), AutoModelForCausalLM.from_pretrained(checkpoint.path).eval()
    ids = np.array([[1, *range(5, 14), 2]])
    unprojected: list[torch.Tensor] = []
    own.model.decoder.project_out.register_forward_pre_hook(lambda _, inputs: unprojected.append(inputs[0]))
    with torch.inference_mode():
        output = own(torch.as_tensor(ids), output_hidden_states=True)
    states = torch.stack([*output.hidden_states[:-1], *unprojected])
    np.testing.assert_allclose(model.hidden_states(ids), states, rtol=1e-5, atol=1e-5)
    logits = model.next_logits(ids, np.array([0]), np.array([4]))
    np.testing.assert_allclose(logits, output.logits.numpy()[0, [4]], rtol=1e-5, atol=1e-5)
    assert model.next_head(states[1, 0, :1].numpy()).shape == (1, 700)


def test_missing_prediction_head_is_reported(own_run: Run) -> None:
    """An encoder does not output next words, and a decoder does not output masked words."""
    at = np.array([[1, 5]]), np.array([0]), np.array([0])
    encoder = load(runs.checkpoint(own_run, 16))
    with pytest.raises(MissingCapability, match="does not output next words"):
        encoder.next_logits(*at)
    with pytest.raises(MissingCapability, match="does not output masked words"):
        load(write(own_run, decoders.make("gpt2"))).mlm_logits(*at)


def test_later_pieces_do_not_change_outputs(own_run: Run) -> None:
    """The start of a text gives the same logits alone as in a batch of longer texts."""
    model = load(write(own_run, decoders.make("gpt_neox")))
    ids = np.array([[1, 7, 8, 9, 10], [1, 11, 12, 0, 0]])
    together = model.next_logits(ids, np.array([1]), np.array([2]))
    alone = model.next_logits(ids[1:, :3], np.array([0]), np.array([2]))
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)


def test_decoder_that_sees_following_pieces_is_refused(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading checks what the model computes, not only the name of its class."""
    config = decoders.NAMES | {"vocab_size": 700, "max_position_embeddings": 40}
    write(own_run, BertLMHeadModel(BertConfig(**config)))
    monkeypatch.setattr("embryo_core.engine.capabilities.DECODER_FAMILIES", DECODER_FAMILIES | {"bert"})
    with pytest.raises(BrokenCheckpoint, match="depend on the pieces after it"):
        load(runs.checkpoint(own_run, 8))


@pytest.mark.parametrize("decoder", [True, False])
def test_is_decoder_turns_encoder_family_into_decoder(own_run: Run, decoder: bool) -> None:
    """A BERT predicts the next word if and only if its config.json sets is_decoder."""
    config = decoders.NAMES | {"vocab_size": 700, "max_position_embeddings": 40, "is_decoder": decoder}
    checkpoint = write(own_run, BertLMHeadModel(BertConfig(**config)))
    assert ("next_words" in checkpoint_capabilities(checkpoint)) == decoder
    if decoder:
        ids = np.array([[1, 5, 6]])
        own = BertLMHeadModel.from_pretrained(checkpoint.path).eval()(torch.as_tensor(ids)).logits[0, 1:2]
        logits = load(checkpoint).next_logits(ids, np.array([0]), np.array([1]))
        np.testing.assert_allclose(logits, own.detach(), rtol=1e-5, atol=1e-5)


def test_decoder_without_head_gives_no_next_words(own_run: Run) -> None:
    """The architecture in config.json decides."""
    checkpoint = write(own_run, decoders.make("gpt_neox").gpt_neox)
    assert checkpoint_capabilities(checkpoint) == GIVEN - {"next_words", "words"}
    assert load(checkpoint).hidden_states(np.array([[5, 6]])).shape == (3, 1, 2, 32)


def test_list_of_decoders_agrees_with_transformers() -> None:
    """The list has every family with a class for causal language models that is no encoder and reads only text."""
    causal, masked, pairs = (
        set(names)
        for names in (
            MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
            MODEL_FOR_MASKED_LM_MAPPING_NAMES,
            MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        )
    )
    assert causal - masked - pairs == DECODER_FAMILIES | NOT_TEXT_ALONE
    assert not DECODER_FAMILIES & NOT_TEXT_ALONE and (causal & masked) >= OPTIONAL_DECODER_FAMILIES
    for family in DECODER_FAMILIES:
        assert "vocab_size" in CONFIG_MAPPING[family]().to_dict(), family
