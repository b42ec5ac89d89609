"""Tests of training in separate processes: the loss falls, and a killed run ends as an uninterrupted one does."""

import json
import multiprocessing
import os
import random
import time
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from pretrain.__main__ import main
from tests.pretrain.conftest import log, weights


@pytest.fixture(scope="module")
def processes() -> BaseContext:
    """Return a context whose processes are forked from one that has imported Keras and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["keras", "pretrain.train"])
    return context


@pytest.fixture(scope="module", params=["tiny", "bert-tiny", "electra-tiny", "gpt2-tiny"])
def command(request: pytest.FixtureRequest, texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the arguments of 150 updates of a family's tiny preset; the run's folder is to be appended."""
    settings = ["--set", "state_every=10", "log_every=2", "warmup_steps=15"]
    if request.param != "gpt2-tiny":
        settings.append("measured_sequences=0")
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    return [request.param, *corpus, "--steps", "150", "--save", "50", *settings, "--run"]


def start(processes: BaseContext, command: list[str], run: Path) -> BaseProcess:
    """Start a process that trains the run; ALBERT is compiled anew, as it is for a user."""
    target = compile_and_train if command[0] == "tiny" else main
    process = processes.Process(target=target, args=([*command, str(run)],))
    process.start()
    return process


def compile_and_train(arguments: list[str]) -> int:
    """Train without reading the compiled programs of other processes of this session."""
    os.environ.pop("TF_XLA_FLAGS")  # TensorFlow reads it at the first update
    return main(arguments)


def train_to_end(processes: BaseContext, command: list[str], run: Path) -> None:
    """Train the run in a process to its end, and check its status."""
    process = start(processes, command, run)
    process.join()
    assert process.exitcode == 0


def kill_from_step(processes: BaseContext, command: list[str], run: Path, step: int) -> None:
    """Start the training and kill it at any point after its log has reached this step."""
    process = start(processes, command, run)
    while process.is_alive() and last_step(run) < step:
        time.sleep(0.01)
    process.kill()
    process.join()


def last_step(run: Path) -> int:
    """Return the highest step of a log that another process is writing, 0 if it has none yet."""
    text = (run / "log.jsonl").read_text() if (run / "log.jsonl").is_file() else ""
    return max([json.loads(line)["step"] for line in text.splitlines() if line.endswith("}")], default=0)


@pytest.fixture(scope="module")
def uninterrupted_run(processes: BaseContext, command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the run without interruption; return its folder."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    train_to_end(processes, command, folder)
    return folder


@pytest.mark.slow
def test_killed_run_ends_with_same_weights(
    processes: BaseContext, command: list[str], uninterrupted_run: Path, tmp_path: Path
):
    """After kill -9 and the same command, checkpoints and log are those of an uninterrupted run (ALBERT: killed twice).

    The families add next sentences and dropout in two phases of length (BERT), and samples (ELECTRA).
    """
    run = tmp_path / "run"
    chance = random.Random(8)
    stretches = [(1, 70), (80, 140)] if command[0] == "tiny" else [(25, 140)]
    for step in (chance.randint(*stretch) for stretch in stretches):
        kill_from_step(processes, command, run, step)
    train_to_end(processes, command, run)
    assert weights(run) == weights(uninterrupted_run) and len(list(run.glob("checkpoints/step*"))) == 10
    assert log(run) == log(uninterrupted_run)


@pytest.mark.slow
def test_loss_falls_on_sample_text(uninterrupted_run: Path):
    """It falls from that of a uniform guess over 500 pieces (log 500 = 6.2 nats), on held-out text as well."""
    rows = log(uninterrupted_run)
    main = "masked_lm_loss" if "masked_lm_loss" in rows[0] else "next_token_loss"
    train_losses = [row[main] for row in rows if row["split"] == "train"]
    heldout_losses = [row[main] for row in rows if row["split"] == "heldout"]
    assert train_losses[0] == pytest.approx(np.log(500), abs=0.1)
    assert np.mean(train_losses[-10:]) < 5.9 and heldout_losses[-1] < heldout_losses[0] - 0.3
