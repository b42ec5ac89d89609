"""Findings of the paper, and the rule by which comparisons become a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from embryo_core.findings.evidence import Curve, Evidence
from embryo_core.words import quantity

Verdict = Literal["reproduced", "partly", "not", "contradicted", "undecided"]


@dataclass(frozen=True)
class Comparison:
    """One prediction of a finding, as a number with its 95 % interval; values above 0 agree with the paper."""

    what: str
    value: float
    low: float  # if the spread is unknown, `low` and `high` equal the value
    high: float
    unit: str
    n: int
    tied: bool = False  # whether both onsets are at the same evaluated step, so that their order is unknown

    @property
    def holds(self) -> bool:
        """Return whether the whole interval agrees with the paper."""
        return self.low > 0

    @property
    def opposed(self) -> bool:
        """Return whether the whole interval contradicts the paper."""
        return self.high < 0


@dataclass(frozen=True)
class TestOutcome:
    """The result of a finding's test on a run: its comparisons, and a further statistic in words."""

    comparisons: Sequence[Comparison]
    statistic: str = ""
    final: bool = False  # whether more results of the same kind could not add a comparison


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and the test that compares a run with it."""

    name: str
    claim: str  # a sentence
    section: str  # section, figure or table of the paper
    predicts: str  # the claim as a sentence about stored numbers
    page: str  # title of the page that shows these numbers
    view: dict[str, str]  # choices on that page, as in its URL
    metrics: tuple[str, ...]  # scores that the test reads
    command: str  # the command that computes them: its name, and the options after RUN
    test: Callable[[Evidence], TestOutcome]
    needs: frozenset[str] = frozenset()  # capabilities that the run's models must have (engine/capabilities.py)
    otherwise: "Finding | None" = None  # the finding by another measure, for models without these capabilities
    measure: str = ""  # the measure named in the claim, if it depends on the models


@dataclass(frozen=True)
class Judgement:
    """The verdict on a finding for one run, and its basis."""

    finding: Finding
    verdict: Verdict
    comparisons: tuple[Comparison, ...]
    statistic: str  # a further statistic in words, or why there is no verdict
    remedy: str = ""  # the command that computes what is missing
    curves: tuple[Curve, ...] = ()  # curves behind the comparisons, thinned

    @property
    def text_fields(self) -> dict[str, str]:
        """Return the finding, the verdict, and its basis as text by field name."""
        finding_fields = {name: getattr(self.finding, name) for name in ("name", "claim", "section", "predicts")}
        return finding_fields | {name: getattr(self, name) for name in ("verdict", "statistic", "remedy")}

    @property
    def hold_count(self) -> int:
        """Return the number of comparisons that hold."""
        return sum(comparison.holds for comparison in self.comparisons)

    @property
    def opposed_count(self) -> int:
        """Return the number of comparisons that are opposed."""
        return sum(comparison.opposed for comparison in self.comparisons)

    @property
    def summary(self) -> str:
        """Return a phrase with the numbers of comparisons that hold and are opposed, and their n."""
        cases = [comparison.n for comparison in self.comparisons]
        n = f"{min(cases):,}" if min(cases) == max(cases) else f"{min(cases):,} to {max(cases):,}"
        verb = "holds" if 1 in (self.hold_count, len(cases)) else "hold"
        holding_text = f"{self.hold_count} of {quantity(len(cases), 'comparison')} {verb}"
        opposed_text = f"{self.opposed_count or 'none'} {'are' if self.opposed_count > 1 else 'is'} opposed"
        return f"{holding_text}, {opposed_text} (n = {n})"


def verdict_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Return the verdict on the comparisons of one finding.

    reproduced    more than half hold, and none is opposed
    contradicted  at least a quarter are opposed, and more than hold
    partly        any other case in which at least one holds
    not           any other case, in which no comparison holds
    undecided     there are no comparisons, or more than half are tied, so that evaluated steps decide, not training
    """
    hold_count = sum(comparison.holds for comparison in comparisons)
    opposed_count = sum(comparison.opposed for comparison in comparisons)
    tied_count = sum(comparison.tied for comparison in comparisons)
    if not comparisons or tied_count > len(comparisons) / 2:
        return "undecided"
    if opposed_count > hold_count and opposed_count >= len(comparisons) / 4:
        return "contradicted"
    if not hold_count:
        return "not"
    return "reproduced" if hold_count > len(comparisons) / 2 and not opposed_count else "partly"
