"""Tests of the engine through transformers: it gives the fast engine's numbers and reads every listed family."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save
from transformers import AutoConfig, AutoModelForMaskedLM, RobertaModel
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from embryo_core import runs
from embryo_core.engine.capabilities import THROUGH_TRANSFORMERS, checkpoint_capabilities
from embryo_core.engine.device import CPU, Device, find_device
from embryo_core.engine.fast_engine import FastEncoder
from embryo_core.engine.model import Model, load
from embryo_core.engine.transformers_engine import TransformersEngine
from embryo_core.engine.transformers_models import max_sequence_length
from embryo_core.errors import BrokenCheckpoint, ConfigError, TokenizerMismatch
from embryo_core.families import ENCODERS
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run
from tests import demo as demo_run

PIECES = 40


def both(checkpoint: Checkpoint) -> tuple[Model, Model]:
    """Load a checkpoint through either engine."""
    tokenizer = load_tokenizer(checkpoint.run)
    engines = [engine(checkpoint, tokenizer.vocabulary_size) for engine in (FastEncoder, TransformersEngine)]
    return tuple(Model(checkpoint, tokenizer, engine) for engine in engines)


def check_against_transformers(model: Model) -> None:
    """Check logits against transformers' own class, and the shapes of states, attentions and embeddings."""
    ids = np.array([[1, *range(5, 14), 2]])
    at = np.array([0]), np.array([4])
    own = AutoModelForMaskedLM.from_pretrained(model.checkpoint.path, attn_implementation="eager").eval()
    with torch.inference_mode():
        expected = own(torch.as_tensor(ids)).logits[0, 4].numpy()
    logits = model.mlm_logits(ids, *at)
    assert logits.shape == (1, model.vocabulary_size)
    assert np.abs(logits[0] - expected[: logits.shape[1]]).max() <= 1e-5 * np.abs(expected).max()
    states = model.hidden_states(ids)
    assert states.shape == (3, 1, 11, 32)
    assert np.abs(model.layer_logits(ids[0], 4)[-1] - logits).max() <= 1e-5 * np.abs(expected).max()
    if "attentions" in model.capabilities:
        weights = model.attentions(ids)
        assert weights.shape == (2, 1, 2, 11, 11)
        assert np.abs(weights.sum(-1) - 1).max() < 11 * np.finfo(np.float32).eps
    words, positions = model.embeddings()
    assert len(words) == model.vocabulary_size and (positions is None or len(positions) >= model.max_positions)
    longest = np.full((1, model.max_positions), 5)
    assert np.isfinite(model.hidden_states(longest)).all()


@pytest.mark.parametrize("engine", [FastEncoder, TransformersEngine])
def test_vocabulary_smaller_than_the_tokenizer_is_refused(tiny_run: Run, engine: type):
    """A piece without a row in the embeddings cannot be read."""
    pieces = load_tokenizer(tiny_run).vocabulary_size + 1
    with pytest.raises(TokenizerMismatch, match=f"has {pieces} pieces, but .*step8 has {pieces - 1}"):
        engine(runs.checkpoint(tiny_run, 8), pieces)


@pytest.fixture(scope="module")
def demo() -> Checkpoint:
    """Return the last checkpoint of the demo that has weights."""
    return runs.loadable_checkpoints(demo_run.read())[-1]


def test_both_engines_agree_on_the_demo(demo):
    """Both sum in float32 in different orders: outputs agree to 1e-5 of the largest value."""
    fast, hub = both(demo)
    ids = fast.tokenizer.encode_text("The capital of France is [MASK] , a city on the river .")[None]
    at = np.array([0, 0]), np.array([6, 2])
    for one, other in (
        (fast.mlm_logits(ids, *at), hub.mlm_logits(ids, *at)),
        (fast.hidden_states(ids), hub.hidden_states(ids)),
        (fast.attentions(ids), hub.attentions(ids)),
        (fast.layer_logits(ids[0], 6), hub.layer_logits(ids[0], 6)),
    ):
        assert np.abs(one - other).max() <= 1e-5 * np.abs(one).max()


def test_groups_that_do_not_divide_the_layers_are_those_of_transformers(own_run):
    """Of 18 layers in 14 groups, layer 9 has the weights of group 6, since transformers rounds down 6.99…"""
    sizes = {"num_hidden_layers": 18, "num_hidden_groups": 14, "embedding_size": 16, "initializer_range": 0.5}
    fast, hub = both(write(own_run, "albert", sizes))
    ids = np.array([[1, 7, 9, 4, 11, 2]])
    one, other = fast.hidden_states(ids), hub.hidden_states(ids)
    assert np.abs(one - other).max() <= 1e-4 * np.abs(one).max()


def write(run: Run, family: str, change: dict | None = None) -> Checkpoint:
    """Write a tiny model of a family, with random weights, in place of the run's checkpoint at step 8."""
    names = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    own = {
        "fnet": {name: size for name, size in names.items() if name != "num_attention_heads"},
        "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
        "mobilebert": names | {"embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16},
        "rembert": names | {"input_embedding_size": 16, "output_embedding_size": 16},
        "eurobert": names | {"num_key_value_heads": 2},
        "xlm-roberta-xl": names | {"layer_norm_eps": 1e-5},
        "longformer": names | {"attention_window": 8},
        "luke": names | {"entity_vocab_size": 10, "entity_emb_size": 16},
        "squeezebert": names | {"embedding_size": 32},
        "xmod": names | {"languages": ["en_XX", "de_DE"], "default_language": "en_XX"},
    }
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    sizes = own.get(family, names) | special | {"vocab_size": 700, "max_position_embeddings": PIECES} | (change or {})
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model(family, **sizes))
    folder = runs.checkpoint(run, 8).path
    model.save_pretrained(folder)
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, 8, None, None)
    return runs.checkpoint(run, 8)


@pytest.mark.parametrize("family", sorted(THROUGH_TRANSFORMERS))
def test_every_listed_family_agrees_with_transformers(own_run, family):
    """Logits are those of transformers' own class; states and attentions have the shapes of the facade."""
    check_against_transformers(load(write(own_run, family)))


@pytest.mark.parametrize("family", ["big_bird", "esm", "megatron-bert", "modernbert", "roberta-prelayernorm"])
def test_lens_applies_final_norm_to_every_layer(own_run, family):
    """If the last layer adds nothing, the layer below has the model's own logits; BigBird's pooler is left out."""
    checkpoint = write(own_run, family)
    tensors = load_file(checkpoint.path / "model.safetensors")
    for name, values in tensors.items():
        if re.search(r"layers?\.1\..*(output\.dense|Wo)\.", name):
            values[:] = 0
        if re.search(r"(final_norm|encoder\.ln|roberta_prelayernorm\.LayerNorm|layer_norm_after)\.weight$", name):
            values[:] = np.linspace(0.5, 2, len(values))
    rewrite(checkpoint, "model.safetensors", save(tensors, {"format": "pt"}))
    below, last = load(runs.checkpoint(own_run, 8)).layer_logits(np.array([1, 7, 9, 4, 11, 2]), 3)[-2:]
    assert np.abs(below - last).max() <= 1e-4 * np.abs(last).max()


def test_unsupported_families_are_known():
    """docs/sources.md lists the families that are not read, and why."""
    left = MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys() - THROUGH_TRANSFORMERS - ENCODERS.keys()
    with_decoder, odd_positions, hashed = {"bart", "mbart", "mvp"}, {"funnel", "perceiver"}, {"mra", "reformer"}
    own_tokenizer, of_images = {"flaubert", "xlm", "roc_bert"}, {"modernvbert", "neomme", "ultravbert"}
    assert left == with_decoder | odd_positions | hashed | own_tokenizer | of_images


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "esm", "mpnet", "roberta"])
def test_maximum_length_is_known_without_weights(own_run, family):
    """The length equals the maximum of the loaded model."""
    checkpoint = write(own_run, family)
    expected = load(checkpoint).max_positions
    (checkpoint.path / "model.safetensors").unlink()
    assert max_sequence_length(checkpoint) == expected


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("deberta", {"legacy": False}),
        ("deberta-v2", {"legacy": False}),
        ("deberta-v2", {"legacy": False, "relative_attention": True, "pos_att_type": ["c2p"], "type_vocab_size": 0}),
        ("deberta-v2", {"embedding_size": 16, "position_biased_input": False}),
        ("eurobert", {"mlp_bias": True, "tie_word_embeddings": False}),
        ("mobilebert", {"embedding_size": 32}),
        ("modernbert", {"decoder_bias": False, "norm_bias": True}),
        ("roformer", {"embedding_size": 16, "rotary_value": True}),
        ("esm", {"position_embedding_type": "rotary", "emb_layer_norm_before": True}),
    ],
)
def test_variants_of_heads_and_embeddings_agree_with_transformers(own_run, family, change):
    """Some of these heads read the encoder's embeddings."""
    check_against_transformers(load(write(own_run, family, change)))


def test_model_without_attention_has_no_heads(own_run):
    """FNet's config.json has no num_attention_heads, and its capabilities have no attentions."""
    checkpoint = write(own_run, "fnet")
    assert "num_attention_heads" not in json.loads((checkpoint.path / "config.json").read_text())
    model = load(checkpoint)
    assert model.num_heads == 0 and "attentions" not in model.capabilities
    stored_tensors = load_file(checkpoint.path / "model.safetensors")
    assert model.nbytes >= sum(tensor.nbytes for tensor in stored_tensors.values())
    check_against_transformers(model)


def test_positions_are_counted_after_the_padding_row(own_run):
    """RoBERTa's position embeddings have two rows that no piece uses."""
    assert load(write(own_run, "roberta", {"pad_token_id": 1})).max_positions == PIECES - 2


def test_models_can_be_loaded_by_several_threads(own_run):
    """A question to all steps loads models in threads; each has all of its weights, including tied ones."""
    checkpoint = write(own_run, "roberta")
    with ThreadPoolExecutor(8) as threads:
        models = list(threads.map(load, [checkpoint] * 24))
    ids, at = np.array([[1, 5, 6, 2]]), (np.array([0]), np.array([1]))
    actual = [model.mlm_logits(ids, *at) for model in models]
    assert all(np.array_equal(logits, actual[0]) for logits in actual)


def test_class_of_another_task_gives_no_masked_words(own_run):
    """The class named in config.json decides, even if the file has the weights of a head."""
    checkpoint = write(own_run, "roberta")
    classes = {"architectures": ["RobertaForSequenceClassification"]}
    config = json.loads((checkpoint.path / "config.json").read_text()) | classes
    rewrite(checkpoint, "config.json", json.dumps(config).encode())
    model = load(runs.checkpoint(own_run, 8))
    assert checkpoint_capabilities(model.checkpoint) == {"states", "attentions", "trainable"}
    assert model.hidden_states(np.array([[5, 6]])).shape == (3, 1, 2, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"auto_map": {"AutoModelForMaskedLM": "evil--code.Model"}, "_attn_implementation": "a/kernel"}, None),
        ({"num_hidden_layers": 3}, "lacks roberta.encoder.layer.2"),
        ({"hidden_size": 64}, "cannot be read|lacks|transformers cannot"),
        ({"num_hidden_layers": 4000}, "config.json is not valid"),
        ({"vocab_size": 100}, None),
        ({"hidden_dropout_prob": "half"}, "transformers cannot read it .*hidden_dropout_prob.* expected float"),
        ({"output_attentions": True, "output_hidden_states": True, "return_dict": False}, None),
        ({"num_labels": 10**8, "id2label": {"0": "a"}, "task_specific_params": {"a": {"b": [1, True]}}}, None),
        ({"num_experts": 10**6}, "num_experts 1,000,000 .the maximum is 1,024"),
        ({"pad_token_id": 2**40}, "config.json is not valid"),
        ({"layer_types": ["full_attention"] * 10_001}, "config.json is not valid"),
        ({"rope_theta": 1e300}, "config.json is not valid"),
    ],
)
def test_unusual_config_is_read_safely_or_refused(own_run, change, message):
    """Names of remote code and the outputs of a pass are ignored; sizes have to be those of the weights."""
    checkpoint = write(own_run, "roberta")
    config = json.loads((checkpoint.path / "config.json").read_text())
    rewrite(checkpoint, "config.json", json.dumps(config | change).encode())
    if message is None and "vocab_size" not in change:
        model = load(runs.checkpoint(own_run, 8))
        assert model.num_layers == 2 and model.hidden_states(np.array([[5, 6]])).shape == (3, 1, 2, 32)
        return
    with pytest.raises(Exception, match=message or "has 100") as raised:
        load(runs.checkpoint(own_run, 8))
    assert str(raised.value).count("\n") == 0


def test_weights_with_nan_are_refused(own_run):
    """The error names the tensor."""
    checkpoint = write(own_run, "roberta")
    model = AutoModelForMaskedLM.from_pretrained(checkpoint.path)
    model.roberta.encoder.layer[1].output.dense.weight.data[3, 4] = float("nan")
    model.save_pretrained(checkpoint.path)
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, 8, None, None)
    with pytest.raises(BrokenCheckpoint, match=r"layer.1.output.dense.weight that is not finite"):
        load(runs.checkpoint(own_run, 8))


def test_failed_forward_pass_is_reported(own_run):
    """X-MOD needs a language: without one its weights can be read, but its forward pass raises."""
    with pytest.raises(BrokenCheckpoint, match=r"step8: transformers cannot compute it .*anguage"):
        load(write(own_run, "xmod", {"default_language": None}))


def test_unread_tensor_of_the_encoder_is_refused(own_run):
    """Transformers no longer has relative positions for RoBERTa; heads of other tasks may be stored."""
    checkpoint = write(own_run, "roberta")
    tensors = load_file(checkpoint.path / "model.safetensors") | {"classifier.weight": np.zeros((2, 32), np.float32)}
    rewrite(checkpoint, "model.safetensors", save(tensors))
    assert load(runs.checkpoint(own_run, 8)).num_layers == 2
    tensors["roberta.encoder.layer.0.attention.self.distance_embedding.weight"] = np.zeros((79, 16), np.float32)
    rewrite(checkpoint, "model.safetensors", save(tensors))
    with pytest.raises(BrokenCheckpoint, match=r"distance_embedding\.weight, which transformers does not read"):
        load(runs.checkpoint(own_run, 8))


def test_bare_encoder_may_have_other_heads(own_run):
    """Its tensor names have no prefix; an unread tensor of a layer is still refused."""
    checkpoint = write(own_run, "roberta")
    torch.manual_seed(0)
    RobertaModel(AutoConfig.from_pretrained(checkpoint.path)).save_pretrained(checkpoint.path)
    stored_tensors = load_file(checkpoint.path / "model.safetensors")
    rewrite(checkpoint, "model.safetensors", save(stored_tensors | {"head.weight": np.zeros((2, 32), np.float32)}))
    assert load(runs.checkpoint(own_run, 8)).num_layers == 2
    rewrite(
        checkpoint, "model.safetensors", save(stored_tensors | {"encoder.layer.0.new.weight": np.zeros(2, np.float32)})
    )
    with pytest.raises(BrokenCheckpoint, match=r"encoder\.layer\.0\.new\.weight, which transformers does not read"):
        load(runs.checkpoint(own_run, 8))


def test_bigbird_reads_long_text_after_short_one(own_run):
    """After a short text, transformers would use full attention for good; it also pads what it returns."""
    model = load(write(own_run, "big_bird", {"max_position_embeddings": 800}))
    ids = np.random.default_rng(0).integers(5, 700, (1, 733))
    before = model.hidden_states(ids)
    model.hidden_states(ids[:, :9])
    assert before.shape == (3, 1, 733, 32) and (model.hidden_states(ids) == before).all()


def test_full_device_memory_is_reported(own_run, monkeypatch):
    """The error recommends another device and does not call the checkpoint broken."""
    model = load(write(own_run, "roberta"))

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    monkeypatch.setattr(RobertaModel, "forward", full)
    with pytest.raises(ConfigError, match=r"step8 does not fit into the memory of its device .*--device cpu"):
        model.hidden_states(np.array([[1, 5, 2]]))


def test_model_larger_than_memory_is_refused(own_run, monkeypatch):
    """The system would end the process otherwise; the error has both sizes."""
    write(own_run, "roberta")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    with pytest.raises(ConfigError, match=r"step8 has .* billion parameters, .* this machine has 4\.1e-05 GB"):
        load(runs.checkpoint(own_run, 8))


def test_missing_device_is_reported():
    """The error lists the available devices; auto then chooses the CPU."""
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="This machine has no device 'cuda'; it has: cpu"):
            find_device("cuda")
        assert find_device("auto") == CPU


def test_bfloat16_is_close_to_float32(tiny_run):
    """An ALBERT in bfloat16 goes through transformers and stays within 32 times that type's epsilon."""
    checkpoint = runs.checkpoint(tiny_run, 16)
    ids = np.array([[2, 7, 9, 4, 11, 3]])
    at = (np.array([0]), np.array([3]))
    models = (load(checkpoint, device) for device in (CPU, Device("cpu", torch.bfloat16)))
    one, other = (model.mlm_logits(ids, *at) for model in models)
    assert 0 < np.abs(one - other).max() <= 32 * torch.finfo(torch.bfloat16).eps * np.abs(one).max()


def rewrite(checkpoint: Checkpoint, name: str, content: bytes) -> None:
    """Write other content to a file, and a manifest with its hash."""
    path: Path = checkpoint.path / name
    path.write_bytes(content)
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, checkpoint.step, None, None)


def test_embeddings_are_the_stored_matrices(own_run):
    """Positions begin after the padding row; a model with rotary positions has no position embeddings."""
    checkpoint = write(own_run, "roberta", {"pad_token_id": 1})
    stored_tensors = load_file(checkpoint.path / "model.safetensors")
    words, positions = load(checkpoint).embeddings()
    pieces = load_tokenizer(own_run).vocabulary_size
    assert np.array_equal(words, stored_tensors["roberta.embeddings.word_embeddings.weight"][:pieces])
    assert np.array_equal(positions, stored_tensors["roberta.embeddings.position_embeddings.weight"][2:])
    words, positions = load(write(own_run, "roformer")).embeddings()
    assert len(words) == pieces and positions is None
