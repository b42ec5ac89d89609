"""`compare` prints the designs of runs, their orders of acquisition, and the agreement of these, as text or as JSON."""

import json
import shutil
from pathlib import Path

import pytest

from embryo_core import compare, runs
from embryo_core.cli import main
from embryo_core.types import Run


@pytest.fixture
def two(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Return the tiny run with its results, and a copy "twin" with another seed."""
    for name in ("tiny", "twin"):
        shutil.copytree(tiny_results.path, tmp_path / "runs" / name)
        shutil.copytree(tiny_results.results, tmp_path / "results" / name)
    card = tmp_path / "runs" / "twin" / "run.json"
    card.write_text(json.dumps((found := json.loads(card.read_text())) | {"config": found["config"] | {"seed": 77}}))
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    return [runs.open_run(name) for name in ("tiny", "twin")]


def test_json_holds_what_the_library_computes(two: list[Run], capsys: pytest.CaptureFixture) -> None:
    """Designs, onsets and agreements, and which rows differ."""
    assert main(["compare", "tiny", "twin", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["row"] for row in printed["design"] if row["differs"]] == ["seed"]
    order = compare.acquisitions(two, "mask_prediction", compare.PARTS_OF_SPEECH)
    assert [(row["run"], row["group"]) for row in printed["acquisition"]] == [*zip(order["run"], order["group"])]
    pairs = [("tiny", "twin"), ("tiny", compare.PAPER), ("twin", compare.PAPER)]
    assert [(row["first"], row["second"]) for row in printed["agreement"]] == pairs


def test_text_marks_what_differs(two: list[Run], capsys: pytest.CaptureFixture) -> None:
    """The seed, and no other row."""
    assert main(["compare", "tiny", "twin", "--metric", "token_reconstruction"]) == 0
    lines = capsys.readouterr().out.splitlines()
    _, *marked = [line.split()[1] for line in lines if line.startswith("≠")]
    assert marked == ["seed"]  # below the names of the columns
    assert max(map(len, lines)) <= 100


def test_what_a_run_does_not_record_is_a_dash(two: list[Run], capsys: pytest.CaptureFixture) -> None:
    """Such as the masked share of a run whose card has none."""
    card = two[1].path / "run.json"
    found = json.loads(card.read_text())
    del found["config"]["masked_share"]
    card.write_text(json.dumps(found))
    assert main(["compare", "tiny", "twin"]) == 0
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if "masked share" in line]
    assert row == ["≠", "masked", "share", str(two[0].config["masked_share"]), "-"]


def test_a_run_named_twice_is_compared_once(two: list[Run], capsys: pytest.CaptureFixture) -> None:
    """As if it were named once."""
    assert main(["compare", "tiny", "tiny"]) == 0
    twice = capsys.readouterr().out
    assert main(["compare", "tiny"]) == 0
    assert capsys.readouterr().out == twice


def test_what_was_not_computed_is_said(two: list[Run], capsys: pytest.CaptureFixture) -> None:
    """No table without rows, and a dash where an onset or an agreement is not known; numbers are as they were."""
    assert main(["compare", "tiny", "twin", "--order", "paper"]) == 0
    printed = capsys.readouterr().out
    assert not any(word in printed for word in ("<NA>", "None", "nan", "Empty DataFrame"))
    for run in two:
        shutil.rmtree(run.results)
    assert main(["compare", "tiny"]) == 0
    printed = capsys.readouterr().out
    assert "Empty" not in printed and "\nagreement\nnothing to compare: python -m embryo_core evaluate RUN" in printed
