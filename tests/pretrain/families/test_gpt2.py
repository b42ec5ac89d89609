"""Tests of GPT-2: presets, windows of text, runs, and exported models that give the same logits in transformers."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from embryo_core import runs
from embryo_core.engine import model as engine_model
from embryo_core.engine.capabilities import checkpoint_capabilities
from embryo_core.errors import ConfigError
from embryo_core.evaluation import evaluate
from embryo_core.types import Run
from pretrain.__main__ import main
from pretrain.batches import Data, prepare_data
from pretrain.config import Config
from pretrain.examples import windows
from pretrain.export import write_checkpoint
from pretrain.families import FAMILIES, preset
from pretrain.masking import Batch
from pretrain.model import PretrainingModel
from pretrain.remeasure import measure_run
from pretrain.state import Progress
from pretrain.tokenizer import is_word_start, load
from pretrain.train import build
from pretrain.vocabularies import CLS, PAD, SEP
from tests.pretrain.conftest import log, weights
from tests.pretrain.families.counting import parameters

TOLERANCE = 1e-4  # of logits and states, the same for every family
KINDS = ["bpe", "wordpiece", "unigram"]

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def config() -> Config:
    """Return the tiny preset with sequences of two lengths and twelve updates."""
    return replace(preset("gpt2-tiny"), steps=12, warmup_steps=2, save_every=6, state_every=3, log_every=2,
                   short_steps=7, short_sequence_length=16, short_batch_size=8, long_every=3)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def data(request: pytest.FixtureRequest, config: Config, texts: tuple[Path, Path], cache: Path) -> Data:
    """Return the sample text as batches, with each kind of vocabulary."""
    return prepare_data(replace(config, tokenizer=request.param), [str(texts[0])], [str(texts[1])], cache)


@pytest.fixture(scope="module")
def model(config: Config) -> PretrainingModel:
    """Return a model whose weights are all random, so that none can be mistaken for another."""
    model, rng = build(config), np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(variable + rng.normal(0, 0.2, variable.shape).astype(np.float32))
    return model


@pytest.fixture(scope="module")
def arguments(texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the command line of six updates with dropout; the run's folder is to be appended."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    grids = "save_every=3 state_every=2 log_every=2 heldout_sequences=8"
    settings = f"tokenizer=wordpiece warmup_steps=1 learning_rate=1e-2 {grids}"
    return ["gpt2-tiny", *corpus, "--steps", "6", "--set", *settings.split(), "--run"]


@pytest.fixture(scope="module")
def run(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run this command; return the run."""
    folder = tmp_path_factory.mktemp("runs") / "gpt2"
    assert main([*arguments, str(folder)]) == 0
    return runs.read_run(folder)


# === Presets ===


def test_small_preset_is_smallest_gpt2():
    """The default configuration of transformers is the 124M model; only the ids of special tokens differ."""
    ours, theirs = FAMILIES["gpt2"].huggingface_config(preset("gpt2-small")), transformers.GPT2Config()
    own = {"architectures", "dtype", "bos_token_id", "eos_token_id", "pad_token_id"}
    differing = {name for name in ours if ours[name] != getattr(theirs, name)}
    assert differing - own == {"n_inner"} and ours["n_inner"] == 4 * theirs.n_embd  # what None means


def test_small_preset_has_original_size():
    """Names and shapes are those of transformers."""
    assert parameters(preset("gpt2-small")) == {"": 124_439_808}


def test_residual_outputs_are_scaled_by_their_number(config: Config):
    """The factor is 1 / sqrt(N) for N residual layers (Radford et al., Section 2.3); positions are drawn with 0.01."""
    model = build(replace(config, hidden_size=128, intermediate_size=256, num_hidden_layers=8))
    layer = model.encoder.transformer[3]
    stddevs = [float(ops.std(dense.kernel)) for dense in (layer.attention.query, layer.attention.output_dense,
                                                       layer.intermediate, layer.output_dense)]  # fmt: skip
    truncated = 0.88  # of a normal distribution cut at two standard deviations
    assert stddevs == pytest.approx([0.02 * truncated, 0.005 * truncated] * 2, rel=0.05)
    assert float(ops.std(model.encoder.embeddings.position.embeddings)) == pytest.approx(0.01 * truncated, rel=0.1)


# === Batches ===


def test_labels_are_the_next_tokens(config: Config, data: Data):
    """A sequence begins with [CLS]; its labels are its tokens shifted by one, and [SEP] at the end of a document."""
    for step in range(4):
        batch = data.training(step)
        assert batch.ids.shape == batch.labels.shape == config.batch_at(step)
        assert (batch.ids[:, 0] == CLS).all()
        used = batch.attention_mask == 1
        np.testing.assert_array_equal(batch.weights, batch.attention_mask)
        np.testing.assert_array_equal(batch.ids[:, 1:][used[:, 1:]], batch.labels[:, :-1][used[:, 1:]])
        assert (batch.ids[~used] == PAD).all() and not (batch.ids == SEP).any()
        for row, length in enumerate(used.sum(1)):
            assert used[row, :length].all() and (length == used.shape[1] or batch.labels[row, length - 1] == SEP)
    again = data.training(3)
    assert all(np.array_equal(a, b) for a, b in zip(vars(batch).values(), vars(again).values(), strict=True))


def test_windows_cover_text_and_prefer_sentence_starts(data: Data):
    """No window spans two documents; only a sentence longer than a window has windows that begin inside it."""
    text, begins_word = data.corpus.train, data.collator.begins_word
    for length in (16, 32):
        examples = windows(text, length, begins_word).examples
        bounds = text.sentences[text.documents]
        document = np.searchsorted(bounds, examples[:, 0], side="right")
        assert (examples[:, 1] <= bounds[document]).all() and (np.diff(examples) <= length).all()
        kept = np.concatenate([np.arange(a, b) for a, b in pairwise(bounds) if b - a >= 8])
        assert set(kept.tolist()) == {i for begin, end in examples for i in range(begin, end)}
        begins = np.isin(examples[:, 0], text.sentences)
        assert begins.mean() > 0.5 and begins_word.begins[text.tokens[examples[:, 0]]].mean() > 0.95
        inside = examples[~begins]
        sentence = np.searchsorted(text.sentences, inside[:, 0], side="right")
        assert (text.sentences[sentence] - text.sentences[sentence - 1] > length).all()
        short = np.diff(examples)[:, 0] < 0.75 * length
        assert (examples[short, 1] == bounds[document[short]]).all()


def test_byte_level_tokenizer_restores_text(texts: tuple[Path, Path], config: Config, cache: Path):
    """Capitals, other scripts and emoji are all known; words begin at spaces and punctuation marks."""
    tokenizer = load(prepare_data(config, [str(texts[0])], [], cache).corpus.tokenizer_folder)
    text = "Paris isn't 東京, naïve 🙂 reader."
    encoding = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(encoding.ids).strip() == text
    words = tokenizer.decoder.decode
    begins = [words([encoding.tokens[i]])[0] for i in np.flatnonzero(is_word_start(tokenizer)[encoding.ids])]
    assert "".join(begins) == "  ' ,   ."


# === Model ===


@pytest.fixture(scope="module")
def batch(config: Config, data: Data) -> Batch:
    """Return a batch of long sequences; row i has its last i + 1 tokens replaced by padding."""
    batch = data.training(config.short_steps)
    for row in range(len(batch.ids)):
        batch.ids[row, -row - 1 :] = batch.attention_mask[row, -row - 1 :] = 0
    return batch


def test_transformers_computes_the_same(model: PretrainingModel, config: Config, batch: Batch, tmp_path: Path):
    """States and logits agree to 1e-4 at every position; every weight is read, and tied weights are stored once."""
    folder = write_checkpoint(model, config, tmp_path, Progress(1, 8, 100))
    theirs, report = transformers.GPT2LMHeadModel.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not any(report.values()), report
    assert sum(p.numel() for p in theirs.parameters()) == sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    with torch.no_grad():
        expected = theirs.eval()(
            torch.tensor(batch.ids), attention_mask=torch.tensor(batch.attention_mask), output_hidden_states=True
        )
    states = model.encoder(batch.ids, batch.token_type_ids, batch.attention_mask)
    assert len(states) == len(expected.hidden_states) == config.num_hidden_layers + 1
    for ours, other in zip(states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(ours), other.numpy(), rtol=0, atol=TOLERANCE)
    logits = ops.convert_to_numpy(model(batch.inputs())["next_token"])
    np.testing.assert_allclose(logits, expected.logits.numpy(), rtol=0, atol=TOLERANCE)
    assert np.ptp(logits) > 0.1


def test_logits_do_not_depend_on_later_tokens(model: PretrainingModel, batch: Batch):
    """A changed token at position 9 changes the logits there and after it, but not before."""
    changed = batch.ids.copy()
    changed[:, 9] = (changed[:, 9] + 1) % 500
    first, second = (
        ops.convert_to_numpy(model(batch.inputs() | {"ids": ids})["next_token"]) for ids in (batch.ids, changed)
    )
    np.testing.assert_array_equal(first[:, :9], second[:, :9])
    assert (first[:, 9:16] != second[:, 9:16]).any(-1).all()


# === Runs ===


def test_run_has_objective_and_measures_of_its_family(run: Run):
    """The held-out loss starts at log 500 and falls, and the configuration has no masking settings."""
    assert (run.family, run.objective) == ("gpt2", "next token")
    assert "masked_share" not in run.config and run.config["tokenizer"] == "wordpiece"
    rows = runs.read_log(run)
    for row in rows:
        assert row["loss"] == row["next_token_loss"] and 0 <= row["next_token_accuracy"] <= 1
    heldout = [row for row in rows if row["split"] == "heldout"]
    assert [row["step"] for row in heldout] == [0, 1, 2, 3, 6]
    assert heldout[0]["loss"] == pytest.approx(np.log(500), abs=0.1) and heldout[-1]["loss"] < heldout[0]["loss"]
    assert all(row["n_predicted"] == row["measures"][0]["n"] > 100 for row in heldout)
    assert rows[-1]["tokens"] == runs.checkpoints(run)[-1].tokens > 1000


def test_stopped_run_resumes_bit_for_bit(run: Run, arguments: list[str], tmp_path: Path, monkeypatch):
    """Stopped after update 5 and resumed from the state of update 4, it has the same weights and log, with dropout."""
    folder = tmp_path / "gpt2"

    def stop(model: PretrainingModel, batch: Batch, loss_weights: dict[str, float]) -> dict[str, float]:
        if int(model.optimizer.iterations) == 5:
            raise KeyboardInterrupt
        return train(model, batch, loss_weights)

    train = PretrainingModel.train
    with monkeypatch.context() as patch:
        patch.setattr(PretrainingModel, "train", stop)
        assert main([*arguments, str(folder)]) == 130
    assert main([*arguments, str(folder)]) == 0
    assert weights(folder) == weights(run.path) and log(folder) == log(run.path)


def test_tokenizer_returns_only_what_the_model_reads(run: Run):
    """GPT-2 would embed token_type_ids as words, so the tokenizer must not return any."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.tokenizer)
    encoded = tokenizer("Paris is old.", return_tensors="pt")
    assert set(encoded) == {"input_ids", "attention_mask"} and encoded["input_ids"][0, 0] == CLS
    model = transformers.AutoModelForCausalLM.from_pretrained(runs.checkpoints(run)[-1].path)
    assert model.config.bos_token_id == CLS and model.config.eos_token_id == SEP
    assert model(**encoded).logits.shape[-1] == 500


def test_remeasuring_keeps_rows_and_refuses_masked_words(run: Run, texts: tuple[Path, Path]):
    """A step that was measured in training on the same held-out text is skipped."""
    before, messages = log(run.path), []
    assert measure_run(run, [str(texts[1])], steps=[6], progress=messages.append)
    assert messages == ["step 6: measured before"] and log(run.path) == before
    with pytest.raises(ConfigError, match=r"--measured-sequences: .* gpt2 masks no words"):
        measure_run(run, [str(texts[1])], measured_sequences=8)


def test_checkpoints_predict_next_words(run: Run, sample: Path):
    """The engine's logits are those of transformers, and metrics that need masked words are refused."""
    for checkpoint in runs.checkpoints(run):
        runs.verify(checkpoint)
        assert checkpoint_capabilities(checkpoint) == {"states", "attentions", "trainable", "next_words", "words"}
    model = engine_model.load(checkpoint)
    ids = model.tokenizer.encode_text("The river runs to the sea.")[None]
    own = transformers.GPT2LMHeadModel.from_pretrained(checkpoint.path).eval()(torch.as_tensor(ids)).logits[0, -3]
    logits = model.next_logits(ids, np.array([0]), np.array([ids.shape[1] - 3]))[0]
    np.testing.assert_allclose(logits, own.detach()[: len(logits)], atol=TOLERANCE)
    with pytest.raises(Exception, match="'mask_prediction' needs masked_words"):
        evaluate(run, {"treebank": sample / "treebank.conllu"}, ["mask_prediction"])
