"""What a caption says of differences between runs: at which steps, on how many cases, and what was not measured."""

import pandas as pd

from embryo_core.compare import MASKED
from embryo_core.figures.captions import compare

COLUMNS = ["measure", "run", "change", "step_first", "step_second", "difference", "n_first", "n_second"]


def told(*rows: tuple, masked: dict[str, str] | None = None) -> str:
    """The caption of rows of a measure, the two steps, the difference and both n, of the run `b` and the first, `a`."""
    table = pd.DataFrame([(row[0], "b", "dropout 0.1", *row[1:]) for row in rows], columns=COLUMNS)
    return compare.differences(["dropout"], "a", table, False, masked or {})


def test_the_cases_are_those_of_both_runs() -> None:
    """The least and the most of all measures."""
    assert "n = 8 to 90 cases." in told(("world knowledge", 8, 8, 0.1, 40, 8), ("noun", 8, 8, 0.1, 90, 50))


def test_the_step_is_that_of_the_run_that_is_compared() -> None:
    """Where it goes on from the first, it is said that the first is at another; a measure without a step is named."""
    alone = told(("noun", 8, 8, 0.1, 40, 40), ("verb", None, None, None, None, None))
    assert "at the last step that both have (8)." in alone and compare.BEGAN not in alone
    assert r"Not measured at a step that both have: verb \(b\)." in alone
    on = told(("noun", 8, 16, 0.1, 40, 40))
    assert "(16)." in on and compare.BEGAN in on
    assert "(8 to 16, by measure)." in told(("noun", 8, 8, 0.1, 40, 40), ("verb", 16, 16, 0.1, 40, 40))


def test_masked_pieces_are_told_where_runs_differ_in_them() -> None:
    """And where masked accuracy is compared."""
    rows, kinds = (MASKED, 8, 8, 0.1, 40, 40), {"a": "left", "b": "hidden"}
    assert r"own masking: a left\; b hidden" in told(rows, masked=kinds)
    assert "own masking" not in told(rows, masked=dict.fromkeys("ab", "hidden"))
    assert "own masking" not in told(("noun", 8, 8, 0.1, 40, 40), masked=kinds)
