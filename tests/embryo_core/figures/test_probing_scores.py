"""Tables of what the probes find hold the stored scores."""

import pandas as pd
import pytest

from embryo_core import curves
from embryo_core.figures import probing_scores
from tests.probe_scores import F1, LOG, STEPS, N, stored_scores


@pytest.fixture
def scores() -> pd.DataFrame:
    return stored_scores()


@pytest.fixture
def frame(scores: pd.DataFrame) -> pd.DataFrame:
    return probing_scores.probe_scores(scores)


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
    assert probing_scores.probe_scores(scores[scores["metric"] == "mask_prediction"]).empty
    assert probing_scores.probe_scores(scores[:0]).empty


def test_the_best_layer_is_chosen_at_each_step(frame) -> None:
    """By F1, the lowest of equal ones; the last is the highest of the model."""
    best = probing_scores.select_layer(frame, probing_scores.BEST)
    assert list(best.loc[best["task"] == "pos", "layer"]) == [0, 1, 1, 2]
    assert list(best.loc[best["task"] == "pos", "f1"]) == [0.5, 0.6, 0.8, 0.8]
    assert set(probing_scores.select_layer(frame, probing_scores.LAST)["layer"]) == {2}
    assert list(probing_scores.select_layer(frame, 1)["f1"]) == [*F1["pos", 1], *F1["srl", 1], *F1["mine", 1]]


def test_masked_accuracy_stands_among_the_tasks(frame) -> None:
    """Held-out rows of the log only, with their own n and interval like the tasks."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), LOG, rescaled=False)
    masked = data[data["task"] == probing_scores.MASKED]
    assert list(masked["step"]) == [0, 8] and list(masked["value"]) == [0.0, 0.2]
    assert set(masked["data"]) == {probing_scores.HELD_OUT} and data.loc[data["task"] == "srl", "data"].isna().all()
    assert list(masked["high"]) == pytest.approx(list(curves.interval([0.0, 0.2], [900, 900])[1]))


@pytest.mark.parametrize("log", [pd.DataFrame(), LOG.drop(columns="n_masked"), LOG[LOG["split"] == "train"]])
def test_a_log_without_held_out_text_leaves_the_tasks(frame, log) -> None:
    """A run without a log, or without a held-out part, has no masked accuracy to show."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), log, rescaled=False)
    assert set(data["task"]) == set(N)


def test_rescaled_curves_end_at_one(frame) -> None:
    """Each is divided by its own last value."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), LOG, rescaled=True)
    assert (data.groupby("task")["shown"].last() == 1).all()
    srl = data[data["task"] == "srl"]
    assert list(srl["shown"]) == pytest.approx([0.6, 0.8, 1.2, 1.0])
    assert list(srl["value"]) == F1["srl", 1]


def test_the_expected_layer_of_each_task_and_step(frame) -> None:
    """As computed for the layers of one step; a step without a gain is left out."""
    table = probing_scores.expected_layers(frame)
    of = {(row.task, row.step): row.expected for row in table.itertuples()}
    assert of["pos", 0] == pytest.approx((0.3 * 1 + 0.2 * 2) / 0.8)
    assert of["mine", 8] == pytest.approx((0.1 * 1 + 0.2 * 2) / 0.3)
    assert ("mine", 0) not in of and ("mine", 1) not in of and len(of) == 10
    assert list(table["task"].unique()) == ["pos", "srl", "mine"]


def test_the_expected_layer_has_the_interval_of_its_own_targets(frame) -> None:
    """As computed from the layers of that task and step, on its n."""
    table = probing_scores.expected_layers(frame)
    assert (table["low"] <= table["expected"]).all() and (table["expected"] <= table["high"]).all()
    (row,) = table[(table["task"] == "mine") & (table["step"] == 8)].itertuples()
    layers = frame[(frame["task"] == "mine") & (frame["step"] == 8)]
    interval = curves.expected_layer_interval(layers["f1"], layers["majority"].iloc[0], row.n)
    assert (row.low, row.high) == interval and row.n == layers["n"].iloc[0]


def test_a_path_has_the_steps_of_both_tasks(frame) -> None:
    """A step at which one was not probed is left out."""
    less = frame[(frame["task"] != "srl") | (frame["step"] != 1)]
    table = probing_scores.path(probing_scores.select_layer(less, 2), "pos", "srl")
    assert list(table["step"]) == [0, 8, 700]
    assert list(table["f1_x"]) == [0.4, 0.7, 0.8] and list(table["f1_y"]) == [0.3, 0.5, 0.6]
    assert set(table["n_x"]) == {400} and set(table["n_y"]) == {100}
    assert set(table["task_x"]) == {"pos"} and set(table["task_y"]) == {"srl"} and set(table["layer_y"]) == {2}
