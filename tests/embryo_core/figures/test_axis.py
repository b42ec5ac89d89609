"""Tests of StepAxis: where steps are drawn, how they are named, and how changes of training are marked."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.comparison import StepCounts
from embryo_core.curves.step_scales import SCALES, STEP_0
from embryo_core.figures.axis import STEP_LINE, StepAxis
from embryo_core.types import Change, StepUnit


def test_steps_are_placed_by_axis_scale() -> None:
    """A linear axis uses the steps themselves; a log axis also has a place for step 0."""
    assert StepAxis("linear", step_unit=StepUnit.UPDATES).values([0, 8, 16]) == [0, 8, 16]
    assert StepAxis("log", step_unit=StepUnit.UPDATES).values([0, 8, 16]) == [STEP_0, 8, 16]


def test_estimated_steps_are_rounded_to_two_digits() -> None:
    """They are rounded in every unit of the axis, while recorded steps keep all their digits."""
    axis = StepAxis("log", step_unit=StepUnit.WORDS)
    assert axis.step_in_unit(12_288) == "12,288 words" and axis.as_estimate.step_in_unit(12_288) == "12,000 words"
    assert axis.as_estimate.between(1_303, 24) == "1,300 to 24" and axis.as_estimate.step_in_unit(5) == "5 words"
    tokens = StepAxis("log", unit="tokens", progress=StepCounts((0, 8), (0.0, 8.39e6)), step_unit=StepUnit.UPDATES)
    assert tokens.step_in_unit(8) == "8.39 M tokens" and tokens.as_estimate.step_in_unit(8) == "8.4 M tokens"


@pytest.mark.parametrize("scale", SCALES)
def test_axis_draws_the_line_of_the_time_bar(scale) -> None:
    """The line is at the last step until the time bar moves it; an axis with only its range set has none."""
    axis = StepAxis(scale, step_unit=StepUnit.UPDATES)
    (line,) = axis.draw(go.Figure(), [0, 8, 16]).layout.shapes
    assert line.name == STEP_LINE and line.x0 == line.x1 == axis.values([16])[0]
    assert not axis.set_range(go.Figure(), [0, 8, 16]).layout.shapes


@pytest.mark.parametrize("scale", SCALES)
def test_changes_of_training_are_named_in_the_legend(scale) -> None:
    """A change has no label over the curves and no markup in its name, and the time bar does not move its line."""
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


def test_change_is_marked_in_every_panel_and_named_once() -> None:
    """The marks of small multiples belong to one legend group, of which only the first is listed."""
    axis = StepAxis("linear", (Change(12, "learning rate falls"),), step_unit=StepUnit.UPDATES)
    marks = axis.mark_changes(go.Figure(), [0, 16], panels=["", "2"]).layout.shapes
    assert [(mark.xref, mark.showlegend) for mark in marks] == [("x", True), ("x2", False)]
    assert {mark.legendgroup for mark in marks} == {"from step 12: learning rate falls"}


def test_changes_of_a_named_run_share_a_legend_entry() -> None:
    """In a figure of several runs, the entry names the run instead of each change."""
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
def test_change_is_described_in_axis_unit(unit, end, described) -> None:
    """The legend uses the words of `describe`."""
    change = Change(8, "rate falls")
    axis = StepAxis("linear", (change,), unit=unit, progress=StepCounts((0, 16), (0, end)), step_unit=StepUnit.UPDATES)
    assert axis.describe(change) == axis.draw(go.Figure(), [0, 16]).layout.shapes[0].name == described


@pytest.mark.parametrize("scale", SCALES)
def test_axis_title_names_the_step_unit(scale) -> None:
    """The type of the axis is the chosen scale."""
    axis = StepAxis(scale, step_unit=StepUnit.SEQUENCES).draw(go.Figure(), [0, 8]).layout.xaxis
    assert axis.title.text == "sequences seen" and axis.type == scale


def test_numbers_and_intervals_use_the_axis_unit() -> None:
    """Tokens are interpolated from the run's own counts; a unit that both ends share is written once."""
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


def test_steps_are_named_in_the_step_unit() -> None:
    """This holds for a number, for a placeholder of Plotly's hover text, and for a change of training."""
    axis = StepAxis("log", step_unit=StepUnit.WORDS)
    assert (axis.name_step(8), axis.hover_step("customdata[1]")) == ("8 words", "%{customdata[1]:,} words")
    assert axis.describe(Change(8, "rate falls")) == "from 8 words: rate falls"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("step", "text"), [(0, "0"), (1448, "1,448"), (100_000, "100k")])
def test_single_checkpoint_has_a_single_tick(scale, step, text) -> None:
    """Plotly would add neighbouring numbers such as 99,999.5."""
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
def test_log_axis_has_round_ticks(low, high, ticks) -> None:
    """Ticks are powers of ten, with multiples if there would be fewer than three, and never more than ten."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES).set_range(go.Figure(), [low, high]).layout.xaxis
    assert " ".join(text.replace(" ", "") for text in axis.ticktext) == ticks
    assert list(axis.tickvals) == sorted(axis.tickvals) and axis.tickvals[-1] <= high


def test_log_axis_without_round_steps_names_its_ends() -> None:
    """No axis is without ticks."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES).set_range(go.Figure(), [16_100, 16_900]).layout.xaxis
    assert list(axis.tickvals) == [16_100, 16_900] and list(axis.ticktext) == ["16.1 k", "16.9 k"]


@pytest.mark.parametrize("scale", SCALES)
def test_margin_is_a_share_of_the_range_on_both_sides(scale) -> None:
    """On a log axis it is a share of the logarithms, from the place of 0."""
    axis = StepAxis(scale, step_unit=StepUnit.UPDATES).set_ends(go.Figure(), 0, 50, margin=0.5).layout.xaxis
    ends = {"linear": (-25, 75), "log": (np.log10(0.05), np.log10(500))}
    assert axis.range == pytest.approx(ends[scale])
