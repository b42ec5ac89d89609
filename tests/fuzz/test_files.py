"""Tests of randomly damaged files of a run and its results, each read by its reader."""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.engine.model import load
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.fuzz.conftest import OF_A_KIND, attempt, copy_as_bad, watched
from tests.fuzz.damage import SMALL, damage_one, sign

SIGNED = 0.5  # share of damaged files whose stored hash is renewed, so that their content is read


@dataclass(frozen=True)
class File:
    """A file below the data folder, its reader, and the file that has its checksum."""

    path: str
    read: Callable[[Run], object]
    checksum: str = ""


def load_last(run: Run) -> object:
    """Load the model of step 16; return None if the step is not listed."""
    assert all(reason.isprintable() for _, reason in runs.broken_checkpoints(run))
    return [load(checkpoint) for checkpoint in runs.loadable_checkpoints(run) if checkpoint.step == 16] or None


def load_own_tokenizer(run: Run) -> object:
    """Load the tokenizer if it is that of run.json."""
    return load_tokenizer(runs.read_run(run.path))


def in_step(name: str) -> File:
    """Return a file of the last checkpoint."""
    folder = "runs/bad/checkpoints/step16"
    return File(f"{folder}/{name}", load_last, f"{folder}/manifest.json")


def table(path: str, read: Callable[[Run], object]) -> File:
    """Return a table of the results."""
    return File(f"results/bad/{path}.parquet", read, f"results/bad/{path}.parquet.sha256")


TABLES = [
    table("scores", results.read_scores),
    table("words", lambda run: results.read_words(run, "token_reconstruction")),
    table("cloze", results.read_cloze),
    table("pairs", results.read_pair_scores),
    table("surprisals", results.read_surprisals),
    table("grams", results.read_gram_matrices),
    table("attention", results.read_attention_steps),
    table("probes", results.read_probes),
    table("task_scores", results.read_task_scores),
    table("tuning", results.read_tuning),
    table("answers", lambda run: results.read_answers(run, "rte")),
    table("spans", lambda run: results.read_spans(run, "squad")),
]
KINDS = {
    "run.json": [File("runs/bad/run.json", lambda run: runs.read_run(run.path))],
    "tokenizer": [File("runs/bad/tokenizer/tokenizer.json", load_own_tokenizer, "runs/bad/run.json")],
    "log": [File("runs/bad/log.jsonl", lambda run: (runs.read_log(run), runs.damaged_lines(run)))],
    "frequencies": [File("runs/bad/frequencies.tsv", lambda run: runs.read_ranks(run.path / "frequencies.tsv"))],
    "audit": [File("runs/bad/audit.json", runs.read_audit)],
    "manifest": [File(in_step("manifest.json").path, load_last)],
    "config": [in_step("config.json")],
    "weights": [in_step("model.safetensors")],
    "sources": [File("results/bad/sources.json", results.read_sources)],
    "examples": [File("results/bad/examples.json", results.read_example_questions)],
    "tables": TABLES,
    "part": [table("parts/mask_prediction/step16/scores", results.read_scores)],
    "checksum": [File(TABLES[0].checksum, results.read_scores)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_file_is_reported_or_read_unchanged(kind: str, sound: Run, tmp_path: Path):
    """Readers raise an EmbryoError; a file with a checksum is read only if the checksum is right."""
    root, outside = tmp_path / "data", tmp_path / "outside" / "file"
    copy_as_bad(sound, root)
    whole, run = shutil.copytree(root, tmp_path / "whole"), runs.read_run(root / "runs" / "bad")
    outside.parent.mkdir()
    for seed in OF_A_KIND:
        rng, file = random.Random(seed), KINDS[kind][seed % len(KINDS[kind])]
        path, checksum = root / file.path, root / file.checksum
        shutil.copy(path, outside)
        damage_one(path, outside, rng)
        if checksum.suffix == ".json" and rng.random() < SIGNED:
            sign(run)
        with watched(outside.parent):
            content = attempt(file.read, run)
        if content is not None and file.checksum:
            assert path.stat().st_size <= SMALL and runs.sha256(path) in checksum.read_text(), seed
        for changed in {path, checksum} - {root}:
            restore(changed, whole / changed.relative_to(root))


@pytest.mark.parametrize("kind", KINDS)
def test_sound_file_is_read(kind: str, sound: Run):
    """This shows that the seeds damage files which were readable before."""
    for file in KINDS[kind]:
        content = file.read(sound)
        assert content is not None and len(content if hasattr(content, "__len__") else [content])


def restore(path: Path, whole: Path) -> None:
    """Restore a file from its sound copy."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    shutil.copy(whole, path)
