"""Tests of the fast engine for decoders, which computes the numbers of transformers in every storage format."""

import json
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from embryo_core import runs
from embryo_core.engine import fast_decoder
from embryo_core.engine.cache import ModelCache
from embryo_core.engine.fast_decoder import FastDecoder
from embryo_core.engine.model import Model, load
from embryo_core.engine.tensor_statistics import TensorMeter
from embryo_core.engine.transformers_engine import TransformersEngine
from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Checkpoint, Run
from tests import decoders
from tests.rounding import rounding

pytestmark = pytest.mark.usefixtures("kernels")  # with the fast kernels, and without
PIECES = 700  # of the tokenizer

SETTINGS = {  # every seed draws one value of each
    "gpt2": {
        "n_head": [1, 2, 4],
        "n_inner": [None, 40],
        "activation_function": ["gelu_new", "gelu", "relu"],
        "scale_attn_weights": [True, False],
        "scale_attn_by_inverse_layer_idx": [True, False],
        "reorder_and_upcast_attn": [True, False],
        "layer_norm_epsilon": [1e-5, 1e-3],
        "tie_word_embeddings": [True, False],
    },
    "gpt_neox": {
        "num_attention_heads": [1, 2, 4],
        "hidden_act": ["gelu", "gelu_new", "relu"],
        "rotary_pct": [0.25, 0.5, 1.0],
        "rotary_emb_base": [100, 10_000],
        "use_parallel_residual": [True, False],
        "layer_norm_eps": [1e-5, 1e-3],
        "tie_word_embeddings": [True, False],
    },
}


def write(run: Run, model: torch.nn.Module, bare: bool = False) -> Checkpoint:
    """Write a model in place of the run's checkpoint at step 8; `bare`: without the prefix of its names."""
    folder = runs.checkpoint(run, 8).path
    (folder / "manifest.json").unlink(missing_ok=True)
    model.save_pretrained(folder)
    if bare:
        rename(folder, lambda name: name.removeprefix("transformer.").removeprefix("gpt_neox."))
    runs.write_manifest(folder, 8, None, None)
    return runs.checkpoint(run, 8)


def rename(folder, new) -> None:
    """Store the tensors of a checkpoint under other names."""
    path = folder / "model.safetensors"
    save_file({new(name): tensor for name, tensor in load_file(path).items()}, path, {"format": "pt"})


def check(model: Model) -> None:
    """Check that states, attentions, logits and the lens equal those of transformers in a batch of two texts."""
    assert isinstance(model._engine, FastDecoder)
    own = AutoModelForCausalLM.from_pretrained(
        model.checkpoint.path, attn_implementation="eager", dtype=torch.float32
    ).eval()
    ids = np.array([[1, *range(5, 14), 2], [1, *range(20, 29), 2]])
    rows, columns = np.indices(ids.shape).reshape(2, -1)
    before: list[torch.Tensor] = []  # the last layer's states, before the final norm
    layers = next(part for part in own.modules() if isinstance(part, torch.nn.ModuleList) and len(part) == 2)
    layers[1].register_forward_hook(lambda _, __, out: before.append(out[0] if isinstance(out, tuple) else out))
    with torch.inference_mode():
        output = own(
            torch.as_tensor(ids),
            output_hidden_states=True,
            output_attentions=True,
        )
    states, logits = torch.stack(output.hidden_states).numpy(), output.logits.numpy()[rows, columns, :PIECES]
    close(model, model.hidden_states(ids)[:, rows, columns], states[:, rows, columns])
    close(model, model.next_logits(ids, rows, columns), logits)
    check_read_on(model, ids, output.logits.numpy()[..., :PIECES])
    close(model, model.next_head(before[0].numpy()[rows, columns]), logits)
    theirs = torch.stack(output.attentions).numpy()
    scores = np.log(
        theirs, where=theirs > 0, out=np.zeros_like(theirs)
    )  # an absolute error in a score is a relative error in its weight
    ours = model.attentions(ids).transpose(1, 3, 0, 2, 4)[rows, columns]
    theirs = theirs.transpose(1, 3, 0, 2, 4)[rows, columns]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rounding(model, ids.shape[1], scores))


def check_read_on(model: Model, ids: np.ndarray, theirs: np.ndarray) -> None:
    """Check that logits after the last pieces do not depend on how the text was split before: [B, L, V]."""
    whole, _ = model.forward_with_past(ids[:1], last=ids.shape[1])
    close(model, whole, theirs[:1])
    both = np.stack([ids[0], np.append(ids[0, :4], ids[1, 4:7].repeat(3)[: ids.shape[1] - 4])])
    expected, _ = model.forward_with_past(both, last=3)
    text, past = model.forward_with_past(ids[:1, :6])
    close(model, text[:, 0], theirs[:1, 5])
    rest, past = model.forward_with_past(both[:, 4:8], past[..., :4, :])  # one row's past, shortened, serves two
    one_more, past = model.forward_with_past(both[:, 8:9], past)
    last, _ = model.forward_with_past(both[:, 9:], past, last=2)
    close(model, np.concatenate([one_more, last], axis=1), expected)
    close(model, rest[:1, 0], theirs[:1, 7])


def close(model: Model, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Check that both are equal up to rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rounding(model, 11, theirs))


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox"])
@pytest.mark.parametrize("seed", range(8))
def test_all_outputs_equal_those_of_transformers(
    own_run: Run, family: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each seed draws a configuration, a stored type, a prefix of the names, mapping, and rows beyond the tokenizer."""
    draw = random.Random(seed)
    change = {name: draw.choice(values) for name, values in SETTINGS[family].items()}
    model = decoders.make(family, vocabulary=draw.choice([700, 768]), **change)
    stored = draw.choice([torch.float32, torch.float16, torch.bfloat16])
    monkeypatch.setattr(fast_decoder, "MAPPED_BYTES", draw.choice([0, 2**40]))
    check(load(write(own_run, model.to(stored), bare=draw.random() < 0.3)))


def test_memory_mapped_model_is_not_cached(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped model would evict others, and opening it again is quick."""
    checkpoint = write(own_run, decoders.make("gpt2"))
    models = ModelCache(limit=10**9)
    assert models.get(checkpoint) is models.get(checkpoint) and models.nbytes
    monkeypatch.setattr(fast_decoder, "MAPPED_BYTES", 0)
    models = ModelCache(limit=10**9)
    assert models.get(checkpoint).nbytes > checkpoint.path.joinpath("model.safetensors").stat().st_size / 2
    assert models.get(checkpoint) is not models.get(checkpoint) and not models.nbytes


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox"])
def test_buffers_of_old_files_are_ignored(own_run: Run, family: str) -> None:
    """Early versions stored causal masks, rotary frequencies and, in half precision, a mask value of minus infinity."""
    checkpoint = write(own_run, decoders.make(family))
    path = checkpoint.path / "model.safetensors"
    part = {"gpt2": "transformer.h.{}.attn", "gpt_neox": "gpt_neox.layers.{}.attention"}[family]
    more = {}
    for i in range(2):
        more[f"{part.format(i)}.bias"] = torch.ones(1, 1, 40, 40, dtype=torch.bool).tril()
        more[f"{part.format(i)}.masked_bias"] = torch.tensor(-1e9).half()
        if family == "gpt_neox":
            more[f"{part.format(i)}.rotary_emb.inv_freq"] = torch.ones(4)
    save_file(load_file(path) | more, path, {"format": "pt"})
    runs.write_manifest(checkpoint.path, 8, None, None)
    check(load(runs.checkpoint(own_run, 8)))
    through = TransformersEngine(runs.checkpoint(own_run, 8), PIECES)
    assert through.hidden_states(torch.tensor([[5, 6]])).shape == (3, 1, 2, 32)
    assert not TensorMeter(1).measure(runs.checkpoint(own_run, 8)).infinite


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("gpt2", {"activation_function": "silu"}),
        ("gpt_neox", {"attention_bias": False}),
        ("gpt_neox", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}),
    ],
)
def test_unsupported_configuration_uses_transformers(own_run: Run, family: str, change: dict) -> None:
    """The fast engine supports neither SiLU, nor attention without biases, nor rescaled positions."""
    checkpoint = write(own_run, decoders.make(family, **change))
    model = load(checkpoint)
    assert not isinstance(model._engine, FastDecoder)
    own = AutoModelForCausalLM.from_pretrained(checkpoint.path).eval()
    ids = np.array([[1, 5, 6, 7]])
    logits = own(torch.as_tensor(ids)).logits[0, 3:].detach().numpy()
    close(model, model.next_logits(ids, np.array([0]), np.array([3])), logits)


@pytest.mark.parametrize("what", ["missing", "foreign", "shape", "head", "infinite"])
def test_wrong_tensors_are_refused(own_run: Run, what: str) -> None:
    """A weight or the output matrix is missing, a layer is too many, a shape is wrong, or a number is NaN."""
    checkpoint = write(own_run, decoders.make("gpt_neox"))
    path = checkpoint.path / "model.safetensors"
    tensors, name = load_file(path), "gpt_neox.layers.1.mlp.dense_h_to_4h.weight"
    if what == "missing":
        del tensors[name]
    elif what == "foreign":
        tensors["gpt_neox.layers.2.mlp.dense_h_to_4h.weight"] = tensors[name].clone()
    elif what == "shape":
        tensors[name] = tensors[name][:40].clone()
    elif what == "head":
        del tensors["embed_out.weight"]
    else:
        tensors[name][3, 3] = torch.nan
    save_file(tensors, path, {"format": "pt"})
    runs.write_manifest(checkpoint.path, 8, None, None)
    said = {"foreign": "layers.2.mlp", "head": "embed_out", "shape": r"\[40, 32\]", "infinite": "not finite"}
    with pytest.raises(BrokenCheckpoint, match=said.get(what, "lacks .*layers.1.mlp.dense_h_to_4h.weight")):
        load(runs.checkpoint(own_run, 8))


def test_invalid_config_value_is_refused(own_run: Run) -> None:
    """The error names the file and the setting."""
    checkpoint = write(own_run, decoders.make("gpt2"))
    path = checkpoint.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_norm_epsilon": -1}))
    runs.write_manifest(checkpoint.path, 8, None, None)
    with pytest.raises(BrokenCheckpoint, match=r"config.json is not valid: .*layer_norm_epsilon"):
        load(runs.checkpoint(own_run, 8))
