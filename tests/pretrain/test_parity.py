"""Tests that Keras and transformers compute equal states, attentions and logits from exported weights."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file

from pretrain.batches import Data
from pretrain.config import Config
from pretrain.encoders import Encoder, padding_bias
from pretrain.export import write_checkpoint
from pretrain.families import FAMILIES, preset
from pretrain.masking import Batch
from pretrain.model import fill_masks
from pretrain.state import Progress

TOLERANCE = 1e-4  # promised for the logits of every checkpoint, whatever its size
MASKED = {"prediction_logits": "masked_lm"}
VARIANTS = {  # preset, changed settings, and heads of the checkpoint: names of outputs in transformers to ours
    "albert": ("tiny", {}, MASKED | {"sop_logits": "sentence_order"}),
    "albert, next sentences": ("tiny", {"sentence_loss": "nsp"}, MASKED | {"sop_logits": "next_sentence"}),
    "albert, no sentence loss": ("tiny", {"sentence_loss": "none"}, {"logits": "masked_lm"}),
    "albert, nothing shared": ("tiny", {"share": "none"}, MASKED),
    "albert, attention shared": ("tiny", {"share": "attention"}, MASKED),
    "albert, feed-forward shared": ("tiny", {"share": "ffn"}, MASKED),
    "albert, GELU by the error function": ("tiny", {"hidden_act": "gelu"}, MASKED | {"sop_logits": "sentence_order"}),
    "albert, two groups": ("tiny", {"num_hidden_layers": 4, "num_hidden_groups": 2}, MASKED),
    "bert": ("bert-tiny", {}, MASKED | {"seq_relationship_logits": "next_sentence"}),
    "bert, no sentence loss": ("bert-tiny", {"sentence_loss": "none"}, {"logits": "masked_lm"}),
    "bert, GELU by the error function": ("bert-tiny", {"hidden_act": "gelu"}, MASKED),
    "electra, GELU in its tanh form": ("electra-tiny", {"hidden_act": "gelu_new"}, {"logits": "replaced_token"}),
    "electra": ("electra-tiny", {}, {"logits": "replaced_token"}),
    "electra, no projection": ("electra-tiny", {"embedding_size": 32}, {"logits": "replaced_token"}),
}


class Part(NamedTuple):
    """One exported model: its folder, our encoder, the ids that it reads, and our logits for them."""

    folder: Path
    encoder: Encoder
    ids: np.ndarray
    logits: dict[str, np.ndarray]  # by their names in transformers
    repeats: bool = False  # whether the file repeats weights that layers share


@pytest.fixture(scope="module")
def batch(config: Config, data: Data) -> Batch:
    """Return a batch with both segments, whose rows are padded by 1, 2, 3, ... more tokens; none of these is masked."""
    batch = data.training(config.short_steps)
    for row, padding in enumerate(range(1, 1 + len(batch.ids))):
        batch.ids[row, -padding:] = batch.token_type_ids[row, -padding:] = batch.attention_mask[row, -padding:] = 0
    inside = np.take_along_axis(batch.attention_mask, batch.positions, axis=1) > 0
    return replace(batch, positions=batch.positions * inside)


@pytest.fixture(scope="module", params=VARIANTS)
def parts(request: pytest.FixtureRequest, batch: Batch, tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    """Export the models of one variant, in which every weight is random, so that no two are equal."""
    name, changes, outputs = VARIANTS[request.param]
    config = replace(preset(name), **changes)
    model = FAMILIES[config.family].model(config)
    model(batch.inputs())
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(variable + rng.normal(0, 0.2, variable.shape).astype(np.float32))
    folder = write_checkpoint(model, config, tmp_path_factory.mktemp("run"), Progress(3, 24, 300))
    everywhere = np.broadcast_to(np.arange(batch.ids.shape[1], dtype=np.int32), batch.ids.shape)
    words = model.heads["masked_lm"]
    if config.family != "electra":
        our_outputs = model(batch.inputs() | {"positions": everywhere})
        logits = {theirs: array(our_outputs[ours]) for theirs, ours in outputs.items()}
        return [Part(folder, model.encoder, batch.ids, logits, changes.get("share") in ("attention", "ffn"))]
    detection = model(batch.inputs())["replaced_token"]
    filled = array(fill_masks(batch.ids, detection.sampled, batch.positions))
    states = model.generator(batch.ids, batch.token_type_ids, batch.attention_mask)
    generated = array(words(states[-1]))
    return [
        Part(folder, model.encoder, filled, {"logits": array(detection.logits)}),
        Part(folder / "generator", model.generator, batch.ids, {"logits": generated}),
    ]


def array(tensor: Any) -> np.ndarray:
    """Return a Keras tensor as a numpy array."""
    return np.array(ops.convert_to_numpy(tensor))


def theirs(part: Part, batch: Batch) -> Any:
    """Return the output of transformers' class; check that the folder has exactly the weights of that class."""
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(part.folder).architectures[0])
    model, report = kind.from_pretrained(part.folder, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    ids, kinds, mask = (torch.tensor(a) for a in (part.ids, batch.token_type_ids, batch.attention_mask))
    with torch.no_grad():
        return model.eval()(ids, mask, kinds, output_hidden_states=True, output_attentions=True)


def test_states_attentions_and_logits_agree(parts: list[Part], batch: Batch):
    """The tolerance is 1e-4 at every position, padding included; logits vary, so none agree by being zero."""
    for part in parts:
        expected = theirs(part, batch)
        states = part.encoder(part.ids, batch.token_type_ids, batch.attention_mask)
        assert len(states) == len(expected.hidden_states) == len(part.encoder.transformer) + 1
        for ours, other in zip(states, expected.hidden_states, strict=True):
            np.testing.assert_allclose(array(ours), other.numpy(), rtol=0, atol=TOLERANCE)
        bias = padding_bias(batch.attention_mask)
        for layer, state, other in zip(part.encoder.transformer, states[:-1], expected.attentions, strict=True):
            actual = array(layer.attention.attend(state, bias))
            np.testing.assert_allclose(actual, other.numpy(), rtol=0, atol=TOLERANCE)
        for name, logits in part.logits.items():
            np.testing.assert_allclose(logits, expected[name].numpy(), rtol=0, atol=TOLERANCE)
            assert np.ptp(logits) > 0.1


def test_checkpoints_load_as_models_for_pretraining(parts: list[Part]):
    """AutoModelForPreTraining loads each folder; the manifest counts a weight that layers share once."""
    for part in parts:
        loaded = transformers.AutoModelForPreTraining.from_pretrained(part.folder)
        assert loaded.config.num_hidden_layers == len(part.encoder.transformer)
        manifest = json.loads((part.folder / "manifest.json").read_text())
        stored_tensors = sum(array.size for array in load_file(part.folder / "model.safetensors").values())
        assert manifest["parameters"] <= stored_tensors and (manifest["parameters"] < stored_tensors) == part.repeats
