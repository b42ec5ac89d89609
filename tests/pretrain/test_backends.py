"""Tests of Keras's other backends: JAX and torch start from TensorFlow's initial weights and have its losses."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from embryo_core import runs
from pretrain.__main__ import main, parser
from pretrain.config import Config
from pretrain.families import FAMILIES, preset
from pretrain.settings import apply_options
from pretrain.state import Progress, save_state
from pretrain.train import build

REPOSITORY = Path(__file__).resolve().parents[2]
SETTINGS = (
    "steps=50 short_steps=0 warmup_steps=5 log_every=1 save_every=50 clip_norm=0.5 "
    "compute_dtype=float32 hidden_dropout_prob=0 attention_probs_dropout_prob=0"  # dropout differs between backends
).split()

# Updates in which ELECTRA's samples are the same on every backend. About once in ten thousand updates, one of its 40
# draws falls within the rounding of a cumulative probability (1e-6); more often once the weights have drifted apart.
SAMPLED = 10


@pytest.fixture(scope="module")
def config(request: pytest.FixtureRequest) -> Config:
    """Return the preset that the test names, with fifty updates, each with clipped gradients, and without dropout."""
    options = parser().parse_args([request.param, "--corpus", "x", "--run", "y", "--set", *SETTINGS])
    return apply_options(preset(request.param), options)


@pytest.fixture(scope="module")
def arguments(config: Config, texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the command line of this training; the run's folder is to be appended."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    (name,) = [name for name, each in FAMILIES[config.family].presets.items() if name.endswith("tiny")]
    return [name, *corpus, "--set", *SETTINGS, "--run"]


@pytest.fixture(scope="module")
def by_tensorflow(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the run with TensorFlow; return its folder."""
    folder = tmp_path_factory.mktemp("tensorflow") / "own"
    assert main([*arguments, str(folder)]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "backend"),
    [("tiny", "torch"), ("tiny", "jax"), ("electra-tiny", "jax"), ("gpt2-tiny", "torch")],
    indirect=["config"],
    scope="module",
)
def test_backend_losses_equal_those_of_tensorflow(
    backend: str, by_tensorflow: Path, arguments: list[str], config: Config, tmp_path: Path
):
    """From the same weights, the losses of every row agree to 1e-5, and the last checkpoint matches its manifest.

    ELECTRA is compared in its first updates only: later, rounding may change a sample, and the curves diverge.
    """
    folder = Path(shutil.copytree(by_tensorflow, tmp_path / "own", ignore=shutil.ignore_patterns("state")))
    save_state(build(config), folder, Progress(0, 0, 0))
    environment = os.environ | {"KERAS_BACKEND": backend}
    command = [sys.executable, "-m", "pretrain", *arguments, str(folder)]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    actual, expected = (runs.read_log(runs.read_run(path)) for path in (folder, by_tensorflow))
    assert [(row["split"], row["step"], row["tokens"]) for row in actual] == [
        (row["split"], row["step"], row["tokens"]) for row in expected
    ]
    last = SAMPLED if config.family == "electra" else config.steps
    for ours, theirs in ((a, b) for a, b in zip(actual, expected, strict=True) if a["step"] <= last):
        for name in FAMILIES[config.family].objectives(config):
            assert ours[f"{name}_loss"] == pytest.approx(theirs[f"{name}_loss"], abs=1e-5)
    first, last = (runs.checkpoint(runs.read_run(folder), step) for step in (0, 50))
    original = by_tensorflow / "checkpoints" / "step0" / "model.safetensors"
    assert runs.sha256(first.path / "model.safetensors") == runs.sha256(original)
    runs.verify(last)
