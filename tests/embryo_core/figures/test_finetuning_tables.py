"""Tests of the fine-tuning tables, with values computed by hand: scores, shares reached, and correlations."""

import pandas as pd
import pytest

from embryo_core import results, runs
from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.reached import ReachedStep
from embryo_core.figures import finetuning_tables as tables
from embryo_core.figures.axis import StepAxis
from embryo_core.runs import PositionAccuracy
from embryo_core.types import Run, StepUnit

SCORES = pd.DataFrame(
    {
        "task": ["cola", "cola", "cola", "rte", "rte"],
        "metric": ["matthews"] * 3 + ["accuracy"] * 2,
        "step": [0, 8, 16, 0, 8],
        "value": [0.05, 0.3, 0.2, 0.5, 0.51],
        "control": [0.0] * 3 + [0.52] * 2,
        "seeds": [2] * 3 + [1] * 2,
        "n": 50,
    }
)


def test_task_table_has_the_step_of_each_share():
    """Steps come with their interval; a last score not above its control, or not significantly above 0, has none."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    reached = {"cola": [ReachedStep(8, 0, 16), None], "rte": [ReachedStep(0, 0, 0)] * 2}
    table = tables.task_table(SCORES, 8, reached, axis).set_index("task")
    assert table.loc["CoLA", "95 %"] == "8 (0 to 16)" and table.loc["CoLA", "99 %"] == "not significantly above 0"
    assert table.loc["RTE", "95 %"] == table.loc["RTE", "99 %"] == "not above the control"
    assert (table.loc["CoLA", "best"], table.loc["CoLA", "seeds"]) == (8, 2)
    assert (table.loc["CoLA", "now"], table.loc["RTE", "control"]) == pytest.approx((0.3, 0.52))


def test_associations_need_four_steps():
    """Spearman's correlation of four steps is 0.8 if one pair of neighbours is swapped."""
    steps = [0, 1, 2, 4]
    scores = pd.DataFrame({"task": "cola", "step": steps, "value": [0.1, 0.2, 0.4, 0.3]})
    masked = pd.DataFrame({"step": [*steps, 8], "value": [0.1, 0.2, 0.3, 0.4, 0.5]})
    associations = tables.associations(scores, masked)
    assert associations["value"].tolist() == pytest.approx([0.8]) and associations["steps"].tolist() == [4]
    assert tables.associations(scores[:3], masked).empty


def test_associations_have_bonett_and_wright_intervals():
    """n is the number of steps; tied scores are counted, and a task whose scores are all equal has no correlation."""
    steps, masked = [*range(6)], pd.DataFrame({"step": range(6), "value": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    values = {"cola": [0.0, 0.0, 0.0, 0.0, 0.2, 0.1], "rte": [0.5] * 6, "sst2": [0.1, 0.2, 0.3, 0.5, 0.4, 0.6]}
    frame = pd.concat([pd.DataFrame({"task": task, "step": steps, "value": value}) for task, value in values.items()])
    associations = tables.associations(frame, masked).set_index("task")
    expected = rank_agreement(values["sst2"], masked["value"])
    assert associations.loc["sst2", ["value", "low", "high"]].tolist() == [expected.rho, expected.low, expected.high]
    assert associations["tied"].to_dict() == {"cola": 4, "rte": 6, "sst2": 0}
    assert associations.loc["rte", ["value", "low", "high"]].isna().all() and set(associations["steps"]) == {6}


def test_masked_accuracy_comes_from_one_sample():
    """It is the largest sample with all steps, of the shortest sequences, masked as in training, over all positions."""
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
    table = pd.DataFrame(rows, columns=PositionAccuracy._fields)
    assert tables.widest_sample(table, [8]).values.tolist() == [[8, pytest.approx(0.3), 300]]
    sample = tables.widest_sample(table, [8, 16])
    assert sample.values.tolist() == [[8, pytest.approx(0.3), 30], [16, pytest.approx(0.5), 30]]
    assert tables.widest_sample(pd.DataFrame(columns=PositionAccuracy._fields), [8]).empty


def test_caption_has_average_and_unlearned_tasks():
    """The average is at the last step that all tasks have; RTE ends below its control."""
    caption = str(tables.describe_tasks(SCORES, StepUnit.UPDATES))
    assert "GLUE average at step 8: 0.405, over CoLA, RTE" in caption
    assert ": RTE." in caption


def test_caption_names_mostly_tied_scores():
    """Rank correlations of such scores are nearly meaningless; RTE has only two ties."""
    table = pd.DataFrame({"task": ["cola", "rte"], "value": 0.5, "low": 0.1, "high": 0.9, "steps": 19, "tied": [13, 2]})
    caption = tables.describe_associations(table, tables.EVALUATED_ACCURACY)
    assert "CoLA has the same score at 13 of 19 steps" in caption.details and "RTE" not in str(caption)
    assert tables.EVALUATED_ACCURACY in caption.summary


def test_masked_accuracy_comes_from_log_or_mask_prediction(tiny_run: Run, monkeypatch: pytest.MonkeyPatch):
    """Mask prediction is used if the log is empty or lacks the accuracy, as for an added run."""
    scores = pd.DataFrame({"group": ["ADJ", "all"], "step": [8, 8], "value": [0.5, 0.3]})
    monkeypatch.setattr(results, "read_scores", lambda run, metric: scores)
    logged = [{"split": "train", "step": 8}, {"split": "heldout", "step": 8, "masked_lm_accuracy": 0.2}]
    for log, accuracy, value in (
        (logged, tables.LOGGED_ACCURACY, 0.2),
        ([row | {"masked_lm_accuracy": None} for row in logged], tables.EVALUATED_ACCURACY, 0.3),
        ([], tables.EVALUATED_ACCURACY, 0.3),
    ):
        monkeypatch.setattr(runs, "read_log", lambda run, log=log: log)
        masked, named = tables.read_masked_accuracy(tiny_run, [8])
        assert named == accuracy and masked[["step", "value"]].to_numpy().tolist() == [[8, value]]
