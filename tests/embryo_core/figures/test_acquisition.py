"""Tests of the order of acquisition: places, intervals, ties, and several runs in one figure."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core import results
from embryo_core.comparison import acquisition
from embryo_core.figures import acquisition as figures
from embryo_core.figures import tokens
from embryo_core.figures.acquisition import plot_acquisition
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.tokens import accuracy_curves
from embryo_core.types import StepUnit

STEPS = [0, 1, 2, 4]


def scores(**values: list[float]) -> pd.DataFrame:
    """Return the scores of some categories at STEPS."""
    rows = [(step, group, v, 50) for group, series in values.items() for step, v in zip(STEPS, series, strict=True)]
    return pd.DataFrame(rows, columns=["step", "group", "value", "n"])


def order(run: str = "a", rule: str = "half", **values: list[float]) -> pd.DataFrame:
    """Return the order of acquisition of these categories."""
    table = acquisition(accuracy_curves(scores(**values), list(values), rescaled=False), rule)
    return table.assign(run=run, before=table["earliest"])


def rows_of(plot: go.Figure) -> list[str]:
    """Return the row names of the last run's marks."""
    names = dict(zip(plot.layout.yaxis.tickvals, plot.layout.yaxis.ticktext, strict=True))
    return [names[y] for y in plot.data[-1].y]


def test_categories_are_sorted_by_onset() -> None:
    """The category that reaches half of its last accuracy first comes first; one without an onset is not drawn."""
    table = order(noun=[0.0] * 4, verb=[0.0, 0.0, 0.1, 0.2], determiner=[0.0, 0.1, 0.4, 0.5])
    assert list(table["group"]) == ["determiner", "verb", "noun"]
    plot = plot_acquisition(table, {"a": StepAxis("linear", step_unit=StepUnit.UPDATES)}, STEPS)
    *intervals, marks = plot.data
    known = table.dropna(subset="onset")
    assert [list(trace.x) for trace in intervals] == known[["earliest", "latest"]].to_numpy().tolist()
    assert list(marks.x) == list(known["onset"]) and rows_of(plot) == ["1= determiner", "1= verb"]


def test_tied_categories_share_a_place_and_frame() -> None:
    """The place of the next category counts all tied ones: third after a tie of two."""
    rises = [0.0, 0.0, 0.1, 0.2]
    table = order(verb=rises, pronoun=[0.0, 0.0, 0.0, 0.9], adverb=rises)
    plot = plot_acquisition(table, {"a": StepAxis("linear", step_unit=StepUnit.UPDATES)}, STEPS)
    assert rows_of(plot) == ["1= adverb", "1= verb", "3. pronoun"]
    (ground,) = [shape for shape in plot.layout.shapes if shape.type == "rect"]
    assert (ground.y0, ground.y1) == (0.55, 2.45)  # the two rows above the last
    assert not any(trace.showlegend for trace in plot.data)


@pytest.mark.parametrize(("unit", "per"), [(StepUnit.UPDATES, "1,000 steps"), (StepUnit.WORDS, "1,000 words")])
def test_slope_is_given_per_step_unit(unit: StepUnit, per: str) -> None:
    """Only onsets by the paper's rule have a slope, which comes with its 95 % interval."""
    axes = {"a": StepAxis("linear", step_unit=unit)}
    steep = order(rule="paper", verb=[0.0, 0.0, 0.1, 0.2]).assign(slope=0.2, slope_low=0.1, slope_high=0.3)
    assert f"slope 0.2 per {per} (95 %: 0.1 to 0.3)" in plot_acquisition(steep, axes, STEPS).data[-1].text[0]
    flat = order(verb=[0.0, 0.0, 0.1, 0.2])
    assert "slope" not in plot_acquisition(flat, axes, STEPS).data[-1].text[0]


def test_runs_share_rows_and_category_colours() -> None:
    """Rows are in the order of the first run; each run has one legend entry and its own height within a row."""
    first = order(verb=[0.0, 0.0, 0.1, 0.2], determiner=[0.0, 0.1, 0.4, 0.5])
    second = order("b", verb=[0.0, 0.3, 0.3, 0.3])
    plot = plot_acquisition(
        pd.concat([first, second]),
        {"a": StepAxis("linear", step_unit=StepUnit.UPDATES), "b": StepAxis("linear", step_unit=StepUnit.UPDATES)},
        STEPS,
    )
    marks = {trace.name: trace for trace in plot.data if trace.showlegend}
    assert list(marks) == ["a", "b"] and list(plot.layout.yaxis.ticktext) == ["determiner", "verb"]
    assert marks["a"].marker.color[1] == marks["b"].marker.color[0]
    assert marks["a"].y[1] != marks["b"].y[0] and marks["b"].x[0] == 1


def test_axis_covers_the_bars_of_every_run() -> None:
    """The bar of the second run begins before the first evaluated step of the first run."""
    first, second = order(verb=[0.0, 0.0, 0.1, 0.2]), order("b", verb=[0.0, 0.3, 0.3, 0.3]).assign(before=0)
    axes = dict.fromkeys("ab", StepAxis("linear", step_unit=StepUnit.UPDATES))
    assert plot_acquisition(pd.concat([first, second]), axes, [1, 4]).layout.xaxis.range[0] <= 0


def test_bar_begins_at_previous_evaluated_step(tiny_results) -> None:
    """The rise happened somewhere between two evaluations; the first evaluated step has none before it."""
    figure = figures.acquisition([tiny_results], AxisChoice(), "mask_prediction", tuple(tokens.SETS["parts of speech"]))
    steps = sorted(results.read_scores(tiny_results, "mask_prediction")["step"].unique())
    for row in figure.table.dropna(subset="onset").itertuples():
        assert row.before == max([step for step in steps if step < row.earliest], default=steps[0])
