"""Findings with known random values, and helpers to store them for a run without checkpoints."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core.measurements import (
    AttentionMap,
    ClozeAnswer,
    Findings,
    ListedWordSurprisal,
    PairScore,
    ProbeCurve,
    Score,
    SpanAnswer,
    StateProducts,
    TaskAnswer,
    TaskScore,
    TuningPoint,
    VariantAnswer,
    WordCount,
)
from embryo_core.results.parquet_files import write_checksum
from embryo_core.types import Run

STEPS = (0, 1, 2, 8)
TAGS = ("DT", "NN", "VBD")
BANDS = ("rank 50-99", None, "rank 300-349", None)
TUNED = "finetuning:rte:1"
METRICS = ("mask_prediction", "world_knowledge", "attention", "edge_probing", TUNED)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run without checkpoints and without results."""
    return make_run(tmp_path)


def make_run(root: Path) -> Run:
    """Return a run below this root that exists in memory only."""
    return Run("egg", root / "runs" / "egg", "albert", "mlm+sop", {}, "0" * 64, {}, STEPS, "test")


def find(metric: str, step: int, seed: int = 0) -> Findings:
    """Return findings that depend only on the arguments, with rows in a random order."""
    rng = np.random.default_rng([seed, step, *metric.encode()])
    findings = Findings()
    if metric == "attention":
        weights = rng.dirichlet(np.ones(4), size=(2, 3, 4))
        maps = [AttentionMap(i + 1, j + 1, weights[i, j], 7) for i in range(2) for j in range(3)]
        findings.attention = [maps[i] for i in rng.permutation(len(maps))]
        return findings
    if metric == TUNED:
        return _tuned(rng)
    groups = [("all", None), ("noun", None), (None, 1), (None, 2)]
    scores = [Score(metric, float(rng.random()), int(rng.integers(1, 99)), *group) for group in groups]
    findings.scores = [scores[i] for i in rng.permutation(len(scores))]
    if metric == "edge_probing":
        findings.probes = [
            ProbeCurve(("pos", "coref")[i % 2], i % 3, i % 4 > 1, i, float(rng.random()), 0.5)
            for i in rng.permutation(12)
        ]
    elif metric == "world_knowledge":
        findings.scores.append(Score("world_knowledge_coverage", 0.5, 10, "P19"))
        findings.cloze = [
            ClozeAnswer(f"f{i}", f"P{i % 3}", f"s{i}", "Rome", int(rng.integers(1, 99)), 0.25, "the", 0.5)
            for i in rng.permutation(10)
        ]
        findings.pairs = [
            PairScore(f"blimp/a/p{i % 3}", int(i), -float(rng.random()), -0.5) for i in rng.permutation(9)
        ]
        findings.surprisals = [
            ListedWordSurprisal(f"w{i}", 2, float(rng.random()), 9.0, np.ones(2, "<f2").tobytes(), 1.5)
            for i in rng.permutation(9)
        ]
        findings.variants = [
            VariantAnswer(f"f{i}", f"P{i % 3}", "negated", "[X] not [Y] .", int(rng.integers(1, 9)), "the")
            for i in rng.permutation(9)
        ]
        findings.grams = [
            StateProducts(i, 4, rng.normal(size=6).astype("<f2").tobytes()) for i in (rng.permutation(3)).tolist()
        ]
    else:
        findings.words = [
            WordCount(metric, TAGS[i % 3], f"w{i}", 3, int(rng.integers(0, 4)), BANDS[i % 4])
            for i in rng.permutation(12)
        ]
    return findings


def _tuned(rng: np.random.Generator) -> Findings:
    """Return rows of the four tables of fine-tuning, in a random order."""
    tasks = [("rte", "squad")[i % 2] for i in rng.permutation(6)]
    return Findings(
        task_scores=[TaskScore(task, i, "model", "f1", float(rng.random()), 7) for i, task in enumerate(tasks)],
        tuning=[TuningPoint(task, 1, i + 1, float(rng.random()), -0.5) for i, task in enumerate(tasks)],
        answers=[TaskAnswer(task, 1, i, 0.0, float(rng.integers(0, 2))) for i, task in enumerate(tasks)],
        spans=[SpanAnswer(task, 1, f"q{i}", i, i + 3, 0.0, 0.5) for i, task in enumerate(tasks)],
    )


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder, by path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def lose(path: Path, damage: str) -> None:
    """Damage a summary: "gone" deletes the file and its checksum, "cut" keeps its first half."""
    if damage == "gone":
        path.unlink()
        path.with_name(path.name + ".sha256").unlink()
    else:
        path.write_bytes(truncated(path.read_bytes()))


def truncated(content: bytes) -> bytes:
    """Return the first half of a file."""
    return content[: len(content) // 2]


def put(path: Path, rows: pa.Table, **options: Any) -> None:
    """Write rows to the file of a table with the correct checksum, as an attacker might; `options` go to pyarrow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.replace_schema_metadata(None), path, **options)
    write_checksum(path)
