"""Tests of figures of several runs: how runs and categories look, panels, changes, gaps, and baselines."""

from dataclasses import replace

import pandas as pd

from embryo_core.comparison import StepCounts
from embryo_core.figures import style
from embryo_core.figures.axis import STEP_LINE, AxisChoice, StepAxis
from embryo_core.figures.curve_plot import plot_curves
from embryo_core.figures.curves import make_lines
from embryo_core.figures.lines import MAX_PANEL_LINES, Curves, Line
from embryo_core.groups import describe_tag
from embryo_core.types import Change, Run, StepUnit

CURVES = Curves(by="group", value="shown", y_title="accuracy (words)", label=describe_tag)


def line(name: str, gain: float, groups: tuple[str, ...], steps: tuple[int, ...] = (0, 8, 16), **axis: object) -> Line:
    """Return a run whose categories all rise alike."""
    rows = [(group, step, 50, step / 40 + gain, 0.0, 1.0, None) for group in groups for step in steps]
    table = pd.DataFrame(rows, columns=["curve", "step", "n", "value", "low", "high", "baseline"])
    return Line(name, StepAxis("linear", step_unit=StepUnit.UPDATES, **axis), table, table)


def curves_of(figure) -> list:
    """Return the measured curves of a figure."""
    return [trace for trace in figure.data if trace.customdata is not None]


def hover_text(trace, point: int) -> str:
    """Return the hover text of one point."""
    return trace.customdata[point][2]


def test_table_of_seeds_leaves_out_layers_that_differ(tiny_run: Run):
    """The best layers of the seeds are the same at the first step, and 2 and 3 at the second."""
    again = replace(tiny_run, name="again", config=tiny_run.config | {"seed": 9})
    rows = {"group": "noun", "step": [0, 8], "shown": 0.5, "n": 9}
    layers = {"tiny": [1, 2], "again": [1, 3]}
    tables = {name: pd.DataFrame(rows | {"layer": layer}) for name, layer in layers.items()}
    (one,), _ = make_lines([tiny_run, again], AxisChoice(), lambda run: tables[run.name], CURVES)
    assert one.table["layer"].fillna(0).tolist() == [1, 0]


def test_colour_shows_category_and_symbol_shows_run():
    """The second run also has lighter, hollow symbols; no curve is dashed, because dashes mean baselines."""
    figure = plot_curves([line("a", 0, ("noun", "verb")), line("b", 0.2, ("noun", "verb"))], CURVES)
    looks = {trace.name: (trace.line.color, (trace.marker.symbol, trace.opacity)) for trace in curves_of(figure)}
    assert looks["noun, a"][0] == looks["noun, b"][0] != looks["verb, a"][0]
    assert looks["noun, a"][1] == looks["verb, a"][1] == ("circle", 1)
    assert looks["noun, b"][1] == looks["verb, b"][1] == ("circle-open", 0.6)
    assert {trace.line.dash for trace in curves_of(figure)} == {None}
    assert [shape.name for shape in figure.layout.shapes] == [STEP_LINE]


def test_hover_text_compares_all_runs():
    """Each run has its own nearest step, value, interval and n, so that a planted difference shows in the numbers."""
    figure = plot_curves([line("a", 0, ("noun",)), line("b", 0.2, ("noun",), (0, 10, 16))], CURVES)
    first, second = curves_of(figure)
    assert "<b>a</b>, step 8: 20.0 % (0.0 % to 100.0 %), n = 50" in hover_text(first, 1)
    assert "b, step 10: 45.0 %" in hover_text(first, 1) and "a, step 8: 20.0 %" in hover_text(second, 1)
    assert second.customdata[1][1] == 8  # a click selects a step of the first run, which the time bar has


def test_many_lines_become_small_multiples():
    """Each category has a panel with the line of the step; each run has one colour and one legend entry."""
    groups = ("noun", "verb", "adverb", "pronoun")
    assert 2 * len(groups) > MAX_PANEL_LINES
    figure = plot_curves([line("a", 0, groups), line("b", 0.2, groups)], CURVES)
    assert {note.text for note in figure.layout.annotations} == set(groups)
    key = {
        trace.name: (trace.line.color, trace.marker.symbol) for trace in figure.data if trace.showlegend is not False
    }
    assert key == {"a": (style.BLUE, "circle"), "b": (style.VERMILION, "circle-open")}
    drawn = {(trace.name.split(", ")[1], trace.line.color, trace.marker.symbol) for trace in curves_of(figure)}
    assert drawn == {(name, *look) for name, look in key.items()}
    assert {shape.xref for shape in figure.layout.shapes} == {"x", "x2", "x3", "x4"}


def test_panels_of_one_run_keep_category_colours():
    """A single run has no legend entry, because its name is elsewhere on the page."""
    styles = {"noun": (style.BLUE, "circle"), "verb": (style.PURPLE, "circle")}
    figure = plot_curves([line("a", 0, ("noun", "verb"))], replace(CURVES, styles=lambda groups: styles, width=900))
    assert {trace.line.color for trace in curves_of(figure)} == {style.BLUE, style.PURPLE}
    assert not [trace for trace in figure.data if trace.showlegend is not False]


def test_changes_of_training_are_marked_for_each_run():
    """Changes that all runs share are marked once; others carry the name and lightness of their run."""
    falls, longer = (Change(8, "learning rate falls"),), (Change(8, "sequences of 128 tokens"),)
    same = plot_curves([line("a", 0, ("noun",), changes=falls), line("b", 0, ("noun",), changes=falls)], CURVES)
    assert [s.name for s in same.layout.shapes if s.showlegend] == ["from step 8: learning rate falls"]
    lines = [line("a", 0, ("noun",), changes=falls), line("b", 0, ("noun",), changes=longer)]
    first, second = [s for s in plot_curves(lines, CURVES).layout.shapes if s.showlegend]
    assert first.name == "a: training changes"
    assert second.name == "b: training changes"
    assert first.line.color != second.line.color and first.line.dash is second.line.dash is None


def test_points_are_placed_by_each_runs_own_counts():
    """Runs that saw different numbers of tokens by the same step have points at different places."""
    axes = [{"unit": "tokens", "progress": StepCounts((0, 16), (0.0, tokens))} for tokens in (160.0, 320.0)]
    figure = plot_curves([line("a", 0, ("noun",), **axes[0]), line("b", 0, ("noun",), **axes[1])], CURVES)
    assert [list(trace.x) for trace in curves_of(figure)] == [[0, 80, 160], [0, 160, 320]]
    assert figure.layout.xaxis.title.text == "tokens seen" and figure.layout.xaxis.range[1] > 320


def test_curve_breaks_only_at_gaps_of_its_run():
    """The curve of the other run goes on."""
    figure = plot_curves([line("a", 0, ("noun",), gaps=(4,)), line("b", 0.2, ("noun",))], CURVES)
    assert [sum(pd.isna(value) for value in trace.y) for trace in curves_of(figure)] == [1, 0]


def with_baseline(of: Line, value: float) -> Line:
    """Return the same line above a baseline."""
    return Line(of.name, of.axis, of.rows.assign(baseline=value), of.table)


def baselines_of(figure) -> list:
    """Return the baselines of a figure."""
    return [trace for trace in figure.data if trace.name and trace.name.endswith(", baseline")]


def test_equal_baselines_are_one_line():
    """The line reaches to the last step of the longer run and has one legend entry."""
    lines = [with_baseline(line("a", 0, ("noun",)), 0.3), with_baseline(line("b", 0, ("noun",), (0, 8, 32)), 0.3)]
    figure = plot_curves(lines, CURVES)
    (shared,) = baselines_of(figure)
    assert set(shared.y) == {0.3} and max(shared.x) == 32 and "all runs" in shared.hovertemplate
    assert [trace.name for trace in figure.data].count("baseline") == 1


def test_different_baselines_have_a_line_each():
    """Lines are dashed, in the run's colour in small multiples; a run without a baseline has no line."""
    groups = ("noun", "verb", "adverb")
    lines = [with_baseline(line("a", 0, groups), 0.3), with_baseline(line("b", 0, groups), 0.4), line("c", 0, groups)]
    own = baselines_of(plot_curves(lines, CURVES))
    assert [(trace.y[0], trace.line.color) for trace in own[:2]] == [(0.3, style.BLUE), (0.4, style.VERMILION)]
    assert {trace.line.dash for trace in own} == {"dash"}
    assert len(own) == 2 * len(groups) and {trace.xaxis for trace in own} == {"x", "x2", "x3"}
