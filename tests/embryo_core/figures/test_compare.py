"""The figures of the Compare page draw the rows of their tables."""

import pandas as pd

from embryo_core.compare import MASKED
from embryo_core.figures import compare
from embryo_core.figures.figure import Caption
from embryo_core.types import StepUnit

COLUMNS = ["measure", "run", "change", "step_first", "step_second", "difference", "n_first", "n_second"]


def test_a_difference_has_its_interval():
    """In percentage points, as its axis says; a measure that one run lacks is not drawn."""
    row = {"measure": "masked accuracy", "step_first": 8, "step_second": 8, "n_first": 9, "n_second": 9}
    row |= {"first": 0.2, "second": 0.5}
    row |= {"difference": 0.3, "low": 0.1, "high": 0.4, "run": "b"}
    table = pd.DataFrame([row, {"measure": "world knowledge", "run": "b"}])
    figure = compare.plot_differences(table, {"b": StepUnit.WORDS})
    (trace,) = figure.data
    assert figure.layout.xaxis.range is None
    assert list(trace.x) == [30] and trace.name == "b" and ", 8 words: +30.0 points (+10.0 to +40.0)" in trace.text[0]
    assert abs(trace.error_x.array[0] - 10) < 1e-9 and abs(trace.error_x.arrayminus[0] - 20) < 1e-9
    assert "20.0 % (n = 9), then 50.0 % (n = 9)" in trace.text[0]
    assert "percentage points" in figure.layout.xaxis.title.text and "%" not in figure.layout.xaxis.tickformat
    none = compare.plot_differences(table.assign(difference=[0.0, None], low=0.0, high=0.0), {"b": StepUnit.UPDATES})
    assert none.layout.xaxis.range == (-1, 1) and "step 8" in none.data[0].text[0]


def test_rows_that_differ_are_marked():
    """And come first; numbers are written as people read them."""
    rows = {"row": ["layers", "seed"], "a": [4, None], "b": [4, 12345], "differs": [False, True]}
    designs = pd.DataFrame(rows, dtype=object)
    found = compare.design_table(designs, {"a": ["a"], "b": ["b"]})
    assert found.values.tolist() == [["≠", "seed", "–", "12,345"], ["", "layers", "4", "4"]]


def test_seeds_are_one_column():
    """With the mean of numbers and their range; seeds and texts are listed, and mark no difference."""
    rows = {"row": ["layers", "seed", "tokens per second", "last checkpoint"], "a": [4, 1, 10_069, "May"]}
    designs = pd.DataFrame(rows | {"b": [4, 2, 10_554, "June"], "differs": True}, dtype=object)
    found = compare.design_table(designs, {"a, b": ["a", "b"]})
    assert found["a, b"].tolist() == ["4", "1, 2", "10,312 (10,069 to 10,554)", "May, June"]
    assert not found["differs"].any()


# === Captions ===


def describe(*rows: tuple, masked: dict[str, str] | None = None, seeds: int = 1) -> Caption:
    """Return the caption of (measure, both steps, difference, both n), for the run `b` and the first, `a`."""
    table = pd.DataFrame([(row[0], "b", "dropout 0.1", *row[1:]) for row in rows], columns=COLUMNS)
    table = table.assign(seeds_first=1, seeds_second=1)
    return compare.describe_differences(["dropout"], "a", table, {"a": 1, "b": seeds}, masked or {})


def test_the_cases_are_those_of_both_runs() -> None:
    """The least and the most of all measures."""
    assert "n = 8 to 90 cases." in describe(("world knowledge", 8, 8, 0.1, 40, 8), ("noun", 8, 8, 0.1, 90, 50)).data


def test_the_step_is_that_of_the_run_that_is_compared() -> None:
    """If it continues the first, the caption says so; a measure without a step is named."""
    alone = describe(("noun", 8, 8, 0.1, 40, 40), ("verb", None, None, None, None, None))
    assert "(8)" in alone.summary and "verb (b)" in alone.details and "continues" not in alone.details
    continued = describe(("noun", 8, 16, 0.1, 40, 40))
    assert "(16)" in continued.summary and "continues" in continued.details
    assert "(8 to 16, by measure)" in describe(("noun", 8, 8, 0.1, 40, 40), ("verb", 16, 16, 0.1, 40, 40)).summary


def test_a_measure_of_fewer_seeds_is_named() -> None:
    """With how many seeds of both it has."""
    row = ("noun", 8, 8, 0.1, 40, 40)
    assert "noun (1 and 1)" in describe(row, seeds=3).details and "noun (" not in describe(row).details


def test_masked_pieces_are_described_if_runs_differ_in_them() -> None:
    """And if masked accuracy is compared."""
    rows, kinds = (MASKED, 8, 8, 0.1, 40, 40), {"a": "left", "b": "hidden"}
    assert "a left; b hidden" in describe(rows, masked=kinds).details
    assert "own masking" not in describe(rows, masked=dict.fromkeys("ab", "hidden")).details
    assert "own masking" not in describe(("noun", 8, 8, 0.1, 40, 40), masked=kinds).details


def test_the_headline_has_the_agreement_of_its_run() -> None:
    """With another run before the paper; of other runs only if its own is unknown."""
    ends = {"low": 0.2, "high": 0.97, "n": 9}
    pairs = [("one", "two", 0.5), ("one", "the paper", 0.8), ("two", "the paper", 0.9)]
    rows = pd.DataFrame([{"first": first, "second": second, "rho": rho, **ends} for first, second, rho in pairs])
    said = compare.headline(rows, "one")
    assert all(part in said for part in ("one and two", "0.50", "0.20 to 0.97", "n = 9"))
    assert "one and the paper" in compare.headline(rows[1:], "one")
    assert "two and the paper" in compare.headline(rows[2:], "one")
    assert compare.headline(rows.assign(rho=None), "one") == ""
