"""A run with results has a verdict on every finding; one without is told what to run."""

import json

from embryo_core.cli import main
from embryo_core.findings import FINDINGS, judge
from embryo_core.types import Run


def test_every_finding_is_judged(tiny_results: Run):
    """In the order of FINDINGS, each with a sentence for what cannot be said, and numbers for the others."""
    judgements = judge(tiny_results)
    assert [judgement.finding for judgement in judgements] == list(FINDINGS)
    for judgement in judgements:
        assert bool(judgement.comparisons) == (judgement.verdict != "cannot be said")
        assert all(one.low <= one.value <= one.high and one.n > 0 for one in judgement.comparisons), judgement
    assert {one.finding.page for one in judgements if one.comparisons} >= {"Tokens", "Knowledge", "Probing"}


def test_names_are_unique():
    """A finding is linked to by its name."""
    assert len({finding.name for finding in FINDINGS}) == len(FINDINGS)


def test_a_run_without_results_is_told_what_to_run(run: Run):
    """Nothing can be said of any finding, and each names its command."""
    judgements = judge(run)
    assert {judgement.verdict for judgement in judgements} == {"cannot be said"}
    for one in judgements:
        name, _, data = one.finding.command.partition(" ")
        assert one.remedy == f"python -m embryo_core {name} {run.name} {data}"


def test_the_command_prints_each_verdict(tiny_results: Run, monkeypatch, capsys):
    """Once as text, once as JSON with the same verdicts."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_results.path.parents[1]))
    assert main(["findings", "tiny"]) == 0
    text = capsys.readouterr().out
    assert main(["findings", "tiny", "--json"]) == 0
    for row, judgement in zip(json.loads(capsys.readouterr().out), judge(tiny_results), strict=True):
        assert f"{row['verdict']}: {row['claim']}" in text
        assert row["verdict"] == judgement.verdict
        assert [one["value"] for one in row["comparisons"]] == [one.value for one in judgement.comparisons]
