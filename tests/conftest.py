"""Fixtures for all tests: a tiny run with three checkpoints, the same run with results, and the shared data."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(_name, "1")  # set before torch and TensorFlow are imported: tests run in parallel
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# XLA compiles each update once per session: the workers, and the processes that tests start, inherit this folder.
_compiled = tempfile.TemporaryDirectory(prefix="embryo-compiled-")
os.environ.setdefault("TF_XLA_FLAGS", f"--tf_xla_persistent_cache_directory={_compiled.name}")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", _compiled.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.types import Checkpoint, Run

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = REPOSITORY / "data" / "sample"
STEPS = (0, 8, 16)
SAMPLE_DATA = {"treebank": SAMPLE / "treebank.conllu"}
SAMPLE_DATA |= {name: SAMPLE / name for name in ("lama", "probing", "ngrams", "pairs")}
SAMPLE_DATA |= {"lama-variants": SAMPLE / "lama_variants"}
SAMPLE_DATA |= {"words": SAMPLE / "words.csv", "text": SAMPLE / "treebank.conllu"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort files with slow tests first, so that no worker is left alone with one of them at the end.

    Every fourth file is a browser test: it waits for pages and leaves the processor to the other workers.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    files = dict.fromkeys(item.path for item in items)
    waiting = [file for file in files if file.parent == REPOSITORY / "tests" / "browser"]
    computing = [file for file in files if file not in waiting]
    index = {file: 3 * i for i, file in enumerate(waiting)} | {file: i for i, file in enumerate(computing)}
    items.sort(key=lambda item: index[item.path])


@pytest.fixture(autouse=True)
def only_test_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the user's own runs and settings: roots() is an empty folder until a test sets EMBRYO_DATA."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path_factory.getbasetemp() / "no-data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "settings"))


@pytest.fixture(scope="session")
def sample() -> Path:
    """Return data/sample, which has text.txt, treebank.conllu, and lama/ with relations.jsonl and TREx/."""
    return SAMPLE


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the real corpora, treebank and facts next to the repository, if they are there."""
    path = REPOSITORY.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the real data is not beside the repository")
    return path


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Any]], Path]:
    """Return shared(name, make): a folder that make(folder) writes once for all workers of the session."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name: str, make: Callable[[Path], Any]) -> Path:
        with runs.locked(root / f"{name}.lock"):
            if not (root / name).exists():
                with runs.replacing(root / name) as unfinished:
                    make(unfinished)
        return root / name

    return made


@pytest.fixture(scope="session")
def tiny_run(shared: Callable[..., Path]) -> Run:
    """Return a run "tiny" with checkpoints at steps 0, 8 and 16 and no results; tests only read it (see `own_run`)."""
    return runs.read_run(shared("tiny", lambda root: build_run(root / "runs" / "tiny")) / "runs" / "tiny")


@pytest.fixture
def own_run(tiny_run: Run, tmp_path: Path) -> Run:
    """Return a copy of the tiny run under `tmp_path`, which the test may change and evaluate."""
    return copy_run(tiny_run, tmp_path)


@pytest.fixture(scope="session")
def tiny_results(tiny_run: Run, shared: Callable[..., Path]) -> Run:
    """Return the tiny run in another root, evaluated on data/sample and fine-tuned; tests only read it."""
    from embryo_core.evaluation import evaluate
    from tests.tuned import store_tuning

    def make(root: Path) -> None:
        run = copy_run(tiny_run, root)
        store_tuning(run, "rte")
        with pytest.MonkeyPatch.context() as patch:
            shorten_probing(patch)
            evaluate(run, SAMPLE_DATA)

    return runs.read_run(shared("results", make) / "runs" / tiny_run.name)


@pytest.fixture(scope="session")
def tiny_site(tiny_results: Run, shared: Callable[..., Path]) -> Path:
    """Return the site of the tiny run, in a folder whose name has blanks, "#" and "é"; tests only read it."""
    from embryo_core.site import write_site

    name = "a site #1 – é"

    def make(root: Path) -> None:
        write_site([tiny_results], root / name, "A site & more", "**Note** of <b>mine</b>")

    return shared("site", make) / name


@pytest.fixture
def short_probing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the training of probes, for tests that do not depend on how good the probes are."""
    shorten_probing(monkeypatch)


def shorten_probing(patch: pytest.MonkeyPatch) -> None:
    """Train each probe on 20 batches instead of 1,000."""
    from embryo_core.metrics.probing.training import PROTOCOLS

    for name, protocol in PROTOCOLS.items():
        patch.setitem(PROTOCOLS, name, replace(protocol, iterations=20, min_epochs=1))


def checkpoint_at(run: Run, step: int) -> Checkpoint:
    """Return a checkpoint to write results at, whether or not the run has one at this step."""
    return Checkpoint(run, step, run.path / "checkpoints" / f"step{step}", sequences=0, tokens=0, manifest_mtime=0)


def copy_run(run: Run, root: Path) -> Run:
    """Copy a run into another data root."""
    return runs.read_run(Path(shutil.copytree(run.path, root / "runs" / run.name)))


def lengthen(run: Run, steps: Iterable[int]) -> None:
    """Add checkpoints at these steps to a tiny run, four with the weights of each original checkpoint in turn."""
    own = [runs.checkpoint(run, step).path for step in STEPS]
    for i, step in enumerate(steps):
        source = own[i // 4 % len(own)]
        folder = source.with_name(f"step{step}")
        folder.mkdir()
        for file in source.iterdir():
            if file.name != "manifest.json":
                os.link(file, folder / file.name)
        runs.write_manifest(folder, step, step, step)


def build_run(path: Path) -> Run:
    """Write a run as pretraining would, with random weights and the word frequencies of the sample in the output bias.

    The weight of the bias grows with the step, so that later checkpoints predict frequent words and some scores differ
    from zero.
    """
    from pretrain.batches import prepare_data
    from pretrain.families import FAMILIES, preset

    config = replace(preset("tiny"), vocab_size=700, initializer_range=0.3, steps=STEPS[-1], save_every=STEPS[1])
    data = prepare_data(config, [str(SAMPLE / "text.txt")], [], path.parents[1] / "cache")
    run = Run(
        name=path.name,
        path=path,
        family="albert",
        objective="masked language model + sentence order",
        config=asdict(config),
        tokenizer_sha256=runs.sha256(data.corpus.tokenizer_folder / "tokenizer.json"),
        corpus=data.corpus.fingerprint,
        planned_steps=STEPS,
        code_version="0.1.0",
    )
    runs.write_run(run)
    data.copy_to(run)
    runs.write_run(run)  # without the number of counted words, since tests write other frequencies
    _write_log(run)
    frequencies = np.bincount(data.corpus.train.tokens, minlength=config.vocab_size)
    architecture = FAMILIES["albert"].huggingface_config(config)
    for step in STEPS:
        _write_checkpoint(run, step, architecture, step / STEPS[-1] * np.log1p(frequencies))
    return run


def _write_checkpoint(run: Run, step: int, architecture: dict[str, Any], bias: np.ndarray) -> None:
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining

    torch.manual_seed(step)
    model = AlbertForPreTraining(AlbertConfig(**architecture))
    model.predictions.bias.data.copy_(torch.from_numpy(bias))
    folder = run.path / "checkpoints" / f"step{step}"
    model.save_pretrained(folder)
    sequences = step * run.config["batch_size"]
    runs.write_manifest(folder, step, sequences, tokens=sequences * run.config["sequence_length"])


def _write_log(run: Run) -> None:
    rows = []
    for step in range(0, STEPS[-1] + 1, 4):
        row = {
            "step": step,
            "loss": 7.1 - step / 10,
            "masked_lm_loss": 6.4 - step / 10,
            "masked_lm_accuracy": step / 100,
            "sentence_order_loss": 0.7,
            "sentence_order_accuracy": 0.5 + step / 100,
            "learning_rate": 0.001,
            "tokens": step * run.config["batch_size"] * run.config["sequence_length"],
            "tokens_per_second": 1000.0,
        }
        if step:
            rows.append({"split": "train", **row})
        if step in STEPS:
            rows.append({"split": "heldout", **row, "n_masked": 200, "n_sequences": 20})
    (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
