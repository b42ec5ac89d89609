"""The findings of the paper, each with a test on a run's stored results, and the verdicts (see docs/metrics.md)."""

from collections.abc import Collection

from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import ResultsError
from embryo_core.findings import downstream, knowledge, layers, words
from embryo_core.findings.evidence import Evidence
from embryo_core.findings.finding import Comparison, Finding, Judgement, TestOutcome, Verdict, verdict_of
from embryo_core.types import Run

__all__ = ["FINDINGS", "Comparison", "Judgement", "Verdict", "judge"]

UNLEARNED_REASON = "No two of its curves can be compared: they end at 0, or are not stored at two steps or more."
FEW_STEPS_REASON = "Nothing that it compares is stored at two steps or more."
FINDINGS: tuple[Finding, ...] = (*words.FINDINGS, *layers.FINDINGS, *downstream.FINDINGS, *knowledge.FINDINGS)


def judge(run: Run, names: Collection[str] | None = None) -> list[Judgement]:
    """Judge each finding that applies to a run, or only those with these `names`, in the order of FINDINGS.

    A finding applies if the run's models have the capabilities that it needs, or if its scores are stored. If a table
    that it needs cannot be read, its verdict is "undecided". Raises ResultsError if the scores cannot be read.
    """
    evidence = Evidence(run)
    capabilities = run_capabilities(run)
    selected_findings = [finding for finding in FINDINGS if names is None or finding.name in names]
    applicable = (_find_applicable(finding, evidence, capabilities) for finding in selected_findings)
    return [_judge(finding, evidence) for finding in applicable if finding]


def _find_applicable(finding: Finding | None, evidence: Evidence, capabilities: frozenset[str]) -> Finding | None:
    """Return the finding if it applies to the run, else its first applicable alternative (`otherwise`), else None."""
    if (
        finding is None
        or finding.needs <= capabilities
        or (finding.metrics and set(finding.metrics) <= evidence.metrics)
    ):
        return finding
    return _find_applicable(finding.otherwise, evidence, capabilities)


def _judge(finding: Finding, evidence: Evidence) -> Judgement:
    """Run a finding's test; return its verdict, or the reason why it has none and the command to run."""
    if set(finding.metrics) <= evidence.metrics:
        evidence.take_curves()
        try:
            result = finding.test(evidence)
        except ResultsError as error:
            result = TestOutcome([], str(error))
        comparisons, curves = tuple(result.comparisons), evidence.take_curves()
        if comparisons:
            statistic = " ".join(filter(None, [_describe_ties(comparisons), result.statistic]))
            return Judgement(finding, verdict_of(comparisons), comparisons, statistic, curves=curves)
        reason = result.statistic or (UNLEARNED_REASON if curves else FEW_STEPS_REASON)
        is_final = result.final or bool(curves)
    else:
        reason, is_final = "Its scores have not been computed.", False
    command_name, _, options = finding.command.partition(" ")
    command = f"python -m embryo_core {command_name} {evidence.run.name} {options}"
    return Judgement(finding, "undecided", (), reason, "" if is_final else command)


def _describe_ties(comparisons: tuple[Comparison, ...]) -> str:
    """Return a sentence if most pairs of onsets are at the same step, so that there is no verdict; else ""."""
    tied_count = sum(comparison.tied for comparison in comparisons)
    if tied_count <= len(comparisons) / 2:
        return ""
    return f"In {tied_count} of them both onsets are at the same evaluated step; which came first was not seen."
