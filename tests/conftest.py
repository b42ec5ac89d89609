"""Fixtures shared by all tests: a tiny run with three checkpoints, the same run with results, and the shared data."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(_name, "1")  # set before torch and TensorFlow are imported: the tests run side by side
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.types import Run, Sources

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = REPOSITORY / "data" / "sample"
STEPS = (0, 8, 16)
VOCABULARY_SIZE = 700
TINY = {"layers": 2, "hidden": 32, "heads": 2, "embedding": 16, "feed_forward": 64, "positions": 64}


@pytest.fixture(autouse=True)
def only_test_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the user's own runs: roots() is an empty folder until the test sets EMBRYO_DATA itself."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path_factory.getbasetemp() / "no-data"))


@pytest.fixture(scope="session")
def sample() -> Path:
    """data/sample: text.txt, treebank.conllu, and lama/ with relations.jsonl and TREx/."""
    return SAMPLE


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real corpora, treebank and facts beside the repository, where they are at hand."""
    path = REPOSITORY.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the real data is not beside the repository")
    return path


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run "tiny" with checkpoints at steps 0, 8 and 16 and no results; to be read only (see `own_run`)."""
    return build_run(tmp_path_factory.mktemp("tiny") / "runs" / "tiny")


@pytest.fixture
def own_run(tiny_run: Run, tmp_path: Path) -> Run:
    """A copy of the tiny run under `tmp_path`, which the test may change and evaluate."""
    return copy_run(tiny_run, tmp_path)


@pytest.fixture(scope="session")
def tiny_results(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tiny run in a root of its own with all metrics evaluated on data/sample; to be read only."""
    from embryo_core.evaluate import evaluate

    run = copy_run(tiny_run, tmp_path_factory.mktemp("results"))
    evaluate(run, Sources(treebank=SAMPLE / "treebank.conllu", lama=SAMPLE / "lama"))
    return run


def copy_run(run: Run, root: Path) -> Run:
    """Copy a run into another data root."""
    return runs.read_run(Path(shutil.copytree(run.path, root / "runs" / run.name)))


def build_run(path: Path) -> Run:
    """Write a run as pretraining would, with random weights and the word frequencies of the sample in the output bias.

    The weight of the bias grows with the step, so that later checkpoints predict frequent words and some scores differ
    from zero.
    """
    from pretrain.tokenizer import load, train_tokenizer

    texts = (SAMPLE / "text.txt").read_text(encoding="utf-8").splitlines()
    train_tokenizer(texts, VOCABULARY_SIZE, path / "tokenizer")
    counts = Counter(piece for encoding in load(path / "tokenizer").encode_batch(texts) for piece in encoding.ids)
    frequencies = np.array([counts[piece] for piece in range(VOCABULARY_SIZE)], np.float32)
    frequencies[:5] = 0  # special tokens
    run = Run(
        name=path.name,
        path=path,
        family="albert",
        objective="masked words and sentence order",
        config={"preset": "tests", "seed": 0, **TINY},
        tokenizer_sha256=runs.sha256(path / "tokenizer" / "tokenizer.json"),
        corpus={
            "sources": ["data/sample/text.txt"],
            "documents": texts.count("") + 1,
            "tokens": int(frequencies.sum()),
        },
        planned_steps=STEPS,
        code_version="tests",
    )
    runs.write_run(run)
    _write_log(run)
    for step in STEPS:
        _write_checkpoint(run, step, frequencies)
    return run


def _write_checkpoint(run: Run, step: int, frequencies: np.ndarray) -> None:
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining

    torch.manual_seed(step)
    configuration = AlbertConfig(
        vocab_size=VOCABULARY_SIZE,
        embedding_size=TINY["embedding"],
        hidden_size=TINY["hidden"],
        num_hidden_layers=TINY["layers"],
        num_attention_heads=TINY["heads"],
        intermediate_size=TINY["feed_forward"],
        max_position_embeddings=TINY["positions"],
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    model = AlbertForPreTraining(configuration)
    bias = torch.from_numpy(step / max(STEPS) * np.log1p(frequencies))
    model.predictions.bias.data.copy_(bias)
    model.predictions.decoder.bias.data.copy_(bias)
    folder = run.path / "checkpoints" / f"step{step}"
    model.save_pretrained(folder)
    runs.write_manifest(folder, step, sequences=4 * step, tokens=4 * step * TINY["positions"])


def _write_log(run: Run) -> None:
    rows = []
    for step in range(0, max(STEPS) + 1, 4):
        row = {
            "step": step,
            "loss": 7.1 - step / 10,
            "masked_lm_loss": 6.4 - step / 10,
            "masked_lm_accuracy": step / 100,
            "sentence_order_loss": 0.7,
            "sentence_order_accuracy": 0.5 + step / 100,
            "learning_rate": 0.001,
            "tokens": 4 * step * TINY["positions"],
            "tokens_per_second": 1000.0,
        }
        if step:
            rows.append({"split": "train", **row})
        if step in STEPS:
            rows.append({"split": "heldout", **row, "n_masked": 200, "n_sequences": 20})
    (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
