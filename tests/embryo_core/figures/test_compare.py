"""The figures of the Compare page draw the rows of their tables."""

import pandas as pd

from embryo_core.figures import compare


def test_a_difference_has_its_interval():
    """In percentage points, as its axis says; a measure that one run lacks is not drawn."""
    row = {"measure": "masked accuracy", "step_first": 8, "step_second": 8, "n_first": 9, "n_second": 9}
    row |= {"first": 0.2, "second": 0.5}
    row |= {"difference": 0.3, "low": 0.1, "high": 0.4, "run": "b"}
    table = pd.DataFrame([row, {"measure": "world knowledge", "run": "b"}])
    figure = compare.differences_figure(table, {"b": "words"})
    (trace,) = figure.data
    assert figure.layout.xaxis.range is None
    assert list(trace.x) == [30] and trace.name == "b" and trace.text == ("8 words",)
    assert abs(trace.error_x.array[0] - 10) < 1e-9 and abs(trace.error_x.arrayminus[0] - 20) < 1e-9
    assert list(trace.customdata[0][3:5]) == [10, 40] and "points" in trace.hovertemplate
    assert "percentage points" in figure.layout.xaxis.title.text and "%" not in figure.layout.xaxis.tickformat
    none = compare.differences_figure(table.assign(difference=[0.0, None], low=0.0, high=0.0), {"b": "updates"})
    assert none.layout.xaxis.range == (-1, 1) and none.data[0].text == ("step 8",)


def test_rows_that_differ_are_marked():
    """Numbers are written as people read them."""
    rows = {"row": ["layers", "seed"], "a": [4, None], "b": [4, 12345], "differs": [False, True]}
    designs = pd.DataFrame(rows, dtype=object)
    found = compare.design_table(designs, {"a": ["a"], "b": ["b"]})
    assert found.values.tolist() == [["", "layers", "4", "4"], ["≠", "seed", "–", "12,345"]]


def test_seeds_are_one_column():
    """With the mean of numbers and their range; seeds and texts are listed, and mark no difference."""
    rows = {"row": ["layers", "seed", "tokens per second", "last checkpoint"], "a": [4, 1, 10_069, "May"]}
    designs = pd.DataFrame(rows | {"b": [4, 2, 10_554, "June"], "differs": True}, dtype=object)
    found = compare.design_table(designs, {"a, b": ["a", "b"]})
    assert found["a, b"].tolist() == ["4", "1, 2", "10,312 (10,069 to 10,554)", "May, June"]
    assert not found["differs"].any()
