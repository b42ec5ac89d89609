"""Tables of fine-tuning are those computed by hand: when shares were reached, and correlations."""

import pandas as pd
import pytest

from embryo_core import results, runs
from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.reached import Reached
from embryo_core.figures import finetuning_tables as tables
from embryo_core.figures.axis import StepAxis
from embryo_core.runs import Measured
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


def test_the_table_says_when_a_share_was_reached():
    """With its interval; a last score that is not above 0 reaches nothing."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    table = tables.task_table(SCORES, 8, {"cola": [Reached(8, 0, 16), None]}, axis).set_index("task")
    assert table.loc["CoLA", "95 %"] == "8 (0 to 16)" and table.loc["CoLA", "99 %"] == "not significantly above 0"
    assert (table.loc["CoLA", "best"], table.loc["CoLA", "seeds"]) == (8, 2)
    assert (table.loc["CoLA", "now"], table.loc["RTE", "control"]) == pytest.approx((0.3, 0.52))


def test_associations_need_four_steps():
    """Spearman's correlation of what rises and what rises, but for one pair, is 0.8."""
    steps = [0, 1, 2, 4]
    scores = pd.DataFrame({"task": "cola", "step": steps, "value": [0.1, 0.2, 0.4, 0.3]})
    masked = pd.DataFrame({"step": [*steps, 8], "value": [0.1, 0.2, 0.3, 0.4, 0.5]})
    found = tables.associations(scores, masked)
    assert found["value"].tolist() == pytest.approx([0.8]) and found["steps"].tolist() == [4]
    assert tables.associations(scores[:3], masked).empty


def test_associations_have_the_interval_of_every_rank_correlation():
    """That of Bonett and Wright, n being the steps; equal scores are counted, and have no correlation where all are."""
    steps, masked = [*range(6)], pd.DataFrame({"step": range(6), "value": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    values = {"cola": [0.0, 0.0, 0.0, 0.0, 0.2, 0.1], "rte": [0.5] * 6, "sst2": [0.1, 0.2, 0.3, 0.5, 0.4, 0.6]}
    frame = pd.concat([pd.DataFrame({"task": task, "step": steps, "value": value}) for task, value in values.items()])
    found = tables.associations(frame, masked).set_index("task")
    expected = rank_agreement(values["sst2"], masked["value"])
    assert found.loc["sst2", ["value", "low", "high"]].tolist() == [expected.rho, expected.low, expected.high]
    assert found["tied"].to_dict() == {"cola": 4, "rte": 6, "sst2": 0}
    assert found.loc["rte", ["value", "low", "high"]].isna().all() and set(found["steps"]) == {6}


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
    assert tables.widest_sample(table, [8]).values.tolist() == [[8, pytest.approx(0.3), 300]]
    found = tables.widest_sample(table, [8, 16])
    assert found.values.tolist() == [[8, pytest.approx(0.3), 30], [16, pytest.approx(0.5), 30]]
    assert tables.widest_sample(pd.DataFrame(columns=Measured._fields), [8]).empty


def test_the_caption_of_tasks_has_the_average_and_what_was_not_learned():
    """The average is over steps that all tasks have."""
    caption = str(tables.describe_tasks(SCORES, StepUnit.UPDATES))
    assert "GLUE average at step 8: 0.405, over CoLA, RTE" in caption
    assert ": RTE." in caption


def test_scores_that_are_mostly_tied_are_named():
    """Next to a correlation that says next to nothing."""
    table = pd.DataFrame({"task": ["cola", "rte"], "value": 0.5, "low": 0.1, "high": 0.9, "steps": 19, "tied": [13, 2]})
    caption = tables.describe_associations(table, tables.EVALUATED)
    assert "CoLA has the same score at 13 of 19 steps" in caption.details and "RTE" not in str(caption)
    assert tables.EVALUATED in caption.summary


def test_masked_accuracy_is_that_of_the_log_or_of_mask_prediction(tiny_run: Run, monkeypatch: pytest.MonkeyPatch):
    """The log of an added run has none."""
    scores = pd.DataFrame({"group": ["ADJ", "all"], "step": [8, 8], "value": [0.5, 0.3]})
    monkeypatch.setattr(results, "read_scores", lambda run, metric: scores)
    logged = [{"split": "train", "step": 8}, {"split": "heldout", "step": 8, "masked_lm_accuracy": 0.2}]
    for log, accuracy, value in (
        (logged, tables.LOGGED, 0.2),
        ([row | {"masked_lm_accuracy": None} for row in logged], tables.EVALUATED, 0.3),
        ([], tables.EVALUATED, 0.3),
    ):
        monkeypatch.setattr(runs, "read_log", lambda run, log=log: log)
        masked, named = tables.read_masked_accuracy(tiny_run, [8])
        assert named == accuracy and masked[["step", "value"]].to_numpy().tolist() == [[8, value]]
