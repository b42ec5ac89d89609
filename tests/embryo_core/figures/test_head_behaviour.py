"""Tests of the figures of head behaviour, which draw the tables of its scores."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from embryo_core.curves.step_scales import SCALES
from embryo_core.errors import FigureError
from embryo_core.figures import head_behaviour as charts
from embryo_core.figures import patterns
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.style import layer_colours
from embryo_core.types import Run, StepUnit
from tests.app.conftest import words_of
from tests.behaving import PREVIOUS, STEPS, behaviour_scores

LOG = StepAxis("log", step_unit=StepUnit.UPDATES)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return scores as the page uses them."""
    return patterns.behaviour_curves(behaviour_scores())


def test_unmeasured_pattern_is_an_error(tiny_run: Run) -> None:
    """This holds for each of the three figures; the error names the pattern and the run."""
    for make, options in (
        (charts.at_step, {"step": 0}),
        (charts.over_steps, {"change": 0.05}),
        (charts.presence, {"change": 0.05}),
    ):
        with pytest.raises(FigureError, match=r"Previous token.*tiny"):
            make([tiny_run], AxisChoice(), pattern="previous", selected_head=(1, 1), **options)


def test_grid_has_layers_as_rows_and_heads_as_columns(frame):
    """The lowest layer is at the top; a click on a cell brings its layer and head."""
    rows = patterns.select_pattern(frame, "previous")
    figure = charts.plot_values(rows, "previous", 16, (2, 1))
    heatmap, points = figure.data
    assert heatmap.z.tolist() == [[0.12, 0.10], [0.30, 0.30]]
    assert words_of(heatmap) == [["0.12", "0.10"], ["0.30", "0.30"]]
    assert (heatmap.zmin, heatmap.zmax) == (0.02, 0.5)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    for x, y, (layer, head) in zip(points.x, points.y, points.customdata):
        assert (x, y) == (head, layer)
    (outline,) = figure.layout.shapes
    assert (outline.x0, outline.x1, outline.y0, outline.y1) == (0.5, 1.5, 1.5, 2.5)


def test_earlier_appearances_are_brighter(frame):
    """A head without the pattern has a dash instead of a colour."""
    figure = charts.plot_presence(patterns.appearances(frame, "previous", 0.05), STEPS, (1, 1), LOG)
    z = figure.data[0].z
    assert np.isnan(z[0][0]) and np.isnan(z[1][1])
    assert z[1][0] > z[0][1]
    assert words_of(figure.data[0]) == [["–", "700"], ["8", "–"]]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-3, -1)
    assert [note.text for note in figure.layout.annotations] == ["–", "–"]


def test_pattern_of_no_head_is_drawn_empty(frame):
    """No head's weight rises by 0.9, so every cell is without a colour."""
    figure = charts.plot_presence(patterns.appearances(frame, "previous", 0.9), STEPS, (1, 1), LOG)
    assert np.isnan(figure.data[0].z).all()


@pytest.mark.parametrize("scale", SCALES)
def test_curves_show_each_head_once(frame, scale):
    """Points carry layer, head and step; only the chosen head is named, with a star where its pattern appears."""
    rows, axis = patterns.select_pattern(frame, "previous"), StepAxis(scale, step_unit=StepUnit.UPDATES)
    figure = charts.plot_heads(rows, patterns.baseline(frame), "previous", 0.05, (2, 1), axis)
    *lines, star = figure.data
    points = {tuple(about[:3]): y for line in lines for about, y in zip(line.customdata, line.y) if len(about)}
    assert points == {(*head, step): v for head, values in PREVIOUS.items() for step, v in zip(STEPS, values)}
    own = next(line for line in lines if line.name == "layer 2, head 1")
    assert list(own.y) == PREVIOUS[2, 1]
    drawn = {line.name: line.line.color for line in lines if line is not own}
    assert drawn == {f"layer {layer}": colour for layer, colour in layer_colours([1, 2]).items()}
    assert (star.name, list(star.x), list(star.y)) == ("present since step 8", [8], [0.07])
    without = charts.plot_heads(rows, patterns.baseline(frame), "previous", 0.05, (1, 1), axis)
    assert len(without.data) == len(lines)


def test_other_heads_break_at_gaps(frame):
    """Each of their curves has no line through a missing step."""
    rows, axis = patterns.select_pattern(frame, "previous"), StepAxis("linear", gaps=(5,), step_unit=StepUnit.UPDATES)
    figure = charts.plot_heads(rows, patterns.baseline(frame), "previous", 0.05, (2, 1), axis)
    for line in (line for line in figure.data if line.name in ("layer 1", "layer 2")):
        assert list(line.x).count(None) == 2 * list(line.x).count(0) and list(line.x[:3]) == [0, None, 8]


@pytest.mark.parametrize(("unit", "at"), [(StepUnit.UPDATES, "step 1,000"), (StepUnit.WORDS, "1,000 words")])
def test_caption_names_the_first_head_of_each_layer(unit: StepUnit, at: str):
    """Steps are in the run's unit; layers are in the order in which they acquire the pattern."""
    frame, axis = pd.DataFrame({"step": [0, 1000]}), StepAxis("log", step_unit=unit)
    since = pd.DataFrame({"layer": [1, 1, 2], "head": [1, 2, 1], "step": [None, 1000.0, 8.0]})
    rule, heads = charts.describe_presence(frame, 0.1, since, axis)
    assert "at least 0.1 above" in rule and heads.index("layer 2") < heads.index(f"layer 1 at {at} (head 2)")
    _, none = charts.describe_presence(frame, 0.1, since[:1], axis)
    assert "none shows the pattern" in none


def test_figures_have_the_rows_that_they_draw(tiny_results):
    """The grids have a row for each of the four heads, and the curves cover every step."""
    what, layer, head = patterns.strongest(patterns.read_behaviour(tiny_results))
    chosen = {"pattern": what, "selected_head": (layer, head)}
    cells = charts.at_step([tiny_results], AxisChoice(), step=16, **chosen)
    curves = charts.over_steps([tiny_results], AxisChoice(), change=0.05, **chosen)
    assert len(cells.table) == 4 and set(cells.table["step"]) == {16} and cells.suffix == "step16"
    assert f"n = {cells.table['n'].max():,}" in cells.caption.data and not cells.headline
    assert set(curves.table["step"]) == {0, 8, 16} and f"Layer {layer}, head {head}" in curves.caption.summary
    assert len(charts.presence([tiny_results], AxisChoice(), change=0.05, **chosen).table) == 4


def test_single_pattern_is_read_with_its_baseline(tiny_results):
    """Its rows equal those of the whole table; a second call shares the memory of the first and reads no table."""
    whole, own = patterns.read_behaviour(tiny_results), patterns.read_behaviour(tiny_results, "previous")
    of_one, of_all = (patterns.select_pattern(frame, "previous").reset_index(drop=True) for frame in (own, whole))
    assert_frame_equal(of_one, of_all)
    assert len(own) and set(own["what"]) <= {"previous", patterns.BASELINE}
    assert patterns.baseline(own) == patterns.baseline(whole)
    assert np.shares_memory(patterns.read_behaviour(tiny_results, "previous")["value"], own["value"])
