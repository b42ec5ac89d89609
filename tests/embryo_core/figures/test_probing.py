"""The figures of the Probing page over all tasks draw exactly the numbers of their tables."""

import pandas as pd
import pytest

from embryo_core.curves.step_scales import SCALES
from embryo_core.figures import probing as charts
from embryo_core.figures import probing_scores, style
from embryo_core.figures.axis import STEP_MARK, StepAxis
from embryo_core.types import StepUnit
from tests.probe_scores import LOG, STEPS, stored_scores


@pytest.fixture
def frame() -> pd.DataFrame:
    return probing_scores.probe_scores(stored_scores())


def named(figure, name: str):
    """The trace of this name in the legend."""
    return next(trace for trace in figure.data if trace.name == name)


def test_the_first_figure_draws_the_table(frame) -> None:
    """The measured line with points, a band and a dashed majority for each task; a point knows its step."""
    data = probing_scores.task_curves(probing_scores.of_layer(frame, probing_scores.BEST), LOG, rescaled=False)
    figure = charts.tasks_figure(data, StepAxis("linear", step_unit=StepUnit.UPDATES), False, True)
    srl = data[data["task"] == "srl"]
    line = named(figure, "semantic role")
    assert list(line.x) == STEPS and list(line.y) == list(srl["shown"])
    assert [[*point[:2]] for point in line.customdata] == [["srl", step] for step in STEPS]
    assert [point[6] for point in line.customdata] == [", embeddings", ", layer 2", ", layer 1", ", layer 2"]
    drawn = [list(trace.y) for trace in figure.data]
    assert [*srl["high"], *srl["low"][::-1]] in drawn
    assert drawn.count([0.2] * 4) == 3
    assert named(figure, "majority baseline").line.dash == "dash"


def test_bands_can_be_left_out(frame) -> None:
    """Then no trace is filled."""
    data = probing_scores.task_curves(probing_scores.of_layer(frame, 0), LOG, rescaled=False)
    assert any(
        trace.fill for trace in charts.tasks_figure(data, StepAxis("log", step_unit=StepUnit.UPDATES), False, True).data
    )
    assert not any(
        trace.fill
        for trace in charts.tasks_figure(data, StepAxis("log", step_unit=StepUnit.UPDATES), False, False).data
    )


def test_bands_and_baselines_are_rescaled_with_the_curve(frame) -> None:
    """Each by the last value of its task."""
    data = probing_scores.task_curves(probing_scores.of_layer(frame, 1), LOG[:0], rescaled=True)
    figure = charts.tasks_figure(data, StepAxis("log", step_unit=StepUnit.UPDATES), True, True)
    dashed = {round(trace.y[0], 4) for trace in figure.data if trace.line.dash == "dash" and trace.y[0] is not None}
    assert dashed == {round(0.2 / last, 4) for last in (0.7, 0.5, 0.3)}
    srl = data[data["task"] == "srl"]
    assert [*(srl["high"] / 0.5), *(srl["low"] / 0.5)[::-1]] in [list(trace.y) for trace in figure.data]


def test_a_task_looks_the_same_wherever_it_is_drawn() -> None:
    """The paper's four have fixed colours and markers; those of one's own get others."""
    known = charts.task_styles(["mine", "srl", "pos", "more"])
    assert known["pos"] == (style.BLUE, "circle") == charts.task_styles(["pos"])["pos"]
    assert len(set(known.values())) == 4


def test_names_of_tasks_are_never_markup(frame) -> None:
    """A task of one's own is shown letter by letter."""
    assert charts.plain("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert charts.plain("coref") == "coreference"


def test_the_expected_layer_is_compared_with_all_layers_alike(frame) -> None:
    """The dashed line lies half way up the layers; a task has a point at each step that has a value."""
    figure = charts.expected_figure(
        probing_scores.expected_layers(frame), STEPS, 2, StepAxis("log", step_unit=StepUnit.UPDATES)
    )
    assert list(named(figure, "all layers alike").y) == [1, 1]
    assert len(named(figure, "mine").x) == 2


def test_the_band_of_the_expected_layer_is_its_interval(frame) -> None:
    """Up the high ends and back along the low ones; without bands there is none."""
    table, axis = probing_scores.expected_layers(frame), StepAxis("log", step_unit=StepUnit.UPDATES)
    own = table[table["task"] == "pos"]
    band = named(charts.expected_figure(table, STEPS, 2, axis), f"{charts.plain('pos')}, 95 % band")
    assert list(band.y) == [*own["high"], *own["low"][::-1]] and list(own["low"]) != list(own["high"])
    assert not any("band" in trace.name for trace in charts.expected_figure(table, STEPS, 2, axis, bands=False).data)


def test_a_ring_follows_the_step_along_the_path(frame) -> None:
    """It is drawn on the point of the last step, and told where those of the others are."""
    table = probing_scores.path(probing_scores.of_layer(frame, 2), "pos", "srl")
    figure = charts.path_figure(table, "pos", "srl", StepUnit.UPDATES)
    (line,), (ring,) = figure.data, figure.layout.shapes
    assert [point[0] for point in line.customdata] == figure.layout.meta["steps"] == STEPS
    assert figure.layout.meta["points"] == [[x, y] for x, y in zip(line.x, line.y)]
    assert ring.name == STEP_MARK and (ring.xanchor, ring.yanchor) == (line.x[-1], line.y[-1])
    assert list(line.marker.colorbar.ticktext) == ["0", "1", "8", "700"]
    in_words = charts.path_figure(table, "pos", "srl", "words").data[0]
    assert [trace.marker.colorbar.title.text for trace in (line, in_words)] == ["step", "words"]


@pytest.mark.parametrize("scale", SCALES)
def test_one_checkpoint_is_enough_for_every_figure(frame, scale) -> None:
    """A run that has just begun: each task is one point, at the place of step 0."""
    first, axis = frame[frame["step"] == 0], StepAxis(scale, step_unit=StepUnit.UPDATES)
    tasks = probing_scores.task_curves(probing_scores.of_layer(first, probing_scores.BEST), LOG[:1], rescaled=True)
    expected = probing_scores.expected_layers(first)
    figures = [charts.tasks_figure(tasks, axis, True, True), charts.expected_figure(expected, [0], 2, axis)]
    for figure, table in zip(figures, (tasks, expected)):
        curves = [trace for trace in figure.data if trace.mode == "lines+markers"]
        assert len(curves) == table["task"].nunique() > 0
        assert all(list(trace.x) == axis.values([0]) and len(trace.y) == 1 for trace in curves)
    path = probing_scores.path(probing_scores.of_layer(first, 0), "pos", "srl")
    (line,) = charts.path_figure(path, "pos", "srl", StepUnit.UPDATES).data
    assert len(path) == len(line.x) == 1
