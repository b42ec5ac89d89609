"""Tests of the tables of probe scores, which hold the stored numbers."""

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


def test_rows_have_all_scores_of_a_task_layer_and_step(frame) -> None:
    """The paper's tasks come first, then layers and steps in order; scores that were not measured are missing."""
    assert list(frame["task"].unique()) == ["pos", "srl", "mine"]
    assert len(frame) == len(F1) * len(STEPS)
    assert list(frame["layer"][:5]) == [0, 0, 0, 0, 1] and list(frame["step"][:4]) == STEPS
    row = frame[(frame["task"] == "srl") & (frame["layer"] == 1) & (frame["step"] == 8)].iloc[0]
    assert (row["f1"], row["control"], row["majority"], row["n"]) == (0.6, 0.25, 0.2, 100)
    assert row["selectivity"] == pytest.approx(0.35)
    assert frame.loc[frame["task"] == "mine", ["control", "selectivity"]].isna().all(axis=None)


def test_scores_of_other_metrics_give_no_rows(scores) -> None:
    """An empty table gives none either."""
    assert probing_scores.probe_scores(scores[scores["metric"] == "mask_prediction"]).empty
    assert probing_scores.probe_scores(scores[:0]).empty


def test_best_layer_is_chosen_at_each_step(frame) -> None:
    """It is the lowest of the layers with the highest F1; the last layer is the highest of the model."""
    best = probing_scores.select_layer(frame, probing_scores.BEST)
    assert list(best.loc[best["task"] == "pos", "layer"]) == [0, 1, 1, 2]
    assert list(best.loc[best["task"] == "pos", "f1"]) == [0.5, 0.6, 0.8, 0.8]
    assert set(probing_scores.select_layer(frame, probing_scores.LAST)["layer"]) == {2}
    assert list(probing_scores.select_layer(frame, 1)["f1"]) == [*F1["pos", 1], *F1["srl", 1], *F1["mine", 1]]


def test_masked_accuracy_is_listed_with_the_tasks(frame) -> None:
    """Masked accuracy comes from held-out rows of the log, with a separate n, interval and note on its data."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), LOG, rescaled=False)
    masked = data[data["task"] == probing_scores.MASKED_ACCURACY]
    assert list(masked["step"]) == [0, 8] and list(masked["value"]) == [0.0, 0.2]
    assert (
        set(masked["data"]) == {probing_scores.HELD_OUT_NOTE} and data.loc[data["task"] == "srl", "data"].isna().all()
    )
    assert list(masked["high"]) == pytest.approx(list(curves.interval([0.0, 0.2], [900, 900])[1]))


@pytest.mark.parametrize("log", [pd.DataFrame(), LOG.drop(columns="n_masked"), LOG[LOG["split"] == "train"]])
def test_log_without_held_out_accuracy_leaves_only_tasks(frame, log) -> None:
    """The log is empty, does not count masked pieces, or has no held-out rows."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), log, rescaled=False)
    assert set(data["task"]) == set(N)


def test_rescaled_curves_end_at_one(frame) -> None:
    """Each curve is divided by its own last value."""
    data = probing_scores.task_curves(probing_scores.select_layer(frame, 1), LOG, rescaled=True)
    assert (data.groupby("task")["shown"].last() == 1).all()
    srl = data[data["task"] == "srl"]
    assert list(srl["shown"]) == pytest.approx([0.6, 0.8, 1.2, 1.0])
    assert list(srl["value"]) == F1["srl", 1]


def test_expected_layer_is_the_mean_weighted_by_gains(frame) -> None:
    """Gains are measured from the majority baseline; a step at which no layer gains is left out."""
    table = probing_scores.expected_layers(frame)
    of = {(row.task, row.step): row.expected for row in table.itertuples()}
    assert of["pos", 0] == pytest.approx((0.3 * 1 + 0.2 * 2) / 0.8)
    assert of["mine", 8] == pytest.approx((0.1 * 1 + 0.2 * 2) / 0.3)
    assert ("mine", 0) not in of and ("mine", 1) not in of and len(of) == 10
    assert list(table["task"].unique()) == ["pos", "srl", "mine"]


def test_expected_layer_has_the_interval_of_its_targets(frame) -> None:
    """The interval is computed from the layers of that task and step with their n."""
    table = probing_scores.expected_layers(frame)
    assert (table["low"] <= table["expected"]).all() and (table["expected"] <= table["high"]).all()
    (row,) = table[(table["task"] == "mine") & (table["step"] == 8)].itertuples()
    layers = frame[(frame["task"] == "mine") & (frame["step"] == 8)]
    interval = curves.expected_layer_interval(layers["f1"], layers["majority"].iloc[0], row.n)
    assert (row.low, row.high) == interval and row.n == layers["n"].iloc[0]


def test_path_has_only_steps_of_both_tasks(frame) -> None:
    """Task "srl" was not probed at step 1, which is left out."""
    less = frame[(frame["task"] != "srl") | (frame["step"] != 1)]
    table = probing_scores.path(probing_scores.select_layer(less, 2), "pos", "srl")
    assert list(table["step"]) == [0, 8, 700]
    assert list(table["f1_x"]) == [0.4, 0.7, 0.8] and list(table["f1_y"]) == [0.3, 0.5, 0.6]
    assert set(table["n_x"]) == {400} and set(table["n_y"]) == {100}
    assert set(table["task_x"]) == {"pos"} and set(table["task_y"]) == {"srl"} and set(table["layer_y"]) == {2}
