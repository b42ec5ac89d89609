"""The run picker names the group of each run, and loses none."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.pickers import group_runs
from embryo_core.types import Run


def test_runs_are_grouped_root_by_root(tiny_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those of the first root come first, and with them a run that is linked from elsewhere."""
    roots = tmp_path / "own", tmp_path / "demo"
    monkeypatch.setenv("EMBRYO_DATA", ":".join(map(str, roots)))

    def run(root: Path, name: str, **config: object) -> Run:
        return replace(tiny_run, name=name, path=root / "runs" / name, config=tiny_run.config | config)

    own = [run(roots[0], f"own{seed}", seed=seed) for seed in (1, 2)]
    linked = run(tmp_path / "elsewhere", "linked", num_hidden_layers=9)
    demo = [run(roots[1], "base"), run(roots[1], "dropout", hidden_dropout_prob=0.5)]
    labels = group_runs([*own, *demo, linked])
    assert [*labels] == ["linked", "own1", "own2", "base", "dropout"]
    assert labels["linked"] == "linked" and "2 seeds" in labels["own1"] and "seeds" not in labels["base"]
    assert all(label.startswith(name) for name, label in labels.items())
