"""Comparisons become a verdict by one rule."""

import pytest

from embryo_core.findings.finding import Comparison, verdict_of

HOLDS, OPEN, OPPOSED = (Comparison("", value, value - 1, value + 1, "", 9) for value in (2, 0, -2))


@pytest.mark.parametrize(
    ("holding", "open_", "opposed", "verdict"),
    [
        (0, 0, 0, "cannot be said"),
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
def test_the_rule(holding: int, open_: int, opposed: int, verdict: str):
    """Every kind of count, at its edges."""
    assert verdict_of([HOLDS] * holding + [OPEN] * open_ + [OPPOSED] * opposed) == verdict
