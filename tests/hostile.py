"""An untrusted run, whose texts would become images, links, icons, formulas and tags if rendered as markup."""

import re
import shutil
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.measurements import Findings, Score, TaskScore
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.conftest import STEPS, checkpoint_at

NAME = r"__b__ ![x](\\127.0.0.1:9\x.png) <img src=a> $x$ :material_home: www.evil.example a@evil.example"
NOTE = (
    "__b__ ![x](http://127.0.0.1:9/x.png) <img src=a> $x$ :material/home: https://evil.example *a* [b](//evil.example)"
)


def make_hostile(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Copy a run with its results to another data root, which EMBRYO_DATA then names, and add hostile texts."""
    monkeypatch.setenv("EMBRYO_DATA", str(root))
    copy = runs.read_run(Path(shutil.copytree(run.path, root / "runs" / NAME)))
    shutil.copytree(run.results, copy.results)
    for step in STEPS:
        scores = [Score("mask_prediction", step / 100, 10, group) for group in (NOTE, "noun", "verb")]
        results.write(checkpoint_at(copy, step), "mask_prediction", Findings(scores=scores))
        tuned = [TaskScore(NOTE, 1, predictor, "accuracy", step / 100, 10) for predictor in ("model", "majority")]
        results.write(checkpoint_at(copy, step), "finetuning:own:1", Findings(task_scores=tuned))
    results.write_examples(copy, [ExampleQuestion(f"{NOTE} [MASK] .", NOTE), ExampleQuestion("A [MASK] .", "cat", 8)])
    sources = copy.results / "sources.json"
    text = sources.read_text(encoding="utf-8")
    sources.write_text(re.sub(r'("note": ")[^"]*"', lambda match: f'{match[1]}{NOTE}"', text), encoding="utf-8")
    return copy
