"""Tests of continuing a run twice as wide: it computes the same at first, and training makes the copies differ."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AlbertForPreTraining

from embryo_core import runs
from embryo_core.comparison.cost import training_flops
from embryo_core.types import Change, Checkpoint, Run
from pretrain.__main__ import main
from pretrain.families import preset

pytestmark = pytest.mark.usefixtures("eager")
SETTINGS = "steps=4 warmup_steps=1 save_every=2 state_every=2 log_every=1 measured_sequences=0"
NARROW = preset("tiny")
TWICE = {name: 2 * getattr(NARROW, name) for name in ("hidden_size", "num_attention_heads", "intermediate_size")}
WIDER = [f"{name}={size}" for name, size in TWICE.items()]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for runs."""
    folder = tmp_path_factory.mktemp("widened") / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def command(texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the options for four updates on the sample text."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    return [*corpus, "--set", *SETTINGS.split()]


@pytest.fixture(scope="module")
def first(command: list[str], root: Path) -> Run:
    """Train the narrow run; its two layers share no weights, so that two are widened."""
    assert main(["tiny", *command, "num_hidden_groups=2", "--run", str(root / "first")]) == 0
    return runs.read_run(root / "first")


@pytest.fixture(scope="module")
def wide(first: Run, command: list[str], root: Path) -> Run:
    """Train four more updates, twice as wide, from the last checkpoint of the narrow run."""
    begun = ["--init-from", str(first.path), *command, "num_hidden_groups=2", *WIDER]
    assert main(["tiny", *begun, "--run", str(root / "wide")]) == 0
    return runs.read_run(root / "wide")


def outputs(checkpoint: Checkpoint) -> list[np.ndarray]:
    """Return all hidden states and the logits of both heads, computed by transformers."""
    model = AlbertForPreTraining.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
    ids = torch.tensor([[2, *range(5, 20), 3], [2, *range(100, 115), 3]])
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
    return [each.numpy() for each in (*output.hidden_states, output.prediction_logits, output.sop_logits)]


def test_widened_model_computes_the_same_as_the_narrow_one(first: Run, wide: Run):
    """Hidden states are the narrow ones concatenated with themselves; logits agree to the precision of float32."""
    assert runs.read_config(runs.checkpoint(wide, 4), dict)["hidden_size"] == TWICE["hidden_size"]
    *states, words, order = outputs(runs.checkpoint(first, 4))
    *twice, wide_words, wide_order = outputs(runs.checkpoint(wide, 4))
    for narrow, both in zip(states, twice, strict=True):
        np.testing.assert_allclose(both, np.concatenate([narrow, narrow], -1), rtol=0, atol=1e-5)
    np.testing.assert_allclose(wide_words, words, rtol=0, atol=1e-5)
    np.testing.assert_allclose(wide_order, order, rtol=0, atol=1e-5)


def test_training_makes_the_copies_differ(wide: Run):
    """The biases of the two copies of an inner unit are equal at first; equal gradients would keep them equal."""
    name = "albert.encoder.albert_layer_groups.1.albert_layers.0.ffn.bias"
    begun, trained = (load_file(runs.checkpoint(wide, step).path / "model.safetensors")[name] for step in (4, 8))
    one, other = np.split(begun, 2)
    assert (one == other).all()
    moved, apart = np.abs(trained - begun), np.abs(np.subtract(*np.split(trained - begun, 2)))
    assert moved.min() > 0 and np.median(apart) > 0.05 * np.median(moved)


def test_widened_run_continues_counts_log_and_cost(first: Run, wide: Run, root: Path, monkeypatch):
    """Its checkpoints begin at the widening, since earlier ones are of another model."""
    monkeypatch.setenv("EMBRYO_DATA", str(root.parent))  # the folder in which the first run is found by its name
    start, last = runs.checkpoint(first, 4), runs.checkpoint(wide, 8)
    assert [checkpoint.step for checkpoint in runs.checkpoints(wide)] == [4, 5, 6, 8] == list(wide.planned_steps)
    assert runs.checkpoint(wide, 4).tokens == start.tokens < last.tokens
    assert [row["step"] for row in runs.read_log(wide) if row["split"] == "train"] == list(range(1, 9))
    assert runs.changes(wide) == (Change(4, "twice as wide"),)
    assert wide.origin.weights_sha256 == runs.sha256(start.path / "model.safetensors")
    before = training_flops(first, 4)
    assert training_flops(wide, 4) == before and training_flops(wide, 8) > 3 * before


@pytest.mark.slow
def test_resume_without_first_checkpoint_widens_again(wide: Run, first: Run, command: list[str], root: Path):
    """A run killed before its first checkpoint gets the same weights; the same command then changes nothing."""
    begun = ["--init-from", str(first.path), *command, "num_hidden_groups=2", *WIDER]
    folder = root / "again"
    folder.mkdir()
    (folder / "run.json").write_text((wide.path / "run.json").read_text().replace('"wide"', '"again"'))
    for _ in range(2):
        assert main(["tiny", *begun, "--run", str(folder)]) == 0
        for step in (4, 8):
            ours, theirs = (runs.checkpoint(runs.read_run(path), step).path for path in (folder, wide.path))
            assert runs.sha256(ours / "model.safetensors") == runs.sha256(theirs / "model.safetensors")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (WIDER[:1], f"has hidden_size {NARROW.hidden_size}, but these settings give {TWICE['hidden_size']}"),
        ([*WIDER, "num_hidden_layers=4"], "has num_hidden_layers 2, but these settings give 4"),
        (WIDER[1:], "or double hidden_size, num_attention_heads, intermediate_size."),
    ],
    ids=("states alone", "layers too", "all but the states"),
)
def test_settings_not_twice_as_wide_are_refused(first: Run, command: list[str], root: Path, capsys, settings, message):
    """The message says what the settings must be, and no run is started."""
    begun = ["--init-from", str(first.path), *command, "num_hidden_groups=2", *settings]
    assert main(["tiny", *begun, "--run", str(root / "refused")]) == 2
    assert message in capsys.readouterr().err and not (root / "refused").exists()


def test_bert_is_not_widened(command: list[str], root: Path, capsys):
    """The head for masked words reads embeddings as wide as the states, so twice the width would double the logits."""
    narrow = ["bert-tiny", *command, "steps=1"]
    assert main([*narrow, "--run", str(root / "bert")]) == 0
    assert main([*narrow, *WIDER, "--init-from", str(root / "bert"), "--run", str(root / "refused")]) == 2
    error = capsys.readouterr().err
    assert "has hidden_size" in error and "double" not in error and not (root / "refused").exists()
