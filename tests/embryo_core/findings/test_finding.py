"""Tests of the rule that turns comparisons into a verdict."""

import pytest

from embryo_core.findings import FINDINGS
from embryo_core.findings.finding import Comparison, Judgement, verdict_of

HOLDS, OPEN, OPPOSED = (Comparison("", value, value - 1, value + 1, "", 9) for value in (2, 0, -2))


@pytest.mark.parametrize(
    ("holding", "open_", "opposed", "verdict"),
    [
        (0, 0, 0, "undecided"),
        (3, 2, 0, "reproduced"),
        (2, 2, 0, "partly"),
        (5, 0, 1, "partly"),
        (1, 9, 1, "partly"),
        (0, 4, 0, "not"),
        (0, 9, 1, "not"),
        (0, 3, 1, "contradicted"),
        (1, 0, 2, "contradicted"),
        (2, 0, 2, "partly"),
    ],
)
def test_verdict_follows_the_counts_of_comparisons(holding: int, open_: int, opposed: int, verdict: str):
    """The counts are at the boundaries between the verdicts."""
    assert verdict_of([HOLDS] * holding + [OPEN] * open_ + [OPPOSED] * opposed) == verdict


def test_no_verdict_if_most_comparisons_are_tied():
    """With exactly half of them tied the verdict remains."""
    tied = Comparison("", 0, 0, 0, "checkpoints", 9, tied=True)
    assert verdict_of([HOLDS] * 2 + [tied] * 2) == "partly"
    assert verdict_of([HOLDS] * 2 + [tied] * 3) == "undecided"


def test_summary_counts_comparisons_and_cases():
    """The summary gives the range of n, or one number if all are equal."""
    few, many = (Comparison("", 0, -1, 1, "", n) for n in (9, 1200))
    for comparisons, expected in (
        ((HOLDS, OPPOSED, many), "1 of 3 comparisons holds, 1 is opposed (n = 9 to 1,200)"),
        ((few,), "0 of 1 comparison holds, none is opposed (n = 9)"),
        ((HOLDS, HOLDS, few), "2 of 3 comparisons hold, none is opposed (n = 9)"),
    ):
        assert Judgement(FINDINGS[0], "partly", comparisons, "").summary == expected
