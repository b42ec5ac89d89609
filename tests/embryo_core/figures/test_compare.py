"""Tests of the figures, tables and captions of the Compare page."""

import pandas as pd

from embryo_core.comparison import MASKED_ACCURACY
from embryo_core.figures import compare
from embryo_core.figures.figure import Caption
from embryo_core.types import StepUnit

COLUMNS = ["measure", "run", "change", "step_first", "step_second", "difference", "n_first", "n_second"]


def test_differences_are_drawn_with_intervals():
    """Differences are in percentage points, as the axis says; a measure that one run lacks is not drawn."""
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


def test_differing_rows_are_marked_and_come_first():
    """Numbers have thousands separators, and a missing value is a dash."""
    rows = {"row": ["layers", "seed"], "a": [4, None], "b": [4, 12345], "differs": [False, True]}
    designs = pd.DataFrame(rows, dtype=object)
    table = compare.design_table(designs, {"a": ["a"], "b": ["b"]})
    assert table.values.tolist() == [["≠", "seed", "–", "12345"], ["", "layers", "4", "4"]]
    near = pd.DataFrame({"row": ["learning rate"], "a": [0.0012345], "b": [0.0012349]}, dtype=object)
    assert compare.design_table(near, {"a": ["a"], "b": ["b"]})["differs"].tolist() == ["≠"]


def test_seeds_of_a_design_share_a_column():
    """The column has the mean and range of measured numbers; seeds and texts are listed, and mark no difference.

    A number that only one seed has, such as the parameters of its weights, is that of the design.
    """
    rows = {"row": ["layers", "seed", "tokens per second", "last checkpoint", "parameters", "note"]}
    values = {"a": [4, 12345, 10_069, "May", None, None], "b": [4, 2, 10_554, "June", 1_550_721, None]}
    table = compare.design_table(pd.DataFrame(rows | values, dtype=object), {"a, b": ["a", "b"]})
    assert table["a, b"].tolist() == ["4", "12345, 2", "10,312 (10,069 to 10,554)", "May, June", "1,550,721", "–"]
    assert not table["differs"].any()


# === Captions ===


def describe(*rows: tuple, masked: dict[str, str] | None = None, seeds: int = 1) -> Caption:
    """Return the caption of rows (measure, both steps, difference, both n) for run `b` compared with the first, `a`."""
    table = pd.DataFrame([(row[0], "b", "dropout 0.1", *row[1:]) for row in rows], columns=COLUMNS)
    table = table.assign(seeds_first=1, seeds_second=1)
    return compare.describe_differences(["dropout"], "a", table, {"a": 1, "b": seeds}, masked or {})


def test_caption_has_the_range_of_cases() -> None:
    """The range is over all measures and both runs."""
    assert "n = 8 to 90 cases." in describe(("world knowledge", 8, 8, 0.1, 40, 8), ("noun", 8, 8, 0.1, 90, 50)).data


def test_caption_has_the_step_of_the_compared_run() -> None:
    """The caption explains steps that differ between runs, and names measures without a common step."""
    alone = describe(("noun", 8, 8, 0.1, 40, 40), ("verb", None, None, None, None, None))
    assert "(8)" in alone.summary and "verb (b)" in alone.details and "continues" not in alone.details
    continued = describe(("noun", 8, 16, 0.1, 40, 40))
    assert "(16)" in continued.summary and "continues" in continued.details
    assert "(8 to 16, by measure)" in describe(("noun", 8, 8, 0.1, 40, 40), ("verb", 16, 16, 0.1, 40, 40)).summary


def test_measures_with_fewer_seeds_are_named() -> None:
    """The caption gives the number of seeds of both designs in brackets."""
    row = ("noun", 8, 8, 0.1, 40, 40)
    assert "noun (1 and 1)" in describe(row, seeds=3).details and "noun (" not in describe(row).details


def test_masking_is_described_if_runs_differ() -> None:
    """The caption mentions it only if masked accuracy is compared."""
    rows, kinds = (MASKED_ACCURACY, 8, 8, 0.1, 40, 40), {"a": "left", "b": "hidden"}
    assert "a left; b hidden" in describe(rows, masked=kinds).details
    assert "own masking" not in describe(rows, masked=dict.fromkeys("ab", "hidden")).details
    assert "own masking" not in describe(("noun", 8, 8, 0.1, 40, 40), masked=kinds).details


def test_headline_prefers_agreement_with_another_run() -> None:
    """The paper comes second, and pairs without the chosen run count only if its own agreement is unknown."""
    ends = {"low": 0.2, "high": 0.97, "n": 9}
    pairs = [("one", "two", 0.5), ("one", "the paper", 0.8), ("two", "the paper", 0.9)]
    rows = pd.DataFrame([{"first": first, "second": second, "rho": rho, **ends} for first, second, rho in pairs])
    headline = compare.headline(rows, "one")
    assert all(part in headline for part in ("one and two", "0.50", "0.20 to 0.97", "n = 9"))
    assert "one and the paper" in compare.headline(rows[1:], "one")
    assert "two and the paper" in compare.headline(rows[2:], "one")
    assert compare.headline(rows.assign(rho=None), "one") == ""
