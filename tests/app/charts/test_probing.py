"""The figures of the Probing page over all tasks draw exactly the numbers of their tables."""

import pandas as pd
import pytest

from app.charts import probing as charts
from app.charts import style
from app.charts.step_axis import STEP_MARK, StepAxis
from embryo_core import curves
from embryo_core.curves import SCALES

STEPS = [0, 1, 8, 700]
F1 = {  # two tasks of the paper and one of one's own, three layers
    ("srl", 0): [0.30, 0.30, 0.40, 0.40],
    ("srl", 1): [0.30, 0.40, 0.60, 0.50],
    ("srl", 2): [0.30, 0.50, 0.50, 0.60],
    ("mine", 0): [0.20, 0.20, 0.20, 0.30],
    ("mine", 1): [0.10, 0.20, 0.30, 0.30],
    ("mine", 2): [0.20, 0.20, 0.40, 0.30],
    ("pos", 0): [0.50, 0.50, 0.60, 0.60],
    ("pos", 1): [0.50, 0.60, 0.80, 0.70],
    ("pos", 2): [0.40, 0.60, 0.70, 0.80],
}
N = {"pos": 400, "srl": 100, "mine": 50}
LOG = pd.DataFrame(
    {
        "split": ["heldout", "train", "heldout"],
        "step": [0, 4, 8],
        "masked_lm_accuracy": [0.0, 0.1, 0.2],
        "n_masked": [900, None, 900],
    }
)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Scores as the store gives them, among others; one task of one's own has no control."""
    rows = [("mask_prediction", step, None, "noun", 0.5, 10) for step in STEPS]
    for (task, layer), values in F1.items():
        rows += [("edge_probing_f1", step, layer, task, value, N[task]) for step, value in zip(STEPS, values)]
        if task != "mine":
            rows += [("edge_probing_control", step, layer, task, 0.25, N[task]) for step in STEPS]
    rows += [("edge_probing_majority", step, None, task, 0.2, N[task]) for step in STEPS for task in N]
    frame = pd.DataFrame(rows, columns=["metric", "step", "layer", "group", "value", "n"])
    return frame.astype({"layer": "Int64"})


@pytest.fixture
def frame(scores: pd.DataFrame) -> pd.DataFrame:
    return charts.probe_scores(scores)


def named(figure, name: str):
    """The trace of this name in the legend."""
    return next(trace for trace in figure.data if trace.name == name)


# === Tables ===


def test_a_row_has_all_scores_of_a_task_layer_and_step(frame) -> None:
    """The paper's tasks come first, then layers and steps in order; what was not measured is missing."""
    assert list(frame["task"].unique()) == ["pos", "srl", "mine"]
    assert len(frame) == len(F1) * len(STEPS)
    assert list(frame["layer"][:5]) == [0, 0, 0, 0, 1] and list(frame["step"][:4]) == STEPS
    row = frame[(frame["task"] == "srl") & (frame["layer"] == 1) & (frame["step"] == 8)].iloc[0]
    assert (row["f1"], row["control"], row["majority"], row["n"]) == (0.6, 0.25, 0.2, 100)
    assert row["selectivity"] == pytest.approx(0.35)
    assert frame.loc[frame["task"] == "mine", ["control", "selectivity"]].isna().all(axis=None)


def test_without_probing_there_is_no_row(scores) -> None:
    """Scores of other metrics are none of probing, nor is an empty table."""
    assert charts.probe_scores(scores[scores["metric"] == "mask_prediction"]).empty
    assert charts.probe_scores(scores[:0]).empty


def test_the_best_layer_is_chosen_at_each_step(frame) -> None:
    """By F1, the lowest of equal ones; the last is the highest of the model."""
    best = charts.of_layer(frame, charts.BEST)
    assert list(best.loc[best["task"] == "pos", "layer"]) == [0, 1, 1, 2]
    assert list(best.loc[best["task"] == "pos", "f1"]) == [0.5, 0.6, 0.8, 0.8]
    assert set(charts.of_layer(frame, charts.LAST)["layer"]) == {2}
    assert list(charts.of_layer(frame, 1)["f1"]) == [*F1["pos", 1], *F1["srl", 1], *F1["mine", 1]]


def test_masked_accuracy_stands_among_the_tasks(frame) -> None:
    """Held-out rows of the log only, with their own n and interval like the tasks."""
    data = charts.task_curves(charts.of_layer(frame, 1), LOG, rescaled=False)
    masked = data[data["task"] == charts.MASKED]
    assert list(masked["step"]) == [0, 8] and list(masked["value"]) == [0.0, 0.2]
    assert list(masked["high"]) == pytest.approx(list(curves.interval([0.0, 0.2], [900, 900])[1]))


@pytest.mark.parametrize("log", [pd.DataFrame(), LOG.drop(columns="n_masked"), LOG[LOG["split"] == "train"]])
def test_a_log_without_held_out_text_leaves_the_tasks(frame, log) -> None:
    """A run without a log, or without a held-out part, has no masked accuracy to show."""
    data = charts.task_curves(charts.of_layer(frame, 1), log, rescaled=False)
    assert set(data["task"]) == set(N)
    assert len(charts.tasks_figure(data, StepAxis("log"), False, True).data)


def test_rescaled_curves_end_at_one(frame) -> None:
    """Each is divided by its own last value."""
    data = charts.task_curves(charts.of_layer(frame, 1), LOG, rescaled=True)
    assert (data.groupby("task")["shown"].last() == 1).all()
    srl = data[data["task"] == "srl"]
    assert list(srl["shown"]) == pytest.approx([0.6, 0.8, 1.2, 1.0])
    assert list(srl["value"]) == F1["srl", 1]


def test_the_expected_layer_of_each_task_and_step(frame) -> None:
    """As computed for the layers of one step; a step without a gain is left out."""
    table = charts.expected_layers(frame)
    of = {(row.task, row.step): row.expected for row in table.itertuples()}
    assert of["pos", 0] == pytest.approx((0.3 * 1 + 0.2 * 2) / 0.8)
    assert of["mine", 8] == pytest.approx((0.1 * 1 + 0.2 * 2) / 0.3)
    assert ("mine", 0) not in of and ("mine", 1) not in of and len(of) == 10
    assert list(table["task"].unique()) == ["pos", "srl", "mine"]


def test_a_path_has_the_steps_of_both_tasks(frame) -> None:
    """A step at which one was not probed is left out."""
    less = frame[(frame["task"] != "srl") | (frame["step"] != 1)]
    table = charts.path(charts.of_layer(less, 2), "pos", "srl")
    assert list(table["step"]) == [0, 8, 700]
    assert list(table["f1_x"]) == [0.4, 0.7, 0.8] and list(table["f1_y"]) == [0.3, 0.5, 0.6]
    assert set(table["n_x"]) == {400} and set(table["n_y"]) == {100}


# === Figures ===


def test_the_first_figure_draws_the_table(frame) -> None:
    """The measured line with points, a band and a dashed majority for each task; a point knows its step."""
    data = charts.task_curves(charts.of_layer(frame, charts.BEST), LOG, rescaled=False)
    figure = charts.tasks_figure(data, StepAxis("linear"), False, True)
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
    data = charts.task_curves(charts.of_layer(frame, 0), LOG, rescaled=False)
    assert any(trace.fill for trace in charts.tasks_figure(data, StepAxis("log"), False, True).data)
    assert not any(trace.fill for trace in charts.tasks_figure(data, StepAxis("log"), False, False).data)


def test_bands_and_baselines_are_rescaled_with_the_curve(frame) -> None:
    """Each by the last value of its task."""
    data = charts.task_curves(charts.of_layer(frame, 1), LOG[:0], rescaled=True)
    figure = charts.tasks_figure(data, StepAxis("log"), True, True)
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
    figure = charts.expected_figure(charts.expected_layers(frame), STEPS, 2, StepAxis("log"))
    assert list(named(figure, "all layers alike").y) == [1, 1]
    assert len(named(figure, "mine").x) == 2


def test_a_ring_follows_the_step_along_the_path(frame) -> None:
    """It is drawn on the point of the last step, and told where those of the others are."""
    table = charts.path(charts.of_layer(frame, 2), "pos", "srl")
    figure = charts.path_figure(table, "pos", "srl")
    (line,), (ring,) = figure.data, figure.layout.shapes
    assert [point[0] for point in line.customdata] == figure.layout.meta["steps"] == STEPS
    assert figure.layout.meta["points"] == [[x, y] for x, y in zip(line.x, line.y)]
    assert ring.name == STEP_MARK and (ring.xanchor, ring.yanchor) == (line.x[-1], line.y[-1])
    assert list(line.marker.colorbar.ticktext) == ["0", "1", "8", "700"]


@pytest.mark.parametrize("scale", SCALES)
def test_one_checkpoint_is_enough_for_every_figure(frame, scale) -> None:
    """A run that has just begun: each task is one point, at the place of step 0."""
    first, axis = frame[frame["step"] == 0], StepAxis(scale)
    tasks = charts.task_curves(charts.of_layer(first, charts.BEST), LOG[:1], rescaled=True)
    expected = charts.expected_layers(first)
    figures = [charts.tasks_figure(tasks, axis, True, True), charts.expected_figure(expected, [0], 2, axis)]
    for figure, table in zip(figures, (tasks, expected)):
        curves = [trace for trace in figure.data if trace.mode == "lines+markers"]
        assert len(curves) == table["task"].nunique() > 0
        assert all(list(trace.x) == axis.values([0]) and len(trace.y) == 1 for trace in curves)
    path = charts.path(charts.of_layer(first, 0), "pos", "srl")
    (line,) = charts.path_figure(path, "pos", "srl").data
    assert len(path) == len(line.x) == 1
