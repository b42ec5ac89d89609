"""Tests of judging a run: every finding has a verdict or, without results, the command to run."""

import json

import pandas as pd

from embryo_core import results
from embryo_core.cli import main
from embryo_core.errors import ResultsError
from embryo_core.findings import FINDINGS, judge
from embryo_core.findings.evidence import Evidence
from embryo_core.types import Run
from tests.embryo_core.findings.conftest import STEPS


def test_every_finding_is_judged(tiny_results: Run):
    """The order is that of FINDINGS; a finding has a verdict if it has comparisons and at least half are not tied."""
    judgements = judge(tiny_results)
    assert [judgement.finding for judgement in judgements] == list(FINDINGS)
    for judgement in judgements:
        untied = sum(not comparison.tied for comparison in judgement.comparisons)
        said = bool(judgement.comparisons) and untied >= len(judgement.comparisons) / 2
        assert said == (judgement.verdict != "undecided")
        assert all(
            comparison.low <= comparison.value <= comparison.high and comparison.n > 0
            for comparison in judgement.comparisons
        ), judgement
    assert {judgement.finding.page for judgement in judgements if judgement.comparisons} >= {
        "Tokens",
        "Knowledge",
        "Probing",
    }


def test_damaged_table_affects_only_its_finding(tiny_results: Run, monkeypatch):
    """The finding gives the error as its reason; the others keep their verdicts."""

    def damaged(run: Run):
        raise ResultsError("task_scores.parquet cannot be read")

    before = {judgement.finding.name: judgement.verdict for judgement in judge(tiny_results)}
    monkeypatch.setattr(results, "read_task_scores", damaged)
    after = {judgement.finding.name: judgement for judgement in judge(tiny_results)}
    judgement = after.pop("gains_flatten")
    assert (judgement.verdict, judgement.statistic) == ("undecided", "task_scores.parquet cannot be read")
    assert all(one.verdict == before[name] for name, one in after.items())


def test_names_of_findings_are_unique():
    """Links to a finding contain its name."""
    assert len({finding.name for finding in FINDINGS}) == len(FINDINGS)


def test_run_without_results_gets_the_commands_to_run(run: Run):
    """No finding has a verdict, and each names its command."""
    judgements = judge(run)
    assert {judgement.verdict for judgement in judgements} == {"undecided"}
    for judgement in judgements:
        name, _, data = judgement.finding.command.partition(" ")
        assert judgement.remedy == f"python -m embryo_core {name} {run.name} {data}"


def test_no_command_if_more_results_would_not_help(run: Run, monkeypatch):
    """The curves end at 0, and words were not counted; a finding without any results still has its command."""
    flat = pd.DataFrame({"metric": "mask_prediction", "step": STEPS, "layer": None, "value": 0.0, "n": 100})
    flat = pd.concat([flat.assign(group=name) for name in ("determiner", "noun", "verb")], ignore_index=True)
    monkeypatch.setattr(Evidence, "metrics", {"mask_prediction"})
    monkeypatch.setattr(results, "read_scores", lambda run, metric: flat.astype({"layer": "Int64"}))
    judgements = {judgement.finding.name: judgement for judgement in judge(run)}
    assert judgements["function_words_prediction"].statistic.startswith("No two of its curves can be compared")
    assert "(frequencies.tsv)" in judgements["verb_forms_prediction"].statistic
    assert not judgements["function_words_prediction"].remedy and not judgements["verb_forms_prediction"].remedy
    assert judgements["function_words_reconstruction"].remedy


def test_command_prints_each_verdict(tiny_results: Run, monkeypatch, capsys):
    """Text and JSON have the same verdicts."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_results.path.parents[1]))
    assert main(["findings", "tiny"]) == 0
    text = capsys.readouterr().out
    assert main(["findings", "tiny", "--json"]) == 0
    for row, judgement in zip(json.loads(capsys.readouterr().out), judge(tiny_results), strict=True):
        assert f"{row['verdict']}: {row['claim']}" in text
        assert row["verdict"] == judgement.verdict
        assert [comparison["value"] for comparison in row["comparisons"]] == [
            comparison.value for comparison in judgement.comparisons
        ]


def test_judgement_keeps_the_stored_curves_it_used(tiny_results: Run):
    """Only the four fates, which count histories, have none."""
    by_curve = results.read_scores(tiny_results).groupby(["metric", "group", "layer"], dropna=False)
    stored = {tuple(rows["value"]) for _, rows in by_curve}
    made = ("diagonals", "gains_flatten")  # of several rows each
    judged = [
        judgement for judgement in judge(tiny_results) if judgement.comparisons and judgement.finding.name not in made
    ]
    assert [judgement.finding.name for judgement in judged if not judgement.curves] == ["four_fates"]
    assert all(tuple(curve.values) in stored for judgement in judged for curve in judgement.curves)


def test_taken_curves_are_unique_and_cleared(tiny_results: Run):
    """A curve that was read twice is taken once, and a second call takes nothing."""
    evidence = Evidence(tiny_results)
    curve, _ = (evidence.curve("mask_prediction", "noun") for _ in range(2))
    (taken,) = evidence.take_curves()
    assert taken.values.tolist() == curve.values.tolist() and evidence.take_curves() == ()
