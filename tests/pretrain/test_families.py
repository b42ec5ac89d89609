"""Adding a family: one file in its folder, and it trains, is logged, measured and exported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from embryo_core import runs
from embryo_core.errors import UnknownPreset
from embryo_core.families import FAMILIES as read_by_the_engine
from pretrain import families
from pretrain.__main__ import main
from pretrain.batches import Data
from pretrain.families import FAMILIES, preset
from pretrain.family import Family
from pretrain.model import targets
from pretrain.train import build

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Family:
    """The toy, as if its file stood in pretrain/families."""
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(Path(__file__).parent / "toy")])
    monkeypatch.setitem(FAMILIES, "toy", families.found()["toy"])
    return FAMILIES["toy"]


def test_every_family_is_found_by_its_file(toy: Family):
    """And the fast engine reads each of them, by a file of its own."""
    assert list(families.found()) == ["albert", "bert", "electra", "toy"]
    assert set(read_by_the_engine) == {"albert", "bert", "electra"}


def test_a_new_family_trains_and_exports_by_being_there(toy: Family, texts, cache: Path, tmp_path: Path):
    """Ten updates by the command line: the card, every row of the log and the checkpoints are its own."""
    arguments = ["toy-tiny", "--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    settings = ["--set", "order_weight=0.25", "log_every=5", "--run", str(tmp_path / "own")]
    assert main([*arguments, *settings]) == 0
    run = runs.read_run(tmp_path / "own")
    assert (run.family, run.objective) == ("toy", "order of two segments + masked words")
    assert run.config["order_weight"] == 0.25
    for row in runs.read_log(run):
        assert row["loss"] == pytest.approx(row["order_loss"] + row["words_loss"])
        assert {"order_accuracy", "words_accuracy"} <= set(row) and "masked_lm_loss" not in row
    measure = runs.read_log(run)[0]["measures"][0]
    assert {"loss", "accuracy", "n", "words_loss", "words_accuracy", "words_n"} <= set(measure)
    assert measure["n"] == 8 < measure["words_n"] and "positions" not in measure
    last = runs.checkpoint(run, 10)
    runs.verify(last)
    stored = load_file(last.path / "model.safetensors")
    expected = {"words.weight": (500, 16)}
    for i in range(2):
        expected |= {f"layer.{i}.query.weight": (16, 16), f"layer.{i}.query.bias": (16,)}
    assert {name: array.shape for name, array in stored.items()} == expected
    assert not np.array_equal(stored["layer.0.query.weight"], stored["layer.1.query.weight"])


@pytest.mark.parametrize(("name", "second"), [("bert-tiny", "next_sentence"), ("electra-tiny", "replaced_token")])
def test_lengths_are_mixed_and_told_apart(name: str, second: str, texts, cache: Path, tmp_path: Path):
    """In every family: the log has each objective's loss by length, the held-out measures are of each length."""
    lengths = "short_steps=6 short_sequence_length=16 short_batch_size=8 long_every=2"
    settings = f"{lengths} warmup_steps=1 log_every=4 save_every=0 measured_sequences=8 heldout_sequences=8".split()
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    assert main([name, *corpus, "--run", str(tmp_path / "own"), "--set", "steps=8", *settings]) == 0
    rows = runs.read_log(runs.read_run(tmp_path / "own"))
    (mixed,) = [row for row in rows if row["step"] == 4 and row["split"] == "train"]
    for losses in mixed["by_length"].values():
        assert losses["loss"] == pytest.approx(losses["masked_lm_loss"] + losses[f"{second}_loss"])
    assert set(mixed["by_length"]) == {"16", "32"}
    for row in rows:
        measures = row.get("measures", [])
        assert row["split"] == "train" or [measure["length"] for measure in measures] == [16, 16, 16, 32, 32, 32]
        assert all(measure["n"] > 0 and measure[f"{second}_n"] > 0 for measure in measures)


def test_an_unknown_preset_is_named_with_the_known_ones(toy: Family):
    """The message says what was received and what exists, in every family."""
    assert preset("toy-tiny").family == "toy"
    with pytest.raises(UnknownPreset, match="Unknown preset 'toy-tin'. Did you mean 'toy-tiny'"):
        preset("toy-tin")
    with pytest.raises(UnknownPreset, match="Unknown preset 'albert-smal'. Did you mean 'albert-small'"):
        preset("albert-smal")


@pytest.mark.parametrize("name", ["tiny", "bert-tiny", "electra-tiny"])
def test_every_weight_is_made_before_the_first_batch(name: str, data: Data):
    """From the sizes alone: the first batch adds none."""
    model = build(preset(name))
    paths = [variable.path for variable in model.variables]
    model(data.training(0).inputs())
    assert [variable.path for variable in model.variables] == paths


@pytest.mark.parametrize("name", FAMILIES)
def test_every_gradient_is_dense(name: str, data: Data):
    """In every family: Keras would clip by a wrong norm where TensorFlow gives the rows of a lookup one by one."""
    family, batch = FAMILIES[name], data.training(0)
    config = min(family.presets.values(), key=lambda preset: preset.hidden_size)
    model = family.model(replace(config, vocab_size=500))
    with tf.GradientTape() as tape:
        loss = model.compute_loss(y=targets(batch, family.loss_weights(config, 0)), y_pred=model(batch.inputs()))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)


def test_every_preset_holds_what_its_family_promises():
    """Each preset belongs to the family that lists it, and every update of it has a weight for every objective."""
    for name, family in FAMILIES.items():
        for config in family.presets.values():
            assert config.family == family.name == name
            assert list(family.loss_weights(config, 0)) == list(family.objectives(config))
            assert replace(config) == config
