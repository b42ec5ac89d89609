"""Checkpoints of the original code, as TensorFlow 1 wrote them, become a run whose models compute the same."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AlbertForPreTraining, BertForPreTraining, ElectraForMaskedLM, ElectraForPreTraining

from embryo_core import query, runs
from embryo_core.engine.model import load
from embryo_core.types import Run
from pretrain.__main__ import main
from tests.pretrain import originals

FAMILIES = ("albert", "bert", "electra")
TOLERANCE = 1e-4  # of a logit, in float32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder for checkpoints, with a vocabulary and the configurations of the originals."""
    words = [f"w{i}" for i in range(originals.V - 5)]
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    for name in FAMILIES:
        (tmp_path / f"{name}_config.json").write_text(json.dumps(originals.CONFIG))
    return tmp_path


def imported(folder: Path, name: str = "") -> Run:
    """Return the run that the command makes of a checkpoint in this folder, or of all."""
    assert main(["import", str(folder / name), "--run", str(folder / "runs" / "imported")]) == 0
    return runs.read_run(folder / "runs" / "imported")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Ids and segments [2, 9] without padding."""
    rng = np.random.default_rng(1)
    return rng.integers(0, originals.V, (2, 9)), np.repeat([[0] * 5 + [1] * 4], 2, axis=0)


def outputs(kind: type, folder: Path) -> list[np.ndarray]:
    """Return what a class of transformers computes of `batch`, its logits in turn."""
    ids, segments = map(torch.from_numpy, batch())
    with torch.inference_mode():
        found = kind.from_pretrained(folder)(input_ids=ids, token_type_ids=segments)
    return [array.numpy() for array in found.to_tuple()]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_original(folder: Path, family: str):
    """Of both heads, as transformers reads the run's checkpoint, to 1e-4 of a computation in numpy."""
    values = originals.variables(family)
    originals.save(folder / "model.ckpt-7", values)
    path = runs.checkpoint(imported(folder), 7).path
    words = originals.masked_words(family, values, *batch())
    if family == "electra":
        expected = [originals.replaced(values, *batch()), words]
        found = [*outputs(ElectraForPreTraining, path), *outputs(ElectraForMaskedLM, path / "generator")]
    else:
        expected = [words, originals.pairs(family, values, *batch())]
        found = outputs({"albert": AlbertForPreTraining, "bert": BertForPreTraining}[family], path)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and np.abs(ours - theirs).max() < TOLERANCE


def test_the_command_tells_what_to_run_next(folder: Path, capsys):
    """With the count of checkpoints, of one as of several, and the run's name."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    imported(folder)
    assert "(1 checkpoint) can be evaluated: python -m embryo_core evaluate imported\n" in capsys.readouterr().out


@pytest.mark.parametrize("family", FAMILIES)
def test_a_series_is_a_run_that_can_be_asked(folder: Path, family: str):
    """Every step of a folder, with the original's states; unknown counts stay so; a second import adds what is new."""
    values = {step: originals.variables(family, seed=step) for step in (0, 25, 100)}
    for step in (0, 25):
        originals.save(folder / f"model.ckpt-{step}", values[step])
    assert [found.step for found in runs.checkpoints(imported(folder))] == [0, 25]
    originals.save(folder / "model.ckpt-100", values[100])
    run = imported(folder, "model.ckpt-100")
    found = runs.checkpoints(run)
    assert [c.step for c in found] == list(run.planned_steps) == [0, 25, 100] and found[0].tokens is None
    for checkpoint in found:
        ids, segments = batch()
        states = load(checkpoint).hidden_states(ids, np.ones_like(ids))
        expected = originals.states_of(family, values[checkpoint.step], ids, np.zeros_like(segments))
        assert np.abs(states - np.stack(expected)).max() < TOLERANCE
    assert query.ask(run, "w1 [MASK] w2").steps == (0, 25, 100)


def test_the_step_is_reported_by_name_or_variable(folder: Path, capsys):
    """A name without a number, such as model.ckpt-best, has the step of its variable global_step."""
    values = originals.variables("bert")
    originals.save(folder / "model.ckpt-best", values)
    assert [found.step for found in runs.checkpoints(imported(folder, "model.ckpt-best"))] == [7]
    originals.save(folder / "bert_model.ckpt", {name: v for name, v in values.items() if name != "global_step"})
    assert main(["import", str(folder / "bert_model.ckpt"), "--run", str(folder / "other")]) == 2
    assert "has no step" in capsys.readouterr().err


def test_a_configuration_above_its_checkpoints_counts(folder: Path):
    """Checkpoints may be in a folder below their vocabulary and configuration."""
    (folder / "steps").mkdir()
    originals.save(folder / "steps" / "model.ckpt-7", originals.variables("albert"))
    run = imported(folder, "steps")
    assert (run.family, run.config["num_attention_heads"]) == ("albert", originals.HEADS)


def test_an_electra_needs_no_configuration(folder: Path):
    """Its code wrote none; its heads are 64 wide, in the smallest model there is one."""
    (folder / "electra_config.json").unlink()
    originals.save(folder / "model.ckpt-7", originals.variables("electra"))
    assert imported(folder).config["num_attention_heads"] == 1


def test_an_albert_with_embeddings_as_wide_as_its_states_has_no_projection(folder: Path, monkeypatch):
    """Its original code writes none then; the run's is the identity, and the logits are the original's."""
    monkeypatch.setattr(originals, "E", originals.H)
    values = originals.variables("albert")
    values = {name: value for name, value in values.items() if "embedding_hidden_mapping_in" not in name}
    originals.save(folder / "model.ckpt-7", values)
    words, _ = outputs(AlbertForPreTraining, runs.checkpoint(imported(folder), 7).path)
    assert np.abs(words - originals.masked_words("albert", values, *batch())).max() < TOLERANCE


def test_an_electra_without_its_generator_is_reported(folder: Path, capsys):
    """In a sentence that does not list each of its variables."""
    values = originals.variables("electra")
    originals.save(folder / "model.ckpt-7", {n: value for n, value in values.items() if not n.startswith("generator")})
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "model.ckpt-7 has no generator" in (said := capsys.readouterr().err) and len(said) < 300


def test_two_checkpoints_of_one_step_are_reported(folder: Path, capsys):
    """Neither is taken for the other."""
    for name in ("model.ckpt-7", "bert_model.ckpt"):  # the second has its step in global_step
        originals.save(folder / name, originals.variables("bert"))
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "have the same step" in capsys.readouterr().err


def test_another_vocabulary_changes_no_run(folder: Path, capsys):
    """It is refused, and the run's own stays."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    run = imported(folder)
    before = (run.tokenizer / "tokenizer.json").read_bytes()
    lines = (folder / "vocab.txt").read_text().splitlines()
    for pieces, message in ((lines[::-1], "another model or vocabulary"), ([*lines, "more"], "has 41 pieces")):
        (folder / "other.txt").write_text("\n".join(pieces))
        command = ["import", str(folder), "--run", str(run.path), "--vocabulary", str(folder / "other.txt")]
        originals.save(folder / "model.ckpt-9", originals.variables("bert"))
        assert main(command) == 2
        assert message in capsys.readouterr().err
        assert (run.tokenizer / "tokenizer.json").read_bytes() == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.ckpt-7.index").unlink(), "model.ckpt-7.index does not exist"),
        (lambda folder: _truncate(folder / "model.ckpt-7.data-00000-of-00001"), "cannot be read"),
        (lambda folder: _truncate(folder / "model.ckpt-7.index"), "cannot be read"),
        (lambda folder: (folder / "model.ckpt-7.data-00000-of-00001").unlink(), "cannot be read"),
        (lambda folder: (folder / "vocab.txt").unlink(), "--vocabulary FILE"),
        (lambda folder: (folder / "vocab.txt").write_text("one\ntwo\n"), "is not a vocabulary of the original code"),
        (lambda folder: (folder / "bert_config.json").unlink(), "bert_config.json does not exist"),
        (lambda folder: (folder / "bert_config.json").write_text("{}"), "num_attention_heads"),
        (lambda folder: _configure(folder, hidden_size=768), "has hidden_size 768, and"),
        (lambda folder: _configure(folder, num_hidden_layers=12), "has num_hidden_layers 12, and"),
        (lambda folder: _configure(folder, hidden_act="relu"), "has hidden_act 'relu'"),
        (lambda folder: _change(folder, {"bert/adapter/kernel": np.ones(3)}), "has the variable bert/adapter/kernel"),
        (lambda folder: _change(folder, {"bert/pooler/dense/bias": None}), "lacks ['bert.pooler.dense.bias']"),
        (lambda folder: _change(folder, {"bert/pooler/dense/bias": np.ones(3)}), "the settings make it [16]"),
        (lambda folder: _change(folder, {"bert/pooler/dense/bias": np.array(["a"])}), "has text in the variable"),
        (lambda folder: _change(folder, {"bert/embeddings/word_embeddings": np.ones(3)}), "has no 2-dimensional word"),
        (lambda folder: originals.save(folder / "model.ckpt-7", {"w": np.ones(3)}), "holds no ALBERT, BERT or ELECTRA"),
    ],
    ids=("index", "data", "short index", "no data", "vocabulary", "other vocabulary", "configuration", "no heads",
         "other size", "other layers", "other activation", "unknown", "missing", "misshapen",
         "text", "no axis", "another model"),
)  # fmt: skip
def test_what_cannot_be_imported_is_reported_in_one_sentence(folder: Path, capsys, damage, message: str):
    """And no checkpoint is written."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    damage(folder)
    assert main(["import", str(folder / "model.ckpt-7"), "--run", str(folder / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith("Error: ") and "Traceback" not in said
    assert not list(folder.glob("run/checkpoints/*"))


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _configure(folder: Path, **settings: object) -> None:
    (folder / "bert_config.json").write_text(json.dumps(originals.CONFIG | settings))


def _change(folder: Path, changes: dict) -> None:
    values = originals.variables("bert") | changes
    originals.save(folder / "model.ckpt-7", {name: value for name, value in values.items() if value is not None})


def test_a_folder_without_checkpoints_is_reported(folder: Path, capsys):
    """What a checkpoint's files are called is in the sentence."""
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "has no file model.ckpt-STEP.index" in capsys.readouterr().err


def test_another_model_is_no_step_of_the_run(folder: Path, capsys):
    """A run has one family, size and vocabulary; what was imported stays."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    run = imported(folder)
    originals.save(folder / "model.ckpt-8", originals.variables("albert"))
    assert main(["import", str(folder / "model.ckpt-8"), "--run", str(run.path)]) == 2
    assert "has another model or vocabulary" in capsys.readouterr().err
    assert [found.step for found in runs.checkpoints(run)] == [7]
