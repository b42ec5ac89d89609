"""Tests of adding a family: a file in each of two folders suffices to train, log, measure, export and evaluate it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from safetensors.numpy import load_file

from embryo_core import families as layouts
from embryo_core import results, runs
from embryo_core.engine.model import load
from embryo_core.errors import UnknownPreset
from embryo_core.evaluation import evaluate
from embryo_core.types import Run
from pretrain import families
from pretrain.__main__ import main
from pretrain.batches import Data
from pretrain.config import MaskedConfig
from pretrain.export import read_checkpoint
from pretrain.families import FAMILIES, preset
from pretrain.family import Family
from pretrain.model import targets
from pretrain.train import build

GRID = [0, 1, 2, 4, 5, 10]  # checkpoints of the toy family
TOLERANCE = 1e-4  # of logits, the same for every family

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def toy() -> Iterator[Family]:
    """Return the toy family, loaded as if its files were in pretrain/families and embryo_core/families."""
    with pytest.MonkeyPatch.context() as patch:
        for package, folder in ((families, "toy"), (layouts, "toy_layout")):
            patch.setattr(package, "__path__", [*package.__path__, str(Path(__file__).parent / folder)])
        patch.setitem(FAMILIES, "toy", families.load_families()["toy"])
        patch.setitem(layouts.ENCODERS, "toy", layouts.load_layouts()["toy"])
        yield FAMILIES["toy"]


@pytest.fixture(scope="module")
def toy_run(toy: Family, texts, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Train the toy family for ten updates by the command line; return the run."""
    folder = tmp_path_factory.mktemp("toy") / "own"
    arguments = ["toy-tiny", "--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    assert main([*arguments, "--set", "order_weight=0.25", "log_every=5", "--run", str(folder)]) == 0
    return runs.read_run(folder)


def test_every_family_is_found_by_its_file(toy: Family):
    """The engine finds its layouts likewise, and has one more family, gpt_neox."""
    assert list(families.load_families()) == ["albert", "bert", "electra", "gpt2", "toy"]
    assert list(layouts.load_layouts()) == ["albert", "bert", "electra", "gpt2", "gpt_neox", "toy"]


def test_new_family_trains_and_exports(toy_run: Run):
    """The card, the rows of the log and the checkpoints have its objectives, measures and weights."""
    assert (toy_run.family, toy_run.objective) == ("toy", "order of two segments + masked words")
    assert toy_run.config["order_weight"] == 0.25
    for row in runs.read_log(toy_run):
        assert row["loss"] == pytest.approx(row["sentence_order_loss"] + row["masked_lm_loss"])
        assert {"sentence_order_accuracy", "masked_lm_accuracy"} <= set(row)
    measure = runs.read_log(toy_run)[0]["measures"][0]
    assert {"loss", "accuracy", "n", "masked_lm_loss", "masked_lm_accuracy", "masked_lm_n"} <= set(measure)
    assert measure["n"] == 8 < measure["masked_lm_n"] and "positions" not in measure
    first, last = (load_file(runs.checkpoint(toy_run, step).path / "model.safetensors") for step in (0, 10))
    assert {"words.bias", "order.pooler.weight", "toy.encoder.layer.1.output.dense.weight"} < set(last)
    assert not any(np.array_equal(first[name], last[name]) for name in last)


def test_new_family_is_evaluated(toy_run: Run, sample: Path):
    """Every checkpoint is evaluated by metrics of masked words and of attention."""
    names = ["token_reconstruction", "mask_prediction", "attention"]
    report = evaluate(toy_run, {"treebank": sample / "treebank.conllu"}, names, limit=20)
    assert (report.computed, report.failures) == (len(names) * len(GRID), [])
    assert all(list(results.steps_by_metric(toy_run)[name]) == GRID for name in names)


def test_engine_computes_logits_of_new_family(toy_run: Run, data: Data):
    """The checkpoint's masked-word logits are those of the model in pretraining."""
    config, batch = preset("toy-tiny"), data.training(0)
    inputs = batch.inputs() | {"token_type_ids": np.zeros_like(batch.ids)}  # the engine reads one segment
    model, last = build(config), runs.checkpoints(toy_run)[-1]
    read_checkpoint(model, config, last)
    rows, places = np.nonzero(batch.positions)
    expected = ops.convert_to_numpy(model(inputs)["masked_lm"])[rows, places]
    columns = batch.positions[rows, places]
    engine = load(last)
    for row, column, logits in zip(rows, columns, expected, strict=True):
        ids = batch.ids[[row], : batch.attention_mask[row].sum()]
        np.testing.assert_allclose(engine.mlm_logits(ids, [0], [column])[0], logits, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("bert-tiny", "next_sentence"),
        pytest.param("electra-tiny", "replaced_token", marks=pytest.mark.slow),
    ],
)
def test_mixed_lengths_are_logged_separately(name: str, second: str, texts, cache: Path, tmp_path: Path):
    """The log has the loss of each objective by length, and held-out measures at each length."""
    lengths = "short_steps=4 short_sequence_length=16 short_batch_size=8 long_every=2"
    settings = f"{lengths} warmup_steps=1 log_every=4 save_every=0 measured_sequences=8 heldout_sequences=8".split()
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    assert main([name, *corpus, "--run", str(tmp_path / "own"), "--set", "steps=4", *settings]) == 0
    rows = runs.read_log(runs.read_run(tmp_path / "own"))
    (mixed,) = [row for row in rows if row["step"] == 4 and row["split"] == "train"]
    for losses in mixed["by_length"].values():
        assert losses["loss"] == pytest.approx(losses["masked_lm_loss"] + losses[f"{second}_loss"])
    assert set(mixed["by_length"]) == {"16", "32"}
    for row in rows:
        measures = row.get("measures", [])
        assert row["split"] == "train" or [measure["length"] for measure in measures] == 4 * [16] + 4 * [32]
        assert all(measure["n"] > 0 and measure[f"{second}_n"] > 0 for measure in measures)


def test_unknown_preset_error_suggests_known_one(toy: Family):
    """Suggestions come from every family, new ones included."""
    assert preset("toy-tiny").family == "toy"
    with pytest.raises(UnknownPreset, match=r"Unknown preset 'toy-tin'. Did you mean 'toy-tiny'"):
        preset("toy-tin")
    with pytest.raises(UnknownPreset, match=r"Unknown preset 'albert-smal'. Did you mean 'albert-small'"):
        preset("albert-smal")


@pytest.mark.parametrize("name", ["tiny", "bert-tiny", "electra-tiny"])
def test_every_weight_exists_before_first_batch(name: str, data: Data):
    """Weights are built from the sizes alone, and the first batch adds none."""
    model = build(preset(name))
    paths = [variable.path for variable in model.variables]
    model(data.training(0).inputs())
    assert [variable.path for variable in model.variables] == paths


@pytest.mark.parametrize("name", FAMILIES)
def test_every_gradient_is_dense(name: str, data: Data):
    """Keras would clip by a wrong norm if TensorFlow returned the gradient of an embedding as sparse rows."""
    family = FAMILIES[name]
    config = replace(min(family.presets.values(), key=lambda preset: preset.hidden_size), vocab_size=500)
    collator = family.collator(config, data.collator.begins_word)
    packing = collator.pack(data.corpus.train, 16)
    batch = collator.batch(packing, np.arange(4), 0, np.random.default_rng(0))
    model = family.model(config)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(y=targets(batch, family.loss_weights(config, 0)), y_pred=model(batch.inputs()))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)


def test_every_preset_fits_its_family():
    """Each preset names the family that lists it, and its first update has a weight for every objective."""
    for name, family in FAMILIES.items():
        for config in family.presets.values():
            assert config.family == family.name == name
            assert list(family.loss_weights(config, 0)) == list(family.objectives(config))
            assert replace(config) == config


def test_every_preset_warms_up_before_its_rate_falls():
    """Warm-up takes 1 % of the updates or more, as in the papers on encoders (GPT-2: 0.1 %), and at most 20 %."""
    for family in FAMILIES.values():
        for name, config in family.presets.items():
            least = 0.01 if isinstance(config, MaskedConfig) else 0.001  # GPT-3's 375 million of 300 billion tokens
            assert least <= config.warmup_steps / config.steps <= 0.2, name
