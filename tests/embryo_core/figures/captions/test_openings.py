"""Opening sentences name the values of their tables, whatever the run."""

import pandas as pd

from embryo_core.figures.captions import openings


def test_compare_tells_the_agreement_of_its_run() -> None:
    """With interval and n: with another run before the paper, of others only without it; nothing where none is told."""
    ends = {"low": 0.2, "high": 0.97, "n": 9}
    pairs = [("one", "two", 0.5), ("one", "the paper", 0.8), ("two", "the paper", 0.9)]
    rows = pd.DataFrame([{"first": first, "second": second, "rho": rho, **ends} for first, second, rho in pairs])
    said = openings.compare(rows, "one")
    assert "one and two" in said and "rank correlation of 0.50 (95 % interval 0.20 to 0.97, n = 9)" in said
    assert "one and the paper" in openings.compare(rows[1:], "one")
    assert "two and the paper" in openings.compare(rows[2:], "one")
    assert openings.compare(rows.assign(rho=None), "one") == ""
