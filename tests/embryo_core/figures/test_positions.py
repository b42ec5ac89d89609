"""Tests of the Positions figures: accuracy by length and position, deviations of embeddings, cosines of states."""

import json

import pandas as pd
import pytest
from scipy.stats import binomtest

from embryo_core import runs
from embryo_core.figures import positions
from embryo_core.figures.axis import AxisChoice
from embryo_core.types import Run

SINGLE = "single pieces 15 %"
STEPS = [0, 8, 16]


# === Accuracy by length and position ===


@pytest.fixture
def table() -> pd.DataFrame:
    """Return two lengths at two steps, masked in two ways."""
    groups = {(64, 0): (0.25, 400), (128, 0): (0.3, 200), (128, 64): (0.2, 100)}
    rows = [
        runs.PositionAccuracy(
            step, length, masking, first, first + 63, accuracy * (step / 8), n, 400 if length == 64 else 300
        )
        for masking in ("training", SINGLE)
        for step in (4, 8)
        for (length, first), (accuracy, n) in groups.items()
    ]
    return pd.DataFrame(rows, columns=runs.PositionAccuracy._fields)


def test_rows_hold_measured_accuracies(table: pd.DataFrame) -> None:
    """Wilson's intervals are compared with those of scipy."""
    rows_of_table = positions.position_table(table, SINGLE)
    assert {name: rows["value"].tolist() for name, rows in rows_of_table.groupby("curve", sort=False)} == {
        "64 tokens, positions 0 to 63": [0.125, 0.25],
        "128 tokens, positions 0 to 63": [0.15, 0.3],
        "128 tokens, positions 64 to 127": [0.1, 0.2],
    }
    for row in rows_of_table.itertuples():
        exact = binomtest(round(row.value * row.n), row.n).proportion_ci(method="wilson")
        assert (row.low, row.high) == pytest.approx(exact)


def test_curves_are_sorted_by_length_and_position(own_run: Run) -> None:
    """Each group of positions of each length has a curve; a run without measures has an empty table."""
    assert positions.measure_table(own_run).empty
    groups = [{"first": first, "last": first + 31, "accuracy": 0.25, "n": 40} for first in (0, 32)]
    measures = [{"length": length, "masking": "training", "positions": groups[:n]} for length, n in ((64, 2), (32, 1))]
    row = {"split": "heldout", "step": 8, "masked_lm_loss": 5.6, "masked_lm_accuracy": 0.08, "measures": measures}
    with (own_run.path / "log.jsonl").open("a") as log:
        log.write(json.dumps(row) + "\n")
    figure = positions.accuracy_by_position([own_run], AxisChoice("log"), "training")
    names = [trace.name for trace in figure.plot.data if trace.mode == "lines+markers"]
    assert names == ["32 tokens, positions 0 to 31", "64 tokens, positions 0 to 31", "64 tokens, positions 32 to 63"]
    assert figure.table["n"].tolist() == [40] * 3 and "40 (32 tokens, positions 0 to 31)" in figure.caption.data


def test_masking_single_pieces_comes_first(table: pd.DataFrame) -> None:
    """The masking of training comes last, and an unknown way of masking is offered too."""
    more = pd.concat([table, table.assign(masking="whole words 15 %")], ignore_index=True)
    assert positions.maskings(more) == [SINGLE, "whole words 15 %", "training"]
    assert positions.position_table(table, "whole words 15 %").empty


def larger(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Return eight steps; the first `steps` also have a sample of a hundred times as many pieces, one point higher."""
    long = pd.concat([table[table["step"] == 8].assign(step=step) for step in range(1, 9)])
    more = long[long["step"] <= steps]
    more = more.assign(accuracy=more["accuracy"] + 0.01, n=100 * more["n"], sample=100 * more["sample"])
    return pd.concat([long, more], ignore_index=True)


def test_curves_come_from_one_sample(table: pd.DataFrame) -> None:
    """The largest one is first if it has a quarter of the steps; longer sequences use the sample of the same rank."""
    both = larger(table, steps=5)
    assert positions.samples(both, SINGLE) == [40_000, 400]
    large, small = positions.position_table(both, SINGLE), positions.position_table(both, SINGLE, 400)
    pd.testing.assert_frame_equal(large, positions.position_table(both, SINGLE, 40_000))
    assert large.groupby("curve", sort=False)["value"].agg(["count", "max"]).to_numpy().tolist() == [
        [5, pytest.approx(value + 0.01)] for value in (0.25, 0.3, 0.2)
    ]
    pd.testing.assert_frame_equal(small, positions.position_table(larger(table, steps=0), SINGLE))
    assert positions.samples(larger(table, steps=2), SINGLE) == [40_000, 400]
    assert positions.samples(larger(table, steps=1), SINGLE) == [400, 40_000]


def test_too_many_samples_are_drawn_as_one(table: pd.DataFrame) -> None:
    """If each step has another sample, there is nothing to choose, and one curve has all steps."""
    each = larger(table, steps=0)
    each["sample"] += each["step"]
    assert positions.samples(each, SINGLE) == []
    assert set(positions.position_table(each, SINGLE)["step"]) == set(range(1, 9))


def test_caption_compares_the_ends_of_long_sequences(table: pd.DataFrame) -> None:
    """The difference at the last step has Newcombe's interval; a single group is compared with nothing."""
    rows = positions.position_table(table, "training")
    caption = positions.describe_positions(rows, "training")
    for said in ("positions 64 to 127 are at 20.0 %", "at 30.0 %", "-10.0 points (-19.4 to +0.7)"):
        assert said in caption.summary
    assert "100 (128 tokens, positions 64 to 127)" in caption.data
    short = positions.describe_positions(rows[rows["curve"].str.startswith("64")], "training")
    assert "points" not in str(short)


# === Embeddings and states ===


def rows(metric: str, values: list[float], group: str | None = None, layer: int | None = None) -> pd.DataFrame:
    """Return scores at three steps."""
    return pd.DataFrame({"metric": metric, "group": group, "layer": layer, "step": STEPS, "value": values, "n": 9})


@pytest.fixture
def scores() -> pd.DataFrame:
    """Return scores of a model of 128 positions and two layers."""
    deviations = {
        "words": [0.02, 0.1, 0.2],
        "positions": [0.02, 0.04, 0.1],
        "positions 0 to 63": [0.02, 0.03, 0.14],
        "positions 64 to 127": [0.02, 0.02, 0.02],
    }
    tables = [rows(positions.DEVIATION, values, group=group) for group, values in deviations.items()]
    layers = [rows(positions.COSINE, values, layer=i) for i, values in enumerate([[0.1, 0.2, 0.3], [0.4, 0.9, 0.5]])]
    return pd.concat([*tables, *layers], ignore_index=True)


@pytest.mark.parametrize("metric", [positions.DEVIATION, positions.COSINE])
def test_lines_hold_measured_scores(tiny_results: Run, metric: str) -> None:
    """Each table of embeddings or each layer has a curve of another colour, with n in the hover text."""
    figure = positions.positions([tiny_results], AxisChoice("linear"), metric)
    curves = [trace for trace in figure.plot.data if trace.mode == "lines+markers"]
    assert len(curves) == figure.table["curve"].nunique() == len({curve.line.color for curve in curves}) > 1
    for curve in curves:
        own = figure.table[figure.table["curve"] == curve.customdata[0][0]]
        assert list(curve.y) == list(own["value"]) and f"n = {own['n'].iloc[0]:,}" in curve.customdata[0][2]


def test_all_positions_are_one_curve_if_there_is_one_group(scores: pd.DataFrame) -> None:
    """The only group would be the same line as all positions; several groups are drawn without their total."""
    groups = set(positions.embedding_table(scores, positions.DEVIATION)["curve"])
    assert groups == {"words", "positions 0 to 63", "positions 64 to 127"}
    few = scores[scores["group"] != "positions 64 to 127"]
    assert set(positions.embedding_table(few, positions.DEVIATION)["curve"]) == {"words", "positions"}


def test_captions_name_the_turn(scores: pd.DataFrame, tiny_run: Run) -> None:
    """Positions are smallest relative to words, and states most similar, at step 8; words alone have no turn."""
    caption = positions.describe_deviation(positions.embedding_table(scores, positions.DEVIATION), tiny_run)
    assert all(said in caption.summary for said in ("positions 0 to 63", "step 8 (0.30)", "0.70 at step 16"))
    caption = positions.describe_cosine(positions.embedding_table(scores, positions.COSINE), tiny_run)
    assert "step 8 (0.90), and 0.50 at step 16" in caption.summary and "n = 9 sentences" in caption.data
    alone = scores[(scores["metric"] == positions.DEVIATION) & (scores["group"] == "words")]
    table = positions.embedding_table(alone, positions.DEVIATION)
    assert "step" not in str(positions.describe_deviation(table, tiny_run))
