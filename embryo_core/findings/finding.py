"""Findings of the paper, and the rule by which comparisons become a verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from embryo_core.findings.evidence import Curve, Evidence
from embryo_core.words import quantity

Verdict = Literal["reproduced", "partly", "not", "contradicted", "cannot be said"]


@dataclass(frozen=True)
class Comparison:
    """One prediction of a finding, measured so that values above 0 agree with the paper, with its 95 % interval."""

    what: str
    value: float
    low: float  # if the spread is unknown, `low` and `high` equal the value
    high: float
    unit: str
    n: int
    tied: bool = False  # two onsets at one evaluated step, too far from the previous one to order them

    @property
    def holds(self) -> bool:
        """Return whether the whole interval is in favour of the paper."""
        return self.low > 0

    @property
    def opposed(self) -> bool:
        """Return whether the whole interval is against the paper."""
        return self.high < 0


@dataclass(frozen=True)
class Tested:
    """The result of a finding's test on a run: its comparisons, and a further statistic in words."""

    comparisons: Sequence[Comparison]
    statistic: str = ""
    final: bool = False  # more results of the same kind would not add a comparison


@dataclass(frozen=True)
class Finding:
    """One claim of the paper, and the test that compares a run with it."""

    name: str
    claim: str  # a sentence
    place: str  # place in the paper
    predicts: str  # the prediction, a sentence about stored numbers
    page: str  # title of the page that shows these numbers
    view: dict[str, str]  # choices on that page, as in its URL
    metrics: tuple[str, ...]  # scores that the test reads
    command: str  # the command that computes them: its name, and the options after RUN
    test: Callable[[Evidence], Tested]
    needs: frozenset[str] = frozenset()  # capabilities that the run's models must have (engine/capabilities.py)
    otherwise: "Finding | None" = None  # alternative of the same name for models without these, by another measure
    measure: str = ""  # measure that the claim names, if it depends on the models


@dataclass(frozen=True)
class Judgement:
    """The verdict of a run on a finding."""

    finding: Finding
    verdict: Verdict
    comparisons: tuple[Comparison, ...]
    statistic: str  # a further statistic in words, or why there is no verdict
    remedy: str = ""  # the command that computes what is missing
    curves: tuple[Curve, ...] = ()  # curves behind the comparisons, thinned

    @property
    def described(self) -> dict[str, str]:
        """Return the finding, the verdict, and its basis, by name."""
        of_finding = {name: getattr(self.finding, name) for name in ("name", "claim", "place", "predicts")}
        return of_finding | {name: getattr(self, name) for name in ("verdict", "statistic", "remedy")}

    @property
    def holding(self) -> int:
        """Return how many comparisons hold."""
        return sum(comparison.holds for comparison in self.comparisons)

    @property
    def opposed(self) -> int:
        """Return how many comparisons are opposed."""
        return sum(comparison.opposed for comparison in self.comparisons)

    @property
    def summary(self) -> str:
        """Return a sentence on how many comparisons hold and are opposed, and their n."""
        cases = [comparison.n for comparison in self.comparisons]
        n = f"{min(cases):,}" if min(cases) == max(cases) else f"{min(cases):,} to {max(cases):,}"
        hold = "holds" if 1 in (self.holding, len(cases)) else "hold"
        holding = f"{self.holding} of {quantity(len(cases), 'comparison')} {hold}"
        opposed = f"{self.opposed or 'none'} {'are' if self.opposed > 1 else 'is'} opposed"
        return f"{holding}, {opposed} (n = {n})"


def verdict_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Return the verdict on the comparisons of one finding.

    reproduced      more than half hold, and none is opposed
    contradicted    at least a quarter are opposed, and more than hold
    partly          any other case in which one holds
    not             any other case: no difference is clearly more than chance
    cannot be said  there is nothing to compare, or more than half are tied: the evaluated steps decide, not training
    """
    holding = sum(comparison.holds for comparison in comparisons)
    opposed = sum(comparison.opposed for comparison in comparisons)
    tied = sum(comparison.tied for comparison in comparisons)
    if not comparisons or tied > len(comparisons) / 2:
        return "cannot be said"
    if opposed > holding and opposed >= len(comparisons) / 4:
        return "contradicted"
    if not holding:
        return "not"
    return "reproduced" if holding > len(comparisons) / 2 and not opposed else "partly"
