"""Tests of random damage to states, logs and corpora: a resume uses what is intact or reports it (see tests/fuzz)."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from pretrain.batches import Data
from pretrain.corpus import open_corpus
from pretrain.log import Log
from pretrain.model import PretrainingModel
from pretrain.state import Progress, latest_state, save_state
from tests.fuzz.conftest import DAMAGES, OF_A_KIND, attempt, watched
from tests.fuzz.damage import damage

LARGE = 10**8  # bytes
FLIPS = 8  # most bits that one damage flips


@pytest.fixture(scope="module")
def run(model: PretrainingModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log and two states of a run; return its folder."""
    path = tmp_path_factory.mktemp("states") / "runs" / "run"
    for step in (10, 20):
        save_state(model, path, Progress(step, 8 * step, 200 * step))
    log = Log(path / "log.jsonl", after=0)
    for step in range(1, 21):
        log.add("train", Progress(step, 8 * step, 200 * step), {"loss": 1 / step})
    return path


def variables(state: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a state."""
    with np.load(state) as archive:
        return {name: archive[name] for name in archive.files}


def test_damaged_run_is_resumed_from_intact_files(run: Path, tmp_path: Path):
    """The state found is unchanged, and the log keeps only rows up to the given step, save for flipped bits."""
    expected = {path.name: variables(path) for path in (run / "state").iterdir()}
    rows = (run / "log.jsonl").read_bytes().splitlines()
    for seed in OF_A_KIND:
        rng, folder = random.Random(seed), tmp_path / str(seed) / "runs" / "run"
        shutil.copytree(run, folder)
        for _ in range(DAMAGES):
            damage([folder], tmp_path / "outside", rng)
        with watched(tmp_path / "outside"):
            state = attempt(latest_state, folder)
        if state is not None:
            actual = variables(state)
            assert all(np.array_equal(actual[name], array) for name, array in expected[state.name].items())
            if attempt(Log, folder / "log.jsonl", 10):
                contents = (folder / "log.jsonl").read_bytes().splitlines()
                assert all(json.loads(line)["step"] <= 10 for line in contents)
                # A log has no checksum: a flipped bit that leaves a valid row goes unnoticed.
                assert len(set(contents) - set(rows[:10])) <= DAMAGES * FLIPS
        shutil.rmtree(folder, ignore_errors=True)


def test_damaged_corpus_is_reported(data: Data, tmp_path: Path):
    """After any damage to the cache, the corpus is unchanged, or opening it raises an error of this project."""
    for seed in OF_A_KIND:
        rng, folder = random.Random(seed), tmp_path / str(seed) / "cache" / "corpus"
        shutil.copytree(data.corpus.folder, folder)
        damage([folder], tmp_path / "outside", rng)
        if sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > LARGE:  # would be slow
            continue
        with watched(tmp_path / "outside"):
            corpus = attempt(open_corpus, folder)
        if corpus is not None:
            assert corpus.fingerprint == data.corpus.fingerprint
            assert np.array_equal(corpus.train.tokens, data.corpus.train.tokens)
            assert np.array_equal(corpus.train.sentences, data.corpus.train.sentences)
        shutil.rmtree(folder, ignore_errors=True)
