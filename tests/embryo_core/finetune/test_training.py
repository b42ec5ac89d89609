"""Tests that training learns what can be learned, scores at chance on shuffled labels, and depends only on its seed."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from embryo_core import runs
from embryo_core.engine.transformers_models import max_sequence_length
from embryo_core.errors import BrokenCheckpoint, MissingCapability
from embryo_core.finetune import training
from embryo_core.finetune.encoded_tasks import EncodedTextTask, encode_task
from embryo_core.finetune.squad import read_squad
from embryo_core.finetune.task_specs import TuningSettings
from embryo_core.finetune.tasks import read_task
from embryo_core.finetune.training import tune
from embryo_core.sources import add
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run
from tests import decoders
from tests.conftest import checkpoint_at
from tests.embryo_core.engine.test_transformers_engine import write
from tests.embryo_core.finetune.conftest import write_cola, write_pairs, write_squad

LEARNING = TuningSettings(learning_rate=2e-3, batch=16, updates=60, warmup=6, length=64, classifier_dropout=0.0)
SHORT = replace(LEARNING, updates=3, warmup=0)


@pytest.fixture(scope="module")
def encoded(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> EncodedTextTask:
    """Return a small encoded CoLA."""
    task = read_task("cola", write_cola(tmp_path_factory.mktemp("cola")))
    return encode_task(task, load_tokenizer(tiny_run), 64)


@pytest.fixture
def checkpoint(tiny_run: Run) -> Checkpoint:
    """Return the checkpoint at step 16."""
    return checkpoint_at(tiny_run, 16)


@pytest.fixture
def folder(checkpoint: Checkpoint) -> Path:
    """Return the folder of the checkpoint at step 16."""
    return checkpoint.path


@pytest.mark.parametrize("bfloat16", [False, True])
def test_task_is_learned(bfloat16, encoded, checkpoint, monkeypatch):
    """The label is a word of the sentence; the score is far above the majority's with and without bfloat16."""
    monkeypatch.setattr(training, "multiplies_bfloat16", lambda: bfloat16)
    tuned = tune(checkpoint, encoded, LEARNING, seed=1)
    assert encoded.score(tuned.outputs) > 0.8
    assert tuned.curve[-1].train_loss < tuned.curve[0].train_loss
    assert tuned.curve[-1].dev_score == encoded.score(tuned.outputs)


def test_shuffled_labels_score_at_chance(encoded, checkpoint):
    """Matthews' correlation is within three standard deviations of 0, those of 64 independent coin tosses."""
    shuffled = np.random.default_rng(0).permutation(encoded.train_gold)
    tuned = tune(checkpoint, replace(encoded, train_gold=shuffled), LEARNING, seed=1)
    assert abs(encoded.score(tuned.outputs)) < 3 / np.sqrt(len(encoded.gold))


def test_curve_has_a_point_per_epoch(encoded, checkpoint):
    """An epoch of 96 sequences in batches of 16 has six updates; the last update has a point too."""
    tuned = tune(checkpoint, encoded, replace(SHORT, updates=14), seed=1)
    assert [point.update for point in tuned.curve] == [6, 12, 14]


def test_outputs_depend_only_on_the_seed(encoded, checkpoint):
    """The same seed gives the same outputs bit for bit, and another seed gives others."""
    first, again, other = (tune(checkpoint, encoded, SHORT, seed).outputs for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_whole_encoder_is_trained(encoded, checkpoint, folder):
    """Every matrix has changed, whereas the checkpoint on disk has not."""
    before = (folder / "model.safetensors").read_bytes()
    tuned = tune(checkpoint, encoded, SHORT, seed=1)
    stored_tensors = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).state_dict()
    same = [
        name for name, value in stored_tensors.items() if value.ndim > 1 and torch.equal(value, tuned.encoder[name])
    ]
    assert not same
    assert (folder / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("bfloat16", [False, True])
def test_outputs_match_transformers_on_single_sentences(bfloat16, encoded, checkpoint, folder, monkeypatch):
    """At a learning rate of 0, padding, sorting, fused activations and the precision of training change nothing."""
    monkeypatch.setattr(training, "multiplies_bfloat16", lambda: bfloat16)
    tuned = tune(checkpoint, encoded, replace(SHORT, updates=1, learning_rate=0.0), seed=5)
    torch.manual_seed(5)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    for i in range(8):
        ids, segments, mask = encoded.validation.batch(np.array([i]))
        with torch.inference_mode():
            expected = model(torch.tensor(ids), torch.tensor(mask), torch.tensor(segments)).logits[0].numpy()
        rounding = 1000 * np.finfo(np.float32).eps * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(tuned.outputs[i], expected, rtol=0, atol=rounding)


def test_training_uses_bfloat16_if_the_processor_has_it(encoded, checkpoint, monkeypatch):
    """The first loss is that of float32 within the precision of bfloat16, but not within the rounding of float32."""
    losses = []
    for bfloat16 in (False, True):
        monkeypatch.setattr(training, "multiplies_bfloat16", lambda bfloat16=bfloat16: bfloat16)
        losses.append(tune(checkpoint, encoded, replace(SHORT, updates=1), seed=1).curve[0].train_loss)
    assert losses[1] != pytest.approx(losses[0], rel=100 * torch.finfo(torch.float32).eps)
    assert losses[1] == pytest.approx(losses[0], rel=4 * torch.finfo(torch.bfloat16).eps)


FAMILIES = "albert bert deberta-v2 distilbert electra esm fnet modernbert mpnet roberta".split()


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_follows_the_protocol_in_every_family(own_run, encoded, family):
    """Every dropout module has its set probability; outputs in training equal those in evaluation only if all are 0."""
    checkpoint = write(own_run, family, {"num_labels": 2})
    for encoder, head in ((0.0, 0.0), (0.0, 0.5), (0.5, 0.0)):
        settings = replace(SHORT, dropout=encoder, classifier_dropout=head)
        model = training._load_model(checkpoint, encoded, settings, torch.device("cpu"), None)
        outputs = []
        for training_mode in (True, False):
            model.train(training_mode)
            with torch.inference_mode():
                outputs.append(training._forward(model, encoded.train, np.arange(4), "classes"))
        assert torch.equal(*outputs) == (encoder == head == 0.0)
        inside = {*model.base_model.modules()}
        probabilities = [(part in inside, part.p) for part in model.modules() if isinstance(part, torch.nn.Dropout)]
        assert set(probabilities) == {(True, encoder), (False, head)}


def test_family_without_a_suitable_head_is_refused(own_run, tmp_path):
    """ESM has no head for questions."""
    task = encode_task(read_squad(write_squad(tmp_path)), load_tokenizer(own_run), 32)
    with pytest.raises(MissingCapability, match="family 'esm' has no question-answering head in transformers"):
        tune(write(own_run, "esm"), task, SHORT, seed=1)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_sequences_of_maximal_length_are_trained_on(own_run, tmp_path, family):
    """RoBERTa's table of positions has a row for padding, which is no usable position."""
    checkpoint = write(own_run, family)
    task = read_task("stsb", write_pairs(tmp_path, labels=5, value=True))
    longer = [(" ".join([first] * 40), second) for first, second in task.train.texts]
    task = replace(task, train=replace(task.train, texts=longer))
    encoded = encode_task(task, load_tokenizer(own_run), max_sequence_length(checkpoint))
    assert encoded.train.lengths.max() == max_sequence_length(checkpoint) == (40 if family == "bert" else 39)
    assert np.isfinite(tune(checkpoint, encoded, SHORT, seed=1).outputs).all()


def test_regression_learns_values_on_their_scale(tiny_run, checkpoint, tmp_path):
    """With values around 1,000 the answers are around 1,000."""
    task = read_task("stsb", write_pairs(tmp_path, labels=5, value=True))
    far = replace(task, train=replace(task.train, gold=1000 + task.train.gold))
    encoded = encode_task(far, load_tokenizer(tiny_run), 64)
    findings = encoded.findings(tune(checkpoint, encoded, SHORT, seed=1).outputs, seed=1)
    assert all(990 < answer.answer < 1014 for answer in findings.answers)


def test_training_starts_from_given_weights(encoded, checkpoint):
    """The weights are those of another tuning, without its head."""
    first = tune(checkpoint, encoded, SHORT, seed=1)
    resting = replace(SHORT, learning_rate=0.0)
    encoder = tune(checkpoint, encoded, resting, seed=2, start=first.encoder).encoder
    assert all(torch.equal(value, first.encoder[name]) for name, value in encoder.items())


def test_checkpoint_with_missing_weights_is_refused(encoded, own_run):
    """No part of an encoder may be initialised at random."""
    checkpoint = checkpoint_at(own_run, 16)
    tensors = load_file(checkpoint.path / "model.safetensors")
    del tensors["albert.encoder.embedding_hidden_mapping_in.weight"]
    save_file(tensors, checkpoint.path / "model.safetensors", metadata={"format": "pt"})
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, 16, None, None)
    with pytest.raises(BrokenCheckpoint, match="lacks weights of its encoder"):
        tune(checkpoint_at(own_run, 16), encoded, SHORT, seed=1)


def test_checkpoint_with_nan_is_refused(encoded, own_run):
    """The error names the weights rather than the learning rate."""
    checkpoint = checkpoint_at(own_run, 16)
    tensors = load_file(checkpoint.path / "model.safetensors")
    tensors["albert.encoder.embedding_hidden_mapping_in.weight"][0, 0] = torch.nan
    save_file(tensors, checkpoint.path / "model.safetensors", metadata={"format": "pt"})
    (checkpoint.path / "manifest.json").unlink()
    runs.write_manifest(checkpoint.path, 16, None, None)
    with pytest.raises(BrokenCheckpoint, match=r"number in albert\.encoder\.embedding_hidden.* not finite"):
        tune(checkpoint_at(own_run, 16), encoded, SHORT, seed=1)


def test_weights_in_another_folder_give_the_same_outputs(encoded, checkpoint, tmp_path, monkeypatch):
    """The weights of an added run are read from torch's own format in their original folder."""
    source = tmp_path / "source" / "step16"
    shutil.copytree(checkpoint.path, source)
    torch.save(load_file(source / "model.safetensors"), source / "pytorch_model.bin")
    (source / "model.safetensors").unlink()
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    run = add([str(source.parent)], "added", tokenizer=str(checkpoint.run.tokenizer)).run
    tuning = tune(runs.checkpoint(run, 16), encoded, SHORT, seed=1)
    np.testing.assert_array_equal(tuning.outputs, tune(checkpoint, encoded, SHORT, seed=1).outputs)


def test_loss_that_is_not_finite_ends_training(encoded, checkpoint):
    """The error gives the update by which it was detected."""
    with pytest.raises(ArithmeticError, match="not finite up to update 6"):
        tune(checkpoint, encoded, replace(LEARNING, learning_rate=1e30, warmup=0), seed=1)


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox"])
def test_decoder_classifies_by_its_last_token(family, tmp_path):
    """The decoder learns even without a padding token, and the outputs equal those of each sequence by itself."""
    run = decoders.add_series(tmp_path, family, (0,), positions=64)
    task = read_task("cola", write_cola(tmp_path / "cola"))
    encoded = encode_task(task, load_tokenizer(run), 64)
    assert encoded.train.pad_id is None
    checkpoint = runs.checkpoints(run)[0]
    tuned = tune(checkpoint, encoded, LEARNING, seed=1)
    assert encoded.score(tuned.outputs) > 0.8
    loaded = training._load_model(checkpoint, encoded, LEARNING, torch.device("cpu"), tuned.encoder).eval()
    together = training.predict(loaded, encoded)
    for i in range(4):
        ids, _, _ = encoded.validation.batch(np.array([i]))
        with torch.inference_mode():
            states = loaded.base_model(input_ids=torch.from_numpy(ids)).last_hidden_state[0, -1]
            score = loaded.score(states).numpy()
        np.testing.assert_allclose(together[i], score, rtol=1e-4, atol=1e-5)
