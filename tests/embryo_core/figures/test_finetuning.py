"""Scores, averages and histories of fine-tunings are those computed by hand; figures hold every point."""

import pandas as pd
import pytest

from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.reached import Reached
from embryo_core.figures import finetuning as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.runs import Measured
from embryo_core.types import StepUnit

AXIS = StepAxis("log", step_unit=StepUnit.UPDATES)


def rows(task: str, metric: str, values: dict[int, list[float]], control: float) -> list[dict]:
    """Rows of the store: values of each step by seed, and the control's."""
    return [
        {"step": step, "task": task, "seed": seed, "predictor": predictor, "metric": metric, "value": value, "n": 50}
        for step, by_seed in values.items()
        for seed, model in enumerate(by_seed, 1)
        for predictor, value in (("model", model), ("majority", control))
    ]


@pytest.fixture
def frame() -> pd.DataFrame:
    """CoLA with two seeds, RTE with one and a further metric, SQuAD at one step."""
    stored = rows("cola", "matthews", {0: [0.0, 0.1], 8: [0.2, 0.4], 16: [0.1, 0.3]}, 0.0)
    stored += rows("rte", "accuracy", {0: [0.5], 8: [0.6]}, 0.52)
    stored += rows("squad", "f1", {8: [0.3]}, 0.0) + rows("squad", "exact", {8: [0.2]}, 0.0)
    return charts.task_curves(pd.DataFrame(stored))


def test_a_curve_is_the_mean_of_the_seeds_with_its_spread(frame):
    """And of a task's first metric alone."""
    cola = frame[frame["task"] == "cola"].set_index("step")
    assert cola["value"].tolist() == pytest.approx([0.05, 0.3, 0.2])
    assert (cola["low"][8], cola["high"][8], cola["seeds"][8], cola["n"][8], cola["control"][8]) == (0.2, 0.4, 2, 50, 0)
    assert frame.loc[frame["task"] == "squad", "metric"].tolist() == ["f1"]


def test_exact_match_is_a_curve_of_its_own(frame):
    """Beside SQuAD's F1, and never part of the average over GLUE."""
    exact = frame[frame["task"] == charts.EXACT]
    assert exact[["metric", "value", "n"]].values.tolist() == [["exact", 0.2, 50]]


def test_the_average_is_over_glue_at_steps_that_all_its_tasks_have(frame):
    """SQuAD is none of them; RTE has no step 16."""
    average = charts.average(frame)
    assert average["step"].tolist() == [0, 8]
    assert average["value"].tolist() == pytest.approx([0.275, 0.45])
    assert average["tasks"].iloc[0] == "CoLA, RTE"
    assert charts.average(frame[frame["task"] != "rte"]).empty  # CoLA alone, beside SQuAD


def test_every_task_and_the_average_have_a_colour_of_their_own():
    """Exact match has SQuAD's, and a symbol of its own."""
    tasks = ["cola", "mnli", "mrpc", "qnli", "rte", "squad", charts.EXACT, "sst2", "stsb", charts.AVERAGE]
    found = charts.styles(tasks)
    assert set(found) == set(tasks) and len(set(found.values())) == 10
    assert len({colour for colour, _ in found.values()}) == 9 and found["squad"][0] == found[charts.EXACT][0]
    assert set(charts.styles([charts.EXACT])) == {charts.EXACT}


def test_the_figure_holds_every_point_and_its_control(frame):
    """Each with task and step for a click; the best step is larger."""
    figure = charts.tasks_figure(frame, AXIS)
    cola = next(trace for trace in figure.data if trace.name == "CoLA")
    assert [tuple(one) for one in cola.customdata] == [("cola", 0), ("cola", 8), ("cola", 16)]
    assert list(cola.marker.size) == [6, 11, 6]
    assert {"CoLA, control", "RTE, control", "SQuAD, control", "CoLA, seeds"} <= {trace.name for trace in figure.data}
    assert "RTE, seeds" not in {trace.name for trace in figure.data}


def test_the_table_tells_when_a_share_was_reached(frame):
    """With the interval; a last score that is not above 0 reaches nothing."""
    table = charts.task_table(frame, 8, {"cola": [Reached(8, 0, 16), None]}).set_index("task")
    assert table.loc["CoLA", "95 %"] == "8 (0 to 16)" and table.loc["CoLA", "99 %"] == "last score not surely above 0"
    assert (table.loc["CoLA", "best"], table.loc["CoLA", "seeds"]) == (8, 2)
    assert (table.loc["CoLA", "now"], table.loc["RTE", "control"]) == pytest.approx((0.3, 0.52))


def test_examples_have_the_histories_of_facts():
    """Right from a step on, right and then wrong, both, and never; answers by the names of their labels."""
    answers = {"learned": (0, 1, 1), "forgotten": (1, 0, 0), "oscillating": (1, 0, 1), "never learned": (0, 0, 0)}
    stored = pd.DataFrame(
        [
            {"step": step, "example": i, "gold": 1.0, "answer": float(right[place])}
            for i, right in enumerate(answers.values())
            for place, step in enumerate((0, 8, 16))
        ]
    )
    found = charts.histories(stored)
    assert found["history"].tolist() == list(answers)
    assert found.loc[1, [0, 8, 16, "gold"]].tolist() == [1, 0, 0, 1]
    named = charts.histories(stored, ["no", "yes"])
    assert named["history"].tolist() == list(answers)
    assert named.loc[1, ["gold", 0, 8]].tolist() == ["yes", "yes", "no"]


def test_questions_show_their_answers_where_the_paragraphs_are_known():
    """Else how near they come; right is an exact match."""
    rows = [(0, "q", 0, 0, 0.0, 0.0), (8, "q", 0, 3, 0.0, 0.5), (16, "q", 4, 7, 1.0, 1.0)]
    spans = pd.DataFrame(rows, columns=["step", "question", "start", "end", "exact", "f1"])
    found = charts.span_histories(spans, pd.Series({"q": "The hen broods."}))
    assert found.loc["q"].tolist() == ["learned", "(none)", "The", "hen"]
    assert charts.span_histories(spans, None).loc["q"].tolist() == ["learned", 0.0, 0.5, 1.0]


def test_values_have_no_history():
    """Nothing is right or wrong in a regression."""
    stored = pd.DataFrame({"step": [0, 8], "example": 0, "gold": 2.5, "answer": [2.512, 1.0]})
    assert charts.values(stored).loc[0].to_dict() == {"gold": 2.5, 0: 2.51, 8: 1.0}
    short = stored.astype({"gold": "float32", "answer": "float32"})  # as they are stored
    assert charts.values(short).loc[0].to_dict() == {"gold": 2.5, 0: 2.51, 8: 1.0}


def test_a_long_series_shows_some_steps_and_the_chosen_one():
    """Histories are of all steps; columns are named once they are chosen."""
    stored = pd.DataFrame({"step": range(100), "example": 0, "gold": 1.0, "answer": [*[0.0] * 60, 1.0, *[0.0] * 39]})
    table = charts.histories(stored)
    assert table.loc[0, "history"] == "forgotten" and len(table.columns) == 102
    shown = charts.with_some_steps(table, 60, StepUnit.UPDATES)
    steps = [int(name.removeprefix("step ")) for name in shown.columns[2:]]
    assert list(shown.columns[:2]) == ["gold", "history"] and shown.loc[0, "step 60"] == 1
    assert steps == sorted(steps) and {0, 60, 99} <= {*steps} and charts.COLUMNS <= len(steps) <= charts.COLUMNS + 1
    assert charts.with_some_steps(table[["gold", "history", 3, 60]], 60, StepUnit.UPDATES).columns[2:].tolist() == [
        "step 3",
        "step 60",
    ]


def test_published_scores_of_albert_are_lines_of_their_own(frame):
    """SQuAD's version shows in how often no answer is right; what was not published has no line."""
    squad = frame[frame["task"] == "squad"]
    assert charts.published("squad", squad) == 0.893
    assert charts.published("squad", squad.assign(control=0.5)) == 0.8
    assert charts.published(charts.EXACT, squad.assign(control=0.0003)) == 0.823  # three answers of 1.1 are "."
    assert charts.published(charts.EXACT, squad.assign(control=0.5)) == 0.771
    assert charts.published("cola", frame[frame["task"] == "cola"]) is None
    lines = {trace.name: trace for trace in charts.tasks_figure(frame, AXIS).data}
    assert list(lines["SQuAD, ALBERT-base"].y) == [0.893, 0.893]
    assert not any(name.startswith("CoLA, ALBERT") for name in lines)


def test_associations_need_four_steps():
    """Spearman's correlation of what rises and what rises, but for one pair, is 0.8."""
    steps = [0, 1, 2, 4]
    scores = pd.DataFrame({"task": "cola", "step": steps, "value": [0.1, 0.2, 0.4, 0.3]})
    masked = pd.DataFrame({"step": [*steps, 8], "value": [0.1, 0.2, 0.3, 0.4, 0.5]})
    found = charts.associations(scores, masked)
    assert found["value"].tolist() == pytest.approx([0.8]) and found["steps"].tolist() == [4]
    assert charts.associations(scores[:3], masked).empty


def test_associations_have_the_interval_of_every_rank_correlation():
    """That of Bonett and Wright, n being the steps; equal scores are counted, and have no correlation where all are."""
    steps, masked = [*range(6)], pd.DataFrame({"step": range(6), "value": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    values = {"cola": [0.0, 0.0, 0.0, 0.0, 0.2, 0.1], "rte": [0.5] * 6, "sst2": [0.1, 0.2, 0.3, 0.5, 0.4, 0.6]}
    frame = pd.concat([pd.DataFrame({"task": task, "step": steps, "value": value}) for task, value in values.items()])
    found = charts.associations(frame, masked).set_index("task")
    expected = rank_agreement(values["sst2"], masked["value"])
    assert found.loc["sst2", ["value", "low", "high"]].tolist() == [expected.rho, expected.low, expected.high]
    assert found["tied"].to_dict() == {"cola": 4, "rte": 6, "sst2": 0}
    assert found.loc["rte", ["value", "low", "high"]].isna().all() and set(found["steps"]) == {6}


def test_lines_of_reference_are_seen_at_a_single_step(frame):
    """A dash each, as a line would have no length; of several steps they are lines."""
    one = {trace.name: trace for trace in charts.tasks_figure(frame[frame["step"] == 8], AXIS).data}
    several = {trace.name: trace for trace in charts.tasks_figure(frame, AXIS).data}
    for name in ("CoLA, control", "RTE, control"):
        assert one[name].mode == "markers" and one[name].marker.symbol == "line-ew" and one[name].marker.line.width
        assert several[name].mode == "lines"
    assert one["SQuAD, ALBERT-base"].mode == "markers"


def test_a_fine_tunings_curve_has_two_lines_for_each_seed():
    """Loss and score."""
    curve = pd.DataFrame({"seed": [1, 1, 2], "update": [3, 6, 3], "train_loss": 0.5, "dev_score": 0.1})
    figure = charts.curve_figure(curve, "matthews")
    assert len(figure.data) == 4 and list(figure.data[0].x) == [3, 6]
    assert list(figure.layout.xaxis.tickvals) == [0, 3, 6]
    long = pd.DataFrame({"seed": 1, "update": range(1, 40), "train_loss": 0.5, "dev_score": 0.1})
    assert charts.curve_figure(long, "matthews").layout.xaxis.tickvals is None


def test_masked_accuracy_is_of_one_sample():
    """The largest that all steps have, over all positions of the shortest sequences, masked as in training."""
    rows = [
        (8, 64, "training", 0, 31, 0.5, 10, 30),
        (8, 64, "training", 32, 63, 0.2, 20, 30),
        (8, 64, "training", 0, 31, 0.1, 100, 300),
        (8, 64, "training", 32, 63, 0.4, 200, 300),
        (8, 128, "training", 0, 63, 0.9, 900, 900),
        (8, 64, "single pieces 15 %", 0, 63, 0.8, 800, 800),
        (16, 64, "training", 0, 31, 0.3, 10, 30),
        (16, 64, "training", 32, 63, 0.6, 20, 30),
    ]
    table = pd.DataFrame(rows, columns=Measured._fields)
    assert charts.widest_sample(table, [8]).values.tolist() == [[8, pytest.approx(0.3), 300]]
    found = charts.widest_sample(table, [8, 16])
    assert found.values.tolist() == [[8, pytest.approx(0.3), 30], [16, pytest.approx(0.5), 30]]
    assert charts.widest_sample(pd.DataFrame(columns=Measured._fields), [8]).empty
