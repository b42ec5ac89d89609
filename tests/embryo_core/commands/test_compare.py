"""Tests of `compare`: it prints designs, orders of acquisition and their agreement, as text or as JSON."""

import json
import shutil
from pathlib import Path

import pytest

from embryo_core import comparison, runs
from embryo_core.cli import main
from embryo_core.types import Run


@pytest.fixture
def two_runs(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Return the tiny run with its results, and a copy "twin" with another seed."""
    for name in ("tiny", "twin"):
        shutil.copytree(tiny_results.path, tmp_path / "runs" / name)
        shutil.copytree(tiny_results.results, tmp_path / "results" / name)
    card = tmp_path / "runs" / "twin" / "run.json"
    card.write_text(
        json.dumps((content := json.loads(card.read_text())) | {"config": content["config"] | {"seed": 77}})
    )
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    return [runs.open_run(name) for name in ("tiny", "twin")]


def test_json_equals_the_library_results(two_runs: list[Run], capsys: pytest.CaptureFixture) -> None:
    """Designs, onsets and agreements are compared, and the rows that differ."""
    assert main(["compare", "tiny", "twin", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["row"] for row in printed["design"] if row["differs"]] == ["seed"]
    order = comparison.acquisitions(two_runs, "mask_prediction", comparison.PARTS_OF_SPEECH)
    assert [(row["run"], row["group"]) for row in printed["acquisition"]] == [*zip(order["run"], order["group"])]
    pairs = [("tiny", "twin"), ("tiny", comparison.PAPER), ("twin", comparison.PAPER)]
    assert [(row["first"], row["second"]) for row in printed["agreement"]] == pairs


def test_text_marks_only_differing_rows(two_runs: list[Run], capsys: pytest.CaptureFixture) -> None:
    """The two runs differ only in their seed."""
    assert main(["compare", "tiny", "twin", "--metric", "token_reconstruction"]) == 0
    lines = capsys.readouterr().out.splitlines()
    _, *marked = [line.split()[1] for line in lines if line.startswith("≠")]
    assert marked == ["seed"]  # below the names of the columns
    assert max(map(len, lines)) <= 100


def test_unrecorded_setting_is_a_dash(two_runs: list[Run], capsys: pytest.CaptureFixture) -> None:
    """The masked share is missing from the run card."""
    card = two_runs[1].path / "run.json"
    content = json.loads(card.read_text())
    del content["config"]["masked_share"]
    card.write_text(json.dumps(content))
    assert main(["compare", "tiny", "twin"]) == 0
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if "masked share" in line]
    assert row == ["≠", "masked", "share", str(two_runs[0].config["masked_share"]), "-"]


def test_repeated_run_is_compared_once(two_runs: list[Run], capsys: pytest.CaptureFixture) -> None:
    assert main(["compare", "tiny", "tiny"]) == 0
    twice = capsys.readouterr().out
    assert main(["compare", "tiny"]) == 0
    assert capsys.readouterr().out == twice


def test_missing_results_are_printed_plainly(two_runs: list[Run], capsys: pytest.CaptureFixture) -> None:
    """Unknown numbers are not printed as NA, and an empty table is replaced by the command to run."""
    assert main(["compare", "tiny", "twin", "--order", "paper"]) == 0
    printed = capsys.readouterr().out
    assert not any(word in printed for word in ("<NA>", "None", "nan", "Empty DataFrame"))
    for run in two_runs:
        shutil.rmtree(run.results)
    assert main(["compare", "tiny"]) == 0
    printed = capsys.readouterr().out
    assert "Empty" not in printed and "\nagreement\nnothing to compare: python -m embryo_core evaluate RUN" in printed
