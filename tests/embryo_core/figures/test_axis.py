"""Every figure draws steps at the same places, and has a mark for the chosen one."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.compare import StepCounts
from embryo_core.curves.step_scales import SCALES, STEP_0
from embryo_core.figures.axis import STEP_LINE, StepAxis
from embryo_core.types import Change, StepUnit


def test_steps_lie_where_the_rule_of_the_axis_puts_them() -> None:
    """A linear axis has the steps themselves, a log axis a place for step 0 too."""
    assert StepAxis("linear", step_unit=StepUnit.UPDATES).values([0, 8, 16]) == [0, 8, 16]
    assert StepAxis("log", step_unit=StepUnit.UPDATES).values([0, 8, 16]) == [STEP_0, 8, 16]


def test_estimated_steps_have_two_digits_in_words() -> None:
    """Whatever the axis counts; recorded steps have all of theirs."""
    axis = StepAxis("log", step_unit=StepUnit.WORDS)
    assert axis.step_in_unit(12_288) == "12,288 words" and axis.as_estimate.step_in_unit(12_288) == "12,000 words"
    assert axis.as_estimate.between(1_303, 24) == "1,300 to 24" and axis.as_estimate.step_in_unit(5) == "5 words"
    tokens = StepAxis("log", unit="tokens", progress=StepCounts((0, 8), (0.0, 8.39e6)), step_unit=StepUnit.UPDATES)
    assert tokens.step_in_unit(8) == "8.39 M tokens" and tokens.as_estimate.step_in_unit(8) == "8.4 M tokens"


@pytest.mark.parametrize("scale", SCALES)
def test_a_figure_has_a_line_that_the_time_bar_moves(scale) -> None:
    """One dotted line through the whole height, at the last step whatever step is chosen."""
    axis = StepAxis(scale, step_unit=StepUnit.UPDATES)
    (line,) = axis.draw(go.Figure(), [0, 8, 16]).layout.shapes
    assert line.name == STEP_LINE and line.x0 == line.x1 == axis.values([16])[0]
    assert not axis.set_range(go.Figure(), [0, 8, 16]).layout.shapes


@pytest.mark.parametrize("scale", SCALES)
def test_the_legend_says_what_a_line_at_a_change_of_training_means(scale) -> None:
    """No word is over the curves; the line stays where the time bar is set to another step."""
    axis = StepAxis(
        scale, (Change(12, "sequences of 128 tokens"), Change(99, "learning rate falls")), step_unit=StepUnit.UPDATES
    )
    mark, chosen = axis.draw(go.Figure(), [0, 8, 16]).layout.shapes
    assert mark.name != STEP_LINE == chosen.name and mark.x0 == mark.x1 == axis.values([12])[0]
    assert mark.showlegend and mark.name == "from step 12: sequences of 128 tokens" and mark.label.text is None
    named = StepAxis(scale, (Change(12, "corpus: <a href='x'>y</a>"),), step_unit=StepUnit.UPDATES).draw(
        go.Figure(), [0, 8, 16]
    )
    assert "<" not in named.layout.shapes[0].name


def test_a_change_is_marked_in_every_panel_and_named_once() -> None:
    """Small multiples share one entry of the legend."""
    axis = StepAxis("linear", (Change(12, "learning rate falls"),), step_unit=StepUnit.UPDATES)
    marks = axis.mark_changes(go.Figure(), [0, 16], panels=["", "2"]).layout.shapes
    assert [(mark.xref, mark.showlegend) for mark in marks] == [("x", True), ("x2", False)]
    assert {mark.legendgroup for mark in marks} == {"from step 12: learning rate falls"}


def test_changes_of_one_of_several_runs_are_one_entry() -> None:
    """Which they are is in the caption."""
    axis = StepAxis(
        "linear", (Change(4, "corpus: a.txt"), Change(12, "learning rate falls")), step_unit=StepUnit.UPDATES
    )
    marks = axis.mark_changes(go.Figure(), [0, 16], "first").layout.shapes
    assert {mark.name for mark in marks} == {"first: training changes"}
    assert [mark.showlegend for mark in marks] == [True, False]


@pytest.mark.parametrize(
    ("unit", "end", "described"),
    [
        ("tokens", 128_000_000, "from 64 M tokens: rate falls"),
        ("share", 1, "from 50 % of the run: rate falls"),
        ("flops", 3e15, "from 1.5 P training FLOPs: rate falls"),
    ],
)
def test_a_change_is_shown_by_what_the_axis_counts(unit, end, described) -> None:
    """In the legend, as described."""
    change = Change(8, "rate falls")
    axis = StepAxis("linear", (change,), unit=unit, progress=StepCounts((0, 16), (0, end)), step_unit=StepUnit.UPDATES)
    assert axis.describe(change) == axis.draw(go.Figure(), [0, 16]).layout.shapes[0].name == described


@pytest.mark.parametrize("scale", SCALES)
def test_the_title_says_what_a_step_counts(scale) -> None:
    """The unit is in the title, the scale is that of the axis."""
    axis = StepAxis(scale, step_unit=StepUnit.SEQUENCES).draw(go.Figure(), [0, 8]).layout.xaxis
    assert axis.title.text == "sequences seen" and axis.type == scale


def test_tables_and_intervals_are_in_what_the_axis_counts() -> None:
    """Of steps as they are, of tokens by the run's own counts; a unit that both ends share is written once."""
    steps = StepAxis("log", step_unit=StepUnit.UPDATES)
    counts = StepCounts((0, 1000), (0, 2_000_000))
    tokens = StepAxis("log", unit="tokens", progress=counts, step_unit=StepUnit.UPDATES)
    column = pd.Series([500, None, 1000])
    assert (steps.number(1000), steps.between(500, 1000), steps.step_heading("peak at")) == (
        "1,000", "500 to 1,000", "peak at step",
    )  # fmt: skip
    assert (tokens.number(1000), tokens.step_heading("peak at")) == ("2 M tokens", "peak at, in tokens")
    assert (tokens.between(500, 1000), tokens.between(10, 1000)) == ("1 to 2 M tokens", "20 k tokens to 2 M tokens")
    assert (steps.short([500, 1000]), tokens.short([500, 1000])) == (["500", "1,000"], ["1 M", "2 M"])
    assert steps.column(column) is column and tokens.column(column).tolist()[::2] == [1e6, 2e6]
    assert tokens.column(column).isna().tolist() == [False, True, False]


def test_a_step_is_named_by_what_it_counts() -> None:
    """A number, or what Plotly fills in; changes in training too."""
    axis = StepAxis("log", step_unit=StepUnit.WORDS)
    assert (axis.name_step(8), axis.hover_step("customdata[1]")) == ("8 words", "%{customdata[1]:,} words")
    assert axis.describe(Change(8, "rate falls")) == "from 8 words: rate falls"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("step", "text"), [(0, "0"), (1448, "1,448"), (100_000, "100k")])
def test_one_checkpoint_has_one_number_on_its_axis(scale, step, text) -> None:
    """Its own: Plotly would write 99,999.5 and the like beside it."""
    axis = StepAxis(scale, step_unit=StepUnit.UPDATES)
    drawn = axis.draw(go.Figure(), [step]).layout.xaxis
    assert list(drawn.tickvals) == axis.values([step])
    assert [label.replace(" ", "") for label in drawn.ticktext] == [text]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100_000, "0 1 10 100 1,000 10k 100k"),
        (0, 40, "0 1 2 5 10 20"),
        (1024, 40_000, "2,000 5,000 10k 20k"),
        (10, 40, "10 20 30 40"),
        (3000, 4500, "3,000 4,000"),
        (7, 7, "7"),
        (1, 10**15, "1 100 10k 1M 100M 10G 1T 100T"),
    ],
)
def test_a_log_axis_has_round_ticks(low, high, ticks) -> None:
    """Powers of ten, or some of their multiples where there would be fewer than three; never more than ten."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES).set_range(go.Figure(), [low, high]).layout.xaxis
    assert " ".join(text.replace(" ", "") for text in axis.ticktext) == ticks
    assert list(axis.tickvals) == sorted(axis.tickvals) and axis.tickvals[-1] <= high
