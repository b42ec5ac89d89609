"""Fixtures: small task folders with sentences of a few words, whose label depends on the first word."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

WORDS = "river house king snow bread road letter garden".split()


def write_split(folder: Path, split: str, **columns: list[Any]) -> Path:
    """Write one split of a task; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{split}.parquet")
    return folder


def sentences(n: int, seed: int) -> tuple[list[str], list[int]]:
    """Return sentences of random words and, as labels, whether the first word is "river"."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n).tolist()
    first = [WORDS[0] if label else WORDS[1] for label in labels]
    rest = [" ".join(random.choice(WORDS[2:], size=random.integers(1, 5))) for _ in range(n)]
    return [f"{word} {more}" for word, more in zip(first, rest, strict=True)], labels


def write_cola(folder: Path, n: int = 96) -> Path:
    """Write a task in CoLA's columns, which a random encoder learns in a few dozen updates."""
    for split, size, seed in (("train", n, 1), ("validation", 64, 2)):
        texts, labels = sentences(size, seed)
        write_split(folder, split, sentence=texts, label=labels, idx=list(range(size)))
    return folder


def write_pairs(folder: Path, labels: int, validation: str = "validation", value: bool = False, n: int = 40) -> Path:
    """Write a task of two texts in the columns of MNLI and RTE, with this number of labels or values."""
    for split, size, seed in (("train", n, 3), (validation, 20, 4)):
        texts, _ = sentences(size, seed)
        gold = [i % labels for i in range(size)]
        write_split(
            folder,
            split,
            premise=texts,
            hypothesis=texts[::-1],
            sentence1=texts,
            sentence2=texts[::-1],
            label=[float(gold_answer) for gold_answer in gold] if value else gold,
        )
    return folder


def write_squad(folder: Path, unanswerable: bool = False) -> Path:
    """Write questions about a short paragraph and about one that needs several windows; return the folder."""
    short = "The king built a house by the river . Snow fell on the garden ."
    long = " ".join([short] * 12)
    rows = []
    for i, (context, answer) in enumerate([(short, "house"), (short, "the garden"), (long, "king"), (long, "snow")]):
        start = context.lower().rfind(answer)
        answers = {"text": [context[start : start + len(answer)]], "answer_start": [start]}
        rows.append({"id": f"q{i}", "context": context, "question": f"What is {answer} ?", "answers": answers})
    if unanswerable:
        rows[1]["answers"] = {"text": [], "answer_start": []}
    for split in ("train", "validation"):
        folder.mkdir(parents=True, exist_ok=True)
        kind = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
        columns = {name: [row[name] for row in rows] for name in ("id", "context", "question")}
        table = pa.table({**columns, "answers": pa.array([row["answers"] for row in rows], kind)})
        pq.write_table(table, folder / f"{split}.parquet")
    return folder


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remember the data folders of a test's fine-tunings in that test only."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


@pytest.fixture
def cola(tmp_path: Path) -> Path:
    """Return the folder of a small CoLA."""
    return write_cola(tmp_path / "glue" / "cola")
