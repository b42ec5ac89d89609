"""Tests of gaps: curves break at steps that are missing or faulty."""

import plotly.graph_objects as go
import pytest

from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit


def broken_curve(gaps: tuple[int, ...]) -> go.Scatter:
    """Return a curve over steps 0, 10, 20 and 30 on an axis with these gaps."""
    figure = go.Figure()
    about = [["a", 0], ["a", 10], ["a", 20], ["a", 30]]
    figure.add_scatter(x=[0, 10, 20, 30], y=[1, 2, 3, 4], mode="lines+markers", legendgroup="a", customdata=about)
    return StepAxis("linear", gaps=gaps, step_unit=StepUnit.UPDATES).draw(figure, [0, 10, 20, 30]).data[0]


@pytest.mark.parametrize(
    ("gaps", "heights"),
    [
        ((), [1, 2, 3, 4]),
        ((15,), [1, 2, None, 3, 4]),
        ((12, 15), [1, 2, None, 3, 4]),
        ((20,), [1, 2, None, 3, None, 4]),
        ((0, 30), [1, None, 2, 3, None, 4]),
        ((40,), [1, 2, 3, 4]),
    ],
)
def test_curve_breaks_at_gaps(gaps, heights):
    """A curve breaks between the neighbours of a missing step, and on both sides of a faulty one, whose point stays."""
    trace = broken_curve(gaps)
    assert [*trace.y] == heights and len(trace.x) == len(trace.customdata) == len(heights)


def test_points_keep_their_custom_data():
    """Only the inserted break has none."""
    trace = broken_curve((15,))
    assert [None if height is None else [*about] for height, about in zip(trace.y, trace.customdata, strict=True)] == [
        ["a", 0],
        ["a", 10],
        None,
        ["a", 20],
        ["a", 30],
    ]


def test_legend_entry_without_points_is_unchanged():
    """Such an entry represents the curves that share it."""
    figure = go.Figure(go.Scatter(x=[None], y=[None], mode="lines", legendgroup="others"))
    (entry,) = StepAxis("linear", gaps=(15,), step_unit=StepUnit.UPDATES).draw(figure, [0, 30]).data
    assert (entry.x, entry.y) == ((None,), (None,))
