"""The findings of the paper, each with a function that tests it on a run's stored results (docs/metrics.md)."""

from embryo_core.findings.finding import Comparison, Judgement, Verdict
from embryo_core.findings.judge import FINDINGS, judge
