"""Tests of loaded models: they compute the numbers of plain transformers, and loading errors say what is wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    BertForMaskedLM,
    BertForPreTraining,
    ElectraForMaskedLM,
    ElectraForPreTraining,
)

from embryo_core import query, results, runs
from embryo_core.engine import tensor_files
from embryo_core.engine.model import Model, load, word_logits
from embryo_core.errors import BrokenCheckpoint, MissingCapability, TokenizerMismatch
from embryo_core.evaluation import evaluate
from embryo_core.tokenizers.tokenizer import Tokenizer
from embryo_core.types import Checkpoint, Run
from tests.conftest import SAMPLE_DATA
from tests.rounding import rounding

TEXTS = ["The river runs through the old town.", "She was born in [MASK]."]


pytestmark = pytest.mark.usefixtures("kernels")  # with the fast kernels, and without


def store(run: Run, model: torch.nn.Module) -> Checkpoint:
    """Put another model into the run's checkpoint at step 16."""
    folder = run.path / "checkpoints" / "step16"
    shutil.rmtree(folder)
    model.save_pretrained(folder)
    runs.write_manifest(folder, 16, sequences=64, tokens=4096)
    return runs.checkpoint(run, 16)


def small(kind: type[torch.nn.Module], **settings: object) -> torch.nn.Module:
    """Make a model of this class, two layers deep, with random weights and the tiny run's vocabulary."""
    torch.manual_seed(1)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    config = {"vocab_size": 700, "max_position_embeddings": 40, **sizes, **settings}
    return kind(kind.config_class(**config))


def ids_of_texts(tokenizer: Tokenizer) -> np.ndarray:
    """Return ids of TEXTS in one batch; the longer text is cut."""
    rows = [tokenizer.encode_text(text) for text in TEXTS]
    return np.stack([row[: min(map(len, rows))] for row in rows])


@pytest.fixture(params=["albert", "bert", "electra", "electra with a projection", "electra's generator"])
def checkpoint(request: pytest.FixtureRequest, own_run: Run) -> Checkpoint:
    """Store a checkpoint of each family; BERT's is stored in float16."""
    if request.param == "albert":
        return runs.checkpoint(own_run, 16)
    models = {
        "bert": lambda: small(BertForPreTraining).half(),
        "electra": lambda: small(ElectraForPreTraining, embedding_size=24),
        "electra with a projection": lambda: small(ElectraForPreTraining, embedding_size=16),
        "electra's generator": lambda: small(ElectraForMaskedLM, embedding_size=16),
    }
    return store(own_run, models[request.param]())


@pytest.mark.parametrize("texts", [1, 2])
def test_all_outputs_equal_those_of_transformers(checkpoint, texts):
    """Hidden states, attentions and, with a head, logits at every position are compared with the stored model's."""
    model = load(checkpoint)
    ids = ids_of_texts(model.tokenizer)[:texts]
    rows, columns = np.indices(ids.shape).reshape(2, -1)
    architecture = json.loads((checkpoint.path / "config.json").read_text())["architectures"][0]
    kind = getattr(transformers, architecture)
    reference = kind.from_pretrained(checkpoint.path, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = reference(torch.tensor(ids), output_hidden_states=True, output_attentions=True, return_dict=True)
    states, attentions = model.hidden_states(ids), model.attentions(ids)
    theirs = torch.stack(expected.hidden_states).numpy()
    assert states.shape == (model.num_layers + 1, *ids.shape, model.hidden_size) == theirs.shape
    close(model, ids, states, theirs)
    theirs = torch.stack(expected.attentions).numpy()
    assert attentions.shape == (model.num_layers, len(ids), model.num_heads, ids.shape[1], ids.shape[1])
    scores = np.log(
        theirs, where=theirs > 0, out=np.zeros_like(theirs)
    )  # an absolute error in a score is a relative error in its weight
    np.testing.assert_allclose(attentions, theirs, rtol=0, atol=rounding(model, ids.shape[1], scores))
    if "masked_words" in model.capabilities:
        logits = expected["prediction_logits" if architecture.endswith("PreTraining") else "logits"].numpy()
        logits = logits[rows, columns]
        close(model, ids, model.mlm_logits(ids, rows, columns), logits)
        close(model, ids, model.mlm_logits(ids, rows[-2:], columns[-2:]), logits[-2:])
        by_layer = np.stack([model.layer_logits(ids[0], column) for column in range(ids.shape[1])], axis=1)
        assert by_layer.shape == (model.num_layers + 1, ids.shape[1], model.vocabulary_size)
        close(model, ids, by_layer[-1], logits[rows == 0])


def close(model: Model, ids: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Check that both are equal up to rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rounding(model, ids.shape[1], theirs))


def test_discriminator_has_no_masked_words(own_run):
    """ELECTRA's discriminator gives states and attentions; a request for words is refused with what it gives."""
    model = load(store(own_run, small(ElectraForPreTraining)))
    assert model.capabilities == {"replaced_tokens", "states", "attentions", "trainable"}
    ids = np.array([[2, 9, 3]])
    given = "attentions, replaced tokens, states, trainable"
    expected = rf"step16 \(ElectraForPreTraining\) does not output masked words, only {given}; choose"
    with pytest.raises(MissingCapability, match=expected):
        model.mlm_logits(ids, [0], [1])
    with pytest.raises(MissingCapability, match=expected):
        model.layer_logits(ids[0], 1)


def with_generator(run: Run) -> tuple[Checkpoint, ElectraForPreTraining, ElectraForMaskedLM]:
    """Store an ELECTRA as pretraining does, its generator half as wide; return it and both models."""
    discriminator = small(ElectraForPreTraining, embedding_size=16)
    generator = small(ElectraForMaskedLM, embedding_size=16, hidden_size=12, num_attention_heads=1)
    checkpoint = store(run, discriminator)
    generator.save_pretrained(checkpoint.path / "generator")
    runs.write_manifest(checkpoint.path / "generator", 16, sequences=64, tokens=4096)
    return checkpoint, discriminator.eval(), generator.eval()


def test_discriminator_with_generator_predicts_words(own_run):
    """States are the discriminator's; masked words and the states for the lens are the generator's."""
    checkpoint, discriminator, generator = with_generator(own_run)
    model = load(checkpoint)
    assert model.capabilities == {"masked_words", "words", "replaced_tokens", "states", "attentions", "trainable"}
    ids = ids_of_texts(model.tokenizer)
    rows, columns = np.indices(ids.shape).reshape(2, -1)
    with torch.no_grad():
        of_discriminator, of_generator = (
            part(torch.tensor(ids), output_hidden_states=True) for part in (discriminator, generator)
        )
    for loaded, expected in ((model, of_discriminator), (model.masked_word_model, of_generator)):
        close(loaded, ids, loaded.hidden_states(ids), torch.stack(expected.hidden_states).numpy())
    logits = of_generator.logits.numpy()[rows, columns]
    close(model.masked_word_model, ids, model.mlm_logits(ids, rows, columns), logits)
    close(model.masked_word_model, ids, model.layer_logits(ids[0], 1)[-1:], logits[1:2])
    alone = load(runs.generator(checkpoint))
    assert alone.masked_word_model is alone and model.nbytes > alone.nbytes


def test_lens_of_electra_reads_its_generator(own_run):
    """The answers of the last layer are those of the model."""
    with_generator(own_run)
    layer_answers = query.ask_layers(own_run, TEXTS[1], steps=[16])
    expected = query.ask(own_run, TEXTS[1], [16])
    last = layer_answers.table["layer"].max()
    assert [p.token for p in layer_answers.best(16, layer=last)] == [p.token for p in expected.best(16)]


def test_broken_generator_is_named(own_run):
    """The generator's weights are truncated, or its manifest is missing."""
    checkpoint, _, _ = with_generator(own_run)
    path = checkpoint.path / "generator" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BrokenCheckpoint, match=r"generator/model.safetensors .*truncated or changed"):
        load(checkpoint)
    (checkpoint.path / "generator" / "manifest.json").unlink()
    with pytest.raises(BrokenCheckpoint, match=r"generator/manifest.json does not exist"):
        load(checkpoint)


@pytest.mark.parametrize("kind", [AlbertForPreTraining, BertForMaskedLM, ElectraForMaskedLM])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_beyond_the_tokenizer_are_left_out(own_run, kind, tied):
    """For a vocabulary padded to 768 rows, the logits are those of the tokenizer's 700 pieces in their order."""
    stored = small(kind, vocab_size=768, tie_word_embeddings=tied)
    with torch.no_grad():
        stored.get_output_embeddings().bias[700:] = 50  # otherwise they would be the answer everywhere
    checkpoint = store(own_run, stored)
    model = load(checkpoint)
    ids = model.tokenizer.encode_text(TEXTS[1])[None]
    with torch.no_grad():
        output = stored.eval()(torch.tensor(ids))
    expected = (output["prediction_logits"] if "prediction_logits" in output else output["logits"])[0, 2, :700].numpy()
    ours = model.mlm_logits(ids, [0], [2])
    assert ours.shape == (1, 700) and model.vocabulary_size == 700
    close(model, ids, ours[0], expected)


def test_vocabulary_smaller_than_the_tokenizer_is_refused(own_run):
    """A piece without a row in the embeddings cannot be read."""
    checkpoint = store(own_run, small(BertForMaskedLM, vocab_size=699))
    with pytest.raises(TokenizerMismatch, match=r"has 700 pieces, but .*step16 has 699; "):
        load(checkpoint)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (AlbertForMaskedLM, {"hidden_act": "gelu_new", "embedding_size": 16, "num_hidden_groups": 2}),
        (AlbertForMaskedLM, {"hidden_act": "relu", "embedding_size": 16, "layer_norm_eps": 1e-5}),
        (BertForMaskedLM, {"hidden_act": "gelu_pytorch_tanh"}),
        (BertForMaskedLM, {"hidden_act": "gelu", "tie_word_embeddings": False}),
        (AlbertForMaskedLM, {"hidden_act": "gelu", "tie_word_embeddings": False}),
        (BertForMaskedLM, {"hidden_act": "silu"}),
    ],
)
@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
def test_masked_language_model_variants_agree_with_transformers(own_run, kind, settings, stored):
    """Variants differ in shared layers, activation, tied embeddings and stored type; logits are those at one mask."""
    torch.manual_seed(2)
    sizes = {"hidden_size": 132, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 150}
    config = kind.config_class(vocab_size=700, max_position_embeddings=40, initializer_range=0.1, **sizes, **settings)
    new_model = kind(config)
    for parameter in new_model.parameters():
        if parameter.ndim == 1:  # an untied decoder's bias differs from that of the head around it
            torch.nn.init.normal_(parameter)
    checkpoint = store(own_run, new_model.to(stored))
    model = load(checkpoint)
    ids = model.tokenizer.encode_text(TEXTS[1])
    (at,) = np.flatnonzero(ids == model.tokenizer.mask_id)
    with torch.no_grad():
        reference = kind.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
        expected = reference(torch.tensor(ids[None])).logits[0, at]
    close(model, ids[None], model.mlm_logits(ids[None], [0], [at])[0], expected.numpy())


@pytest.mark.parametrize(
    ("kind", "decoder"),
    [
        (AlbertForMaskedLM, "predictions.decoder"),
        (BertForMaskedLM, "cls.predictions.decoder"),
        (ElectraForMaskedLM, "generator_lm_head"),
    ],
)
def test_stored_decoder_takes_precedence_over_tied_embeddings(own_run, kind, decoder):
    """Transformers does the same if the file of a tied model has another decoder matrix or another bias."""
    new_model = small(kind)
    checkpoint = store(own_run, new_model)
    path = checkpoint.path / "model.safetensors"
    tensors = load_file(path)
    tensors[f"{decoder}.weight"] = torch.randn_like(new_model.get_input_embeddings().weight)
    tensors[f"{decoder}.bias"] = torch.randn(700)
    save_file(tensors, path, {"format": "pt"})
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    model, reference = load(checkpoint), kind.from_pretrained(checkpoint.path).eval()
    ids = model.tokenizer.encode_text(TEXTS[1])[None]
    with torch.no_grad():
        expected = reference(torch.tensor(ids)).logits[0, 2].numpy()
    close(model, ids, model.mlm_logits(ids, [0], [2])[0], expected)


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "module._orig_mod."])
def test_prefixes_of_torch_wrappers_are_removed(own_run, wrapper):
    """A model saved inside DataParallel, or compiled, has a prefix before the name of each tensor."""
    checkpoint = store(own_run, small(BertForMaskedLM))
    expected = load(checkpoint).embeddings()[0]
    file = checkpoint.path / "model.safetensors"
    save_file({wrapper + name: tensor for name, tensor in load_file(file).items()}, file)
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    assert np.array_equal(load(checkpoint).embeddings()[0], expected)


def test_models_of_one_run_may_need_different_engines(own_run):
    """In a pass over three steps, the second has an activation that only transformers computes."""
    models = []
    for activation in ("gelu", "silu", "gelu"):
        models.append(load(store(own_run, small(BertForMaskedLM, hidden_act=activation))))
    ids = np.array([[[2, 9, 4, 3]], [[2, 8, 4, 3]], [[2, 7, 4, 3]]])
    whole = word_logits(models, ids, [0], [2])
    for model, own, logits in zip(models, ids, whole, strict=True):
        assert np.array_equal(model.mlm_logits(own, [0], [2]), logits)


def test_loading_is_silent_and_in_float32(tiny_run, capfd, caplog):
    """The second head and the pooler are ignored without a warning."""
    model = load(runs.checkpoint(tiny_run, 8))
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    assert model.layer_logits(np.array([1, 5, 2]), 1).dtype == np.float32


def test_models_in_one_call_equal_single_calls(tiny_run):
    """Each model has its own ids; the positions are shared."""
    models = [load(checkpoint) for checkpoint in runs.checkpoints(tiny_run)]
    ids = ids_of_texts(models[0].tokenizer)
    rows, columns = np.indices(ids.shape).reshape(2, -1)
    own = np.stack([(ids + 3 * i) % 700 for i in range(3)])
    actual = word_logits(models, own, rows, columns)
    for model, its, logits in zip(models, own, actual, strict=True):
        np.testing.assert_array_equal(logits, model.mlm_logits(its, rows, columns))
    assert not np.allclose(actual[0], actual[1])


def test_loading_another_model_does_not_change_the_first(tiny_run):
    """Both models are checkpoints of the same run."""
    first = load(runs.checkpoint(tiny_run, 0))
    ids = np.array([[2, 9, 3]])
    before = first.mlm_logits(ids, [0], [1])
    second = load(runs.checkpoint(tiny_run, 16))
    assert np.array_equal(first.mlm_logits(ids, [0], [1]), before)
    assert not np.allclose(second.mlm_logits(ids, [0], [1]), before)


# === Broken checkpoints ===


def truncate(path: Path) -> None:
    """Cut off the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_missing_or_truncated_file_breaks_checkpoint(own_run, damage, name):
    """The error names the file and what to do."""
    checkpoint = runs.checkpoint(own_run, 8)
    damage(checkpoint.path / name)
    with pytest.raises(BrokenCheckpoint, match=rf"{name} .*copy this step again"):
        load(checkpoint)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_act": "swoosh"}, r"transformers cannot read it .*swoosh"),  # nor can the fast engine
        ({"is_decoder": True}, r"config.json has is_decoder"),  # a decoder does not see what follows a mask
        ({"hidden_size": 16}, "cannot be read"),  # the stored weights have other shapes
    ],
)
def test_config_that_contradicts_model_is_refused(own_run, changed, message):
    """The numbers would be those of another model."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = json.loads((checkpoint.path / "config.json").read_text())
    (checkpoint.path / "config.json").write_text(json.dumps({**config, **changed}))
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match=message):
        load(checkpoint)


def test_bare_encoder_gives_its_states(own_run):
    """AutoModel saves an encoder under other names; it is read through transformers, without a masked-word head."""
    checkpoint = runs.checkpoint(own_run, 8)
    ids = np.array([[2, 7, 8, 9, 3]])
    whole = load(checkpoint).hidden_states(ids)
    transformers.AutoModel.from_pretrained(checkpoint.path, dtype="auto").save_pretrained(checkpoint.path)
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    model = load(runs.checkpoint(own_run, 8))
    assert "masked_words" not in model.capabilities
    np.testing.assert_allclose(model.hidden_states(ids), whole, atol=1e-5)


def test_missing_weight_is_refused(own_run):
    """No weight is ever left at random, even if the manifest agrees with the file."""
    from safetensors.torch import load_file, save_file

    checkpoint = runs.checkpoint(own_run, 8)
    path = checkpoint.path / "model.safetensors"
    weights = load_file(path)
    del weights["predictions.dense.weight"]
    save_file(weights, path)
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match=r"lacks .*predictions.dense.weight"):
        load(checkpoint)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_weights_with_nan_or_infinity_are_refused(own_run, value, dtype):
    """One NaN makes every answer NaN, so loading fails and names the tensor."""
    from safetensors.torch import load_file, save_file

    checkpoint = runs.checkpoint(own_run, 8)
    path = checkpoint.path / "model.safetensors"
    weights = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    weights["albert.embeddings.word_embeddings.weight"][5, 3] = value
    save_file(weights, path)
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match=r"word_embeddings\.weight that is not finite"):
        load(checkpoint)


def change_weights(run: Run, change: Callable[[torch.Tensor], torch.Tensor]) -> Checkpoint:
    """Change every weight of step 8."""
    checkpoint = runs.checkpoint(run, 8)
    path = checkpoint.path / "model.safetensors"
    save_file({name: change(tensor) for name, tensor in load_file(path).items()}, path)
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    return runs.checkpoint(run, 8)


def test_overflow_of_finite_weights_fails_each_metric_once(own_run):
    """Finite weights may give outputs that are not finite: nothing is stored, and each metric reports one failure."""
    model = load(change_weights(own_run, lambda tensor: tensor * 1e20))
    ids = np.array([[2, 7, 8, 9, 3]])
    for ask in (model.hidden_states, model.attentions, lambda *of: model.mlm_logits(*of, [0], [2])):
        with pytest.raises(BrokenCheckpoint, match=r"step8: its .* are NaN or infinite"):
            ask(ids)
    names = ["token_reconstruction", "mask_prediction", "world_knowledge", "attention", "head_behaviour", "positions"]
    report = evaluate(own_run, SAMPLE_DATA, names, [8], limit=3)
    assert len(report.failures) == len(names) and all("NaN or infinite" in reason for reason in report.failures)
    assert not any(results.steps_by_metric(own_run).values())


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_integer_weights_are_refused(own_run, kind):
    """The bytes of floats read as integers would be huge numbers, all of them finite."""
    with pytest.raises(BrokenCheckpoint, match=rf"(weight|bias) is stored as {str(kind)[6:]}"):
        load(change_weights(own_run, lambda tensor: tensor.to(kind)))


def test_memory_error_while_loading_is_reported(tiny_run, monkeypatch: pytest.MonkeyPatch):
    """An exception without a message is named by its class."""

    def full(*_, **__) -> None:
        raise MemoryError

    monkeypatch.setattr(tensor_files.mmap, "mmap", full)
    with pytest.raises(BrokenCheckpoint, match=r"cannot be read \(MemoryError\)"):
        load(runs.checkpoint(tiny_run, 8))
