"""A loaded checkpoint computes what plain transformers compute, and says what is wrong with one that it cannot load."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
)

from embryo_core import runs
from embryo_core.engine.model import Model, load, mlm_logits
from embryo_core.engine.tokenizer import load_tokenizer
from embryo_core.errors import BrokenCheckpoint, BrokenRun, TokenizerMismatch
from embryo_core.types import Checkpoint, Run

TEXTS = ["The river runs through the old town.", "She was born in [MASK]."]


@pytest.fixture
def bert_run(own_run: Run) -> Run:
    """The tiny run with a BERT at step 16, its weights in float16."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=700,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=40,
    )
    folder = own_run.path / "checkpoints" / "step16"
    shutil.rmtree(folder)
    BertForPreTraining(config).half().save_pretrained(folder)
    runs.write_manifest(folder, 16, sequences=64, tokens=4096)
    return own_run


def reference(checkpoint: Checkpoint) -> torch.nn.Module:
    """The pretraining model, read by transformers as it stands, in float32 with plain attention."""
    kind = json.loads((checkpoint.path / "config.json").read_text())["model_type"]
    model = {"albert": AlbertForPreTraining, "bert": BertForPreTraining}[kind]
    return model.from_pretrained(checkpoint.path, dtype=torch.float32, attn_implementation="eager").eval()


def padded(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Ids and attention mask of TEXTS in one batch: the second is shorter and padded."""
    rows = [model.tokenizer.encode_text(text) for text in TEXTS]
    ids = np.full((2, max(map(len, rows))), model.tokenizer.pad_id)
    for row, own in zip(ids, rows, strict=True):
        row[: len(own)] = own
    return ids, (ids != model.tokenizer.pad_id).astype(np.int64)


@pytest.mark.parametrize("family", ["albert", "bert"])
@pytest.mark.parametrize("with_padding", [False, True])
def test_all_outputs_equal_those_of_transformers(tiny_run, request, family, with_padding):
    """Logits at every position, hidden states and attentions are those of the pretraining model, padded or not."""
    run = tiny_run if family == "albert" else request.getfixturevalue("bert_run")
    model = load(runs.checkpoint(run, 16))
    ids, mask = padded(model)
    if not with_padding:
        ids, mask = ids[:1], mask[:1]
    with torch.no_grad():
        expected = reference(model.checkpoint)(
            torch.tensor(ids), torch.tensor(mask), output_hidden_states=True, output_attentions=True
        )
    rows, columns = np.nonzero(mask)
    logits = expected.prediction_logits.numpy()[rows, columns]
    np.testing.assert_allclose(model.mlm_logits(ids, mask, rows, columns), logits, atol=1e-5)
    np.testing.assert_allclose(model.mlm_logits(ids, mask, rows[-2:], columns[-2:]), logits[-2:], atol=1e-5)
    states = model.hidden_states(ids, mask)
    assert states.shape == (model.num_layers + 1, *ids.shape, states.shape[-1])
    for ours, theirs in zip(states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(ours[rows, columns], theirs.numpy()[rows, columns], atol=1e-5)
    np.testing.assert_allclose(model.mlm_head(states[-1][rows, columns]), logits, atol=1e-5)
    attentions = model.attentions(ids, mask)
    assert attentions.shape == (model.num_layers, len(ids), model.num_heads, ids.shape[1], ids.shape[1])
    np.testing.assert_allclose(attentions, torch.stack(expected.attentions).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (AlbertForMaskedLM, {"hidden_act": "gelu_new", "embedding_size": 16, "num_hidden_groups": 2}),
        (AlbertForMaskedLM, {"hidden_act": "relu", "embedding_size": 16, "layer_norm_eps": 1e-5}),
        (BertForMaskedLM, {"hidden_act": "gelu_pytorch_tanh"}),
        (BertForMaskedLM, {"hidden_act": "gelu", "tie_word_embeddings": False}),
    ],
)
@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
def test_masked_language_models_of_every_make(own_run, kind, settings, stored):
    """Logits at one mask are transformers' own: shared and unshared layers, activations, tied or not, as stored."""
    torch.manual_seed(2)
    sizes = {"hidden_size": 132, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 150}
    config = kind.config_class(vocab_size=700, max_position_embeddings=40, initializer_range=0.1, **sizes, **settings)
    folder = own_run.path / "checkpoints" / "step16"
    shutil.rmtree(folder)
    kind(config).to(stored).save_pretrained(folder)
    runs.write_manifest(folder, 16, sequences=64, tokens=4096)
    model = load(runs.checkpoint(own_run, 16))
    ids = model.tokenizer.encode_text(TEXTS[1])
    (at,) = np.flatnonzero(ids == model.tokenizer.mask_id)
    with torch.no_grad():
        reference = kind.from_pretrained(folder, dtype=torch.float32).eval()
        expected = reference(torch.tensor(ids[None])).logits[0, at]
    found = torch.from_numpy(model.mlm_logits(ids[None], np.ones((1, len(ids))), [0], [at])[0])
    np.testing.assert_allclose(found, expected, atol=5e-5)
    np.testing.assert_allclose(found.softmax(0), expected.softmax(0), atol=1e-5)


def test_an_activation_that_is_not_known_is_told(own_run):
    """config.json's hidden_act is one of those that the pass computes."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = json.loads((checkpoint.path / "config.json").read_text())
    (checkpoint.path / "config.json").write_text(json.dumps({**config, "hidden_act": "mish"}))
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match="hidden_act 'mish'; known: gelu, gelu_new, gelu_pytorch_tanh, relu"):
        load(checkpoint)


def test_loading_is_silent_and_in_float32(tiny_run, capfd, caplog):
    """The second head and the pooler are left unread without a warning."""
    model = load(runs.checkpoint(tiny_run, 8))
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    assert model.mlm_head(np.zeros((1, 32), np.float32)).dtype == np.float32


def test_several_models_in_one_call(tiny_run):
    """Each answers for its own ids, as it would alone; padding and positions are shared."""
    models = [load(checkpoint) for checkpoint in runs.checkpoints(tiny_run)]
    ids, mask = padded(models[0])
    rows, columns = np.nonzero(mask)
    own = np.stack([np.where(mask, (ids + 3 * i) % 700, ids) for i in range(3)])
    found = mlm_logits(models, own, mask, rows, columns)
    for model, its, logits in zip(models, own, found, strict=True):
        np.testing.assert_array_equal(logits, model.mlm_logits(its, mask, rows, columns))
    assert not np.allclose(found[0], found[1])


def test_models_of_a_run_are_apart(tiny_run):
    """Loading a second checkpoint leaves the first as it was."""
    first = load(runs.checkpoint(tiny_run, 0))
    ids = np.array([[2, 9, 3]])
    before = first.mlm_logits(ids, np.ones_like(ids), [0], [1])
    second = load(runs.checkpoint(tiny_run, 16))
    assert np.array_equal(first.mlm_logits(ids, np.ones_like(ids), [0], [1]), before)
    assert not np.allclose(second.mlm_logits(ids, np.ones_like(ids), [0], [1]), before)


# === Broken checkpoints ===


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_missing_or_truncated_file_is_a_broken_checkpoint(own_run, damage, name):
    """The error names the file and what to do."""
    checkpoint = runs.checkpoint(own_run, 8)
    damage(checkpoint.path / name)
    with pytest.raises(BrokenCheckpoint, match=rf"{name} .*train this step again"):
        load(checkpoint)


def test_a_checkpoint_that_lacks_a_weight_is_broken(own_run):
    """Even where its manifest agrees: no weight is ever left at random."""
    from safetensors.torch import load_file, save_file

    checkpoint = runs.checkpoint(own_run, 8)
    path = checkpoint.path / "model.safetensors"
    weights = load_file(path)
    del weights["predictions.dense.weight"]
    save_file(weights, path)
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match="lacks .*predictions.dense.weight"):
        load(checkpoint)


def test_a_checkpoint_of_other_sizes_than_its_config_is_broken(own_run):
    """The shapes of the stored weights have to be those of config.json."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = json.loads((checkpoint.path / "config.json").read_text())
    (checkpoint.path / "config.json").write_text(json.dumps({**config, "hidden_size": 16}))
    runs.write_manifest(checkpoint.path, 8, sequences=32, tokens=2048)
    with pytest.raises(BrokenCheckpoint, match="cannot be read"):
        load(checkpoint)


# === Tokenizer ===


def test_another_tokenizer_is_refused(own_run):
    """A tokenizer.json that is not the one of pretraining is told by its hash."""
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(TokenizerMismatch, match="not the tokenizer that run 'tiny' was pretrained with"):
        load(runs.checkpoint(own_run, 8))


def test_a_missing_tokenizer_is_told(own_run):
    """The error names the file that has to come back."""
    (own_run.tokenizer / "tokenizer.json").unlink()
    with pytest.raises(BrokenRun, match=r"tokenizer.json does not exist"):
        load_tokenizer(own_run)


def test_the_tokenizer_is_that_of_auto_tokenizer(tiny_run):
    """Running text with [MASK] gives the ids that transformers' AutoTokenizer gives."""
    ours, theirs = load_tokenizer(tiny_run), AutoTokenizer.from_pretrained(tiny_run.tokenizer)
    for text in TEXTS:
        assert ours.encode_text(text).tolist() == theirs(text)["input_ids"]
    assert ours.pieces([ours.mask_id, ours.cls_id, ours.sep_id]) == ["[MASK]", "[CLS]", "[SEP]"]


def test_words_are_tokenized_on_their_own(tiny_run):
    """The pieces of a sentence are those of its words in turn, each with the number of its word."""
    tokenizer = load_tokenizer(tiny_run)
    words = ["Unforgettable", "rivers", "do", "n't", "run"]
    encoding = tokenizer.encode_words(words)
    for i, word in enumerate(words):
        own = tokenizer.encode_text(word)[1:-1]
        assert encoding.ids[encoding.word_of_piece == i].tolist() == own.tolist()
    assert encoding.word_of_piece.tolist() == sorted(encoding.word_of_piece)


def test_a_single_piece_is_a_known_word(tiny_run):
    """A word of several pieces, and one that is unknown, have no single piece."""
    tokenizer = load_tokenizer(tiny_run)
    assert tokenizer.pieces([tokenizer.single_piece("the")]) == ["▁the"]
    assert tokenizer.single_piece("unforgettable") is None
    assert tokenizer.single_piece("☃") is None
