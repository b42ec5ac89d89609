"""Measures by position are read as they were noted; what has another form is passed over."""

import json
from pathlib import Path
from typing import Any

import pytest

from embryo_core import runs
from embryo_core.types import Run


def group(first: int, accuracy: float, n: int) -> dict[str, Any]:
    """Masked pieces at 64 positions."""
    return {"first": first, "last": first + 63, "accuracy": accuracy, "n": n}


def measure(length: int, masking: str, *groups: dict[str, Any]) -> dict[str, Any]:
    """A measure as pretraining writes it."""
    return {"length": length, "masking": masking, "loss": 5.0, "accuracy": 0.2, "n": 9, "positions": [*groups]}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run without a log."""
    return Run("own", tmp_path, "albert", "mlm", {}, "0" * 64, {}, (0,), "tests")


def write(run: Run, *rows: dict[str, Any]) -> None:
    """Write the log of these rows."""
    (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_each_group_of_positions_is_a_row(run: Run):
    """In the order of steps; training rows have none."""
    short, long = (
        measure(64, "training", group(0, 0.25, 8)),
        measure(128, "training", group(0, 0.5, 4), group(64, 0, 3)),
    )
    held = {"split": "heldout", "tokens": 5}
    write(
        run,
        held | {"step": 8, "measures": [short, long]},
        held | {"step": 2, "measures": [short]},
        {"split": "train", "step": 4, "loss": 6.0},
    )
    assert runs.read_measures(run) == [
        (2, 64, "training", 0, 63, 0.25, 8, 8),
        (8, 64, "training", 0, 63, 0.25, 8, 8),
        (8, 128, "training", 0, 63, 0.5, 4, 7),
        (8, 128, "training", 64, 127, 0.0, 3, 7),
    ]


@pytest.mark.parametrize(
    "measures",
    [
        None,
        7,
        [],
        ["text"],
        [{"length": 64, "masking": "training"}],
        [measure(64, "training", group(0, 1.5, 8))],
        [measure(64, "training", group(0, 0.5, 0))],
        [measure(64, "training\n", group(0, 0.5, 8))],
        [measure(-64, "training", group(0, 0.5, 8))],
    ],
)
def test_what_has_another_form_is_passed_over(run: Run, measures: Any):
    """A row without measures, or with those of a stranger, leaves the others as they are."""
    good = {"split": "heldout", "step": 2, "measures": [measure(64, "training", group(0, 0.25, 8))]}
    write(run, {"split": "heldout", "step": 1, "measures": measures}, good)
    assert runs.read_measures(run) == [(2, 64, "training", 0, 63, 0.25, 8, 8)]


def test_without_a_log_there_are_none(run: Run):
    """Nothing was measured."""
    assert runs.read_measures(run) == []
