"""Tests of importing the original code's TensorFlow 1 checkpoints into a run whose models compute the same."""

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
    """Return a folder for checkpoints with a vocabulary and the configurations of the originals."""
    words = [f"w{i}" for i in range(originals.V - 5)]
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    for name in FAMILIES:
        (tmp_path / f"{name}_config.json").write_text(json.dumps(originals.CONFIG))
    return tmp_path


def import_run(folder: Path, name: str = "") -> Run:
    """Import one checkpoint of this folder, or all of them, by the command line and return the run."""
    assert main(["import", str(folder / name), "--run", str(folder / "runs" / "imported")]) == 0
    return runs.read_run(folder / "runs" / "imported")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return ids and segments, both [2, 9], without padding."""
    rng = np.random.default_rng(1)
    return rng.integers(0, originals.V, (2, 9)), np.repeat([[0] * 5 + [1] * 4], 2, axis=0)


def outputs(kind: type, folder: Path) -> list[np.ndarray]:
    """Return the logits that a class of transformers computes for `batch`, in the order of its outputs."""
    ids, segments = map(torch.from_numpy, batch())
    with torch.inference_mode():
        output = kind.from_pretrained(folder)(input_ids=ids, token_type_ids=segments)
    return [array.numpy() for array in output.to_tuple()]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_those_of_the_original(folder: Path, family: str):
    """For both heads, transformers on the run's checkpoint agrees within 1e-4 with a computation in numpy."""
    values = originals.variables(family)
    originals.save(folder / "model.ckpt-7", values)
    path = runs.checkpoint(import_run(folder), 7).path
    words = originals.masked_words(family, values, *batch())
    if family == "electra":
        expected = [originals.replaced_tokens(values, *batch()), words]
        actual = [*outputs(ElectraForPreTraining, path), *outputs(ElectraForMaskedLM, path / "generator")]
    else:
        expected = [words, originals.pairs(family, values, *batch())]
        actual = outputs({"albert": AlbertForPreTraining, "bert": BertForPreTraining}[family], path)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape and np.abs(ours - theirs).max() < TOLERANCE


def test_import_suggests_the_next_command(folder: Path, capsys):
    """The line also has the number of checkpoints, with the singular for one, and the run's name."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    import_run(folder)
    assert "(1 checkpoint) can be evaluated: python -m embryo_core evaluate imported\n" in capsys.readouterr().out


@pytest.mark.parametrize("family", FAMILIES)
def test_imported_series_can_be_queried(folder: Path, family: str):
    """Every step has the original's states; the number of tokens is unknown; a second import adds new steps."""
    values = {step: originals.variables(family, seed=step) for step in (0, 25, 100)}
    for step in (0, 25):
        originals.save(folder / f"model.ckpt-{step}", values[step])
    assert [checkpoint.step for checkpoint in runs.checkpoints(import_run(folder))] == [0, 25]
    originals.save(folder / "model.ckpt-100", values[100])
    run = import_run(folder, "model.ckpt-100")
    checkpoints = runs.checkpoints(run)
    assert [c.step for c in checkpoints] == list(run.planned_steps) == [0, 25, 100] and checkpoints[0].tokens is None
    for checkpoint in checkpoints:
        ids, segments = batch()
        states = load(checkpoint).hidden_states(ids)
        expected = originals.states_of(family, values[checkpoint.step], ids, np.zeros_like(segments))
        assert np.abs(states - np.stack(expected)).max() < TOLERANCE
    assert query.ask(run, "w1 [MASK] w2").steps == (0, 25, 100)


def test_step_is_read_from_the_name_or_global_step(folder: Path, capsys):
    """If a name such as model.ckpt-best has no number, global_step is read; without either, the import is refused."""
    values = originals.variables("bert")
    originals.save(folder / "model.ckpt-best", values)
    assert [checkpoint.step for checkpoint in runs.checkpoints(import_run(folder, "model.ckpt-best"))] == [7]
    originals.save(folder / "bert_model.ckpt", {name: v for name, v in values.items() if name != "global_step"})
    assert main(["import", str(folder / "bert_model.ckpt"), "--run", str(folder / "other")]) == 2
    assert "has no step" in capsys.readouterr().err


def test_configuration_is_found_in_the_parent_folder(folder: Path):
    """The vocabulary is found there too, so a subfolder may contain only checkpoints."""
    (folder / "steps").mkdir()
    originals.save(folder / "steps" / "model.ckpt-7", originals.variables("albert"))
    run = import_run(folder, "steps")
    assert (run.family, run.config["num_attention_heads"]) == ("albert", originals.HEADS)


def test_electra_needs_no_configuration(folder: Path):
    """The original code wrote none; heads are 64 wide, and a narrower model such as this one has one head."""
    (folder / "electra_config.json").unlink()
    originals.save(folder / "model.ckpt-7", originals.variables("electra"))
    assert import_run(folder).config["num_attention_heads"] == 1


def test_albert_without_projection_gets_the_identity(folder: Path, monkeypatch):
    """The original code writes no projection if E = H; with the identity, the logits are the original's."""
    monkeypatch.setattr(originals, "E", originals.H)
    values = originals.variables("albert")
    values = {name: value for name, value in values.items() if "embedding_hidden_mapping_in" not in name}
    originals.save(folder / "model.ckpt-7", values)
    words, _ = outputs(AlbertForPreTraining, runs.checkpoint(import_run(folder), 7).path)
    assert np.abs(words - originals.masked_words("albert", values, *batch())).max() < TOLERANCE


def test_electra_without_generator_is_refused(folder: Path, capsys):
    """The message is short; it does not list every missing variable."""
    values = originals.variables("electra")
    originals.save(folder / "model.ckpt-7", {n: value for n, value in values.items() if not n.startswith("generator")})
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "model.ckpt-7 has no generator" in (output := capsys.readouterr().err) and len(output) < 300


def test_two_checkpoints_of_one_step_are_refused(folder: Path, capsys):
    """It would be unclear which of them to import."""
    for name in ("model.ckpt-7", "bert_model.ckpt"):  # the second has its step in global_step
        originals.save(folder / name, originals.variables("bert"))
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "have the same step" in capsys.readouterr().err


def test_import_with_another_vocabulary_is_refused(folder: Path, capsys):
    """The run keeps its tokenizer."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    run = import_run(folder)
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
        (lambda folder: (folder / "bert_config.json").unlink(), "/bert_config.json"),
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
def test_damaged_or_unsupported_originals_are_refused(folder: Path, capsys, damage, message: str):
    """An error without a traceback is printed, and no checkpoint is written."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    damage(folder)
    assert main(["import", str(folder / "model.ckpt-7"), "--run", str(folder / "run")]) == 2
    output = capsys.readouterr().err
    assert message in output and output.startswith("Error: ") and "Traceback" not in output
    assert not list(folder.glob("run/checkpoints/*"))


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _configure(folder: Path, **settings: object) -> None:
    (folder / "bert_config.json").write_text(json.dumps(originals.CONFIG | settings))


def _change(folder: Path, changes: dict) -> None:
    values = originals.variables("bert") | changes
    originals.save(folder / "model.ckpt-7", {name: value for name, value in values.items() if value is not None})


def test_folder_without_checkpoints_is_refused(folder: Path, capsys):
    """The message says how the files of a checkpoint are named."""
    assert main(["import", str(folder), "--run", str(folder / "run")]) == 2
    assert "has no file model.ckpt-STEP.index" in capsys.readouterr().err


def test_checkpoint_of_another_model_is_refused(folder: Path, capsys):
    """A run has one family, size and vocabulary; its earlier checkpoints stay."""
    originals.save(folder / "model.ckpt-7", originals.variables("bert"))
    run = import_run(folder)
    originals.save(folder / "model.ckpt-8", originals.variables("albert"))
    assert main(["import", str(folder / "model.ckpt-8"), "--run", str(run.path)]) == 2
    assert "has another model or vocabulary" in capsys.readouterr().err
    assert [checkpoint.step for checkpoint in runs.checkpoints(run)] == [7]
