"""Tests of downsampling: long curves keep some of their points, among them every peak; short ones keep all."""

import numpy as np
import plotly.graph_objects as go
import pytest

from embryo_core.curves.step_scales import SCALES, axis_shares
from embryo_core.figures import downsampling, style
from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit

LONG = 2000


def downsampled_figure(scale: str, y: np.ndarray, x: np.ndarray | None = None, **more) -> go.Figure:
    """Return a curve and its band, downsampled on an axis of steps."""
    x, figure = np.arange(1, len(y) + 1) if x is None else x, go.Figure()
    style.add_band(figure, [*map(float, x)], y - 1, y + 1, style.BLUE, "a")
    about = [["a", int(step)] for step in x]
    figure.add_scatter(x=x, y=y, mode="lines+markers", legendgroup="a", customdata=about, **more)
    return StepAxis(scale, step_unit=StepUnit.UPDATES).draw(figure, x.tolist())


def curve(points: int) -> np.ndarray:
    """Return noise with one narrow peak and one narrow dip."""
    y = np.random.default_rng(0).normal(size=points)
    y[points // 3], y[points // 2] = 50, -50
    return y


@pytest.mark.parametrize("scale", SCALES)
def test_stretches_keep_their_ends_and_extremes(scale):
    """The kept points are exactly those that a loop over the stretches finds; the band keeps the same ones."""
    y = curve(LONG)
    x = np.arange(1, LONG + 1)
    stretch = np.floor(axis_shares(x, scale) * downsampling.STRETCH_COUNT)
    expected = set()
    for number in np.unique(stretch):
        own = np.flatnonzero(stretch == number)
        expected |= {own[0], own[-1], own[y[own].argmin()], own[y[own].argmax()]}
    band, line = downsampled_figure(scale, y).data
    assert (line.x - 1).tolist() == sorted(expected) and len(expected) < LONG / 3
    assert line.y.tolist() == y[line.x - 1].tolist() and {50, -50} <= {*line.y}
    assert [step for _, step in line.customdata] == line.x.tolist()
    assert band.x.tolist() == [*line.x, *line.x[::-1]]
    assert band.y.tolist() == [*(line.y + 1), *(line.y - 1)[::-1]]


@pytest.mark.parametrize("points", [2, 4 * downsampling.STRETCH_COUNT])
def test_short_curves_are_drawn_whole(points):
    """Their figure is not recorded as downsampled."""
    figure = downsampled_figure("linear", np.arange(float(points)))
    assert len(figure.data[1].x) == points and len(figure.data[0].x) == 2 * points
    assert downsampling.longest(figure) is None


def test_downsampled_figure_records_its_number_of_points():
    """Captions read the number from it."""
    assert downsampling.longest(downsampled_figure("log", curve(LONG))) == LONG


def test_breaks_of_curves_are_kept():
    """A point without a value is never left out, whatever else its stretch has."""
    y = curve(LONG)
    y[777] = np.nan
    x = downsampled_figure("linear", y).data[1].x
    assert 778 in x and np.isnan(downsampled_figure("linear", y).data[1].y[x == 778]).all()


def test_marker_sizes_stay_with_their_points():
    """Here each point has its own size."""
    sizes = np.arange(LONG) % 7
    line = downsampled_figure("linear", curve(LONG), marker={"size": sizes}).data[1]
    assert line.marker.size.tolist() == sizes[line.x - 1].tolist()


def test_curve_that_goes_back_is_drawn_whole():
    """Its points are not sorted along the axis, so there are no stretches."""
    x = np.concatenate([np.arange(1, LONG // 2 + 1)] * 2)
    assert len(downsampled_figure("linear", curve(LONG), x).data[1].x) == LONG
