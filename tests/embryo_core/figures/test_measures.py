"""Held-out accuracy by length and position is drawn as it was measured, with Wilson's intervals."""

import pandas as pd
import pytest
from scipy.stats import binomtest

from embryo_core import runs
from embryo_core.figures import measures as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.captions import measures as captions
from embryo_core.types import StepUnit

SINGLE = "single pieces 15 %"


@pytest.fixture
def table() -> pd.DataFrame:
    """Two lengths at two steps, masked in two ways."""
    groups = {(64, 0): (0.25, 400), (128, 0): (0.3, 200), (128, 64): (0.2, 100)}
    rows = [
        runs.Measured(step, length, masking, first, first + 63, accuracy * (step / 8), n, 400 if length == 64 else 300)
        for masking in ("training", SINGLE)
        for step in (4, 8)
        for (length, first), (accuracy, n) in groups.items()
    ]
    return pd.DataFrame(rows, columns=runs.Measured._fields)


def test_every_line_is_what_was_measured(table: pd.DataFrame):
    """By its name, with its interval and n in the hover, and the baseline across."""
    data = charts.curves_of(table, SINGLE)
    figure = charts.figure(data, StepAxis("linear", step_unit=StepUnit.UPDATES), ("always “the”", 0.05))
    drawn = {line.name: line for line in figure.data if line.mode == "lines+markers"}
    assert {name: list(line.y) for name, line in drawn.items()} == {
        "64 tokens, positions 0 to 63": [0.125, 0.25],
        "128 tokens, positions 0 to 63": [0.15, 0.3],
        "128 tokens, positions 64 to 127": [0.1, 0.2],
    }
    for line in drawn.values():
        for (_, low, high, n), value in zip(line.customdata.tolist(), line.y, strict=True):
            assert (low, high) == pytest.approx(binomtest(round(value * n), n).proportion_ci(method="wilson"))
    (baseline,) = [line for line in figure.data if line.name == "always “the”"]
    assert set(baseline.y) == {0.05}


def test_single_pieces_come_first(table: pd.DataFrame):
    """As in training comes last, and an unknown way of masking is drawn too."""
    more = pd.concat([table, table.assign(masking="whole words 15 %")], ignore_index=True)
    assert charts.maskings(more) == [SINGLE, "whole words 15 %", "training"]
    assert charts.curves_of(table, "whole words 15 %").empty


def larger(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Eight steps, at the first so many of them measures of a hundred times as many pieces, one point higher."""
    long = pd.concat([table[table["step"] == 8].assign(step=step) for step in range(1, 9)])
    more = long[long["step"] <= steps]
    more = more.assign(accuracy=more["accuracy"] + 0.01, n=100 * more["n"], sample=100 * more["sample"])
    return pd.concat([long, more], ignore_index=True)


def test_a_curve_is_of_one_sample(table: pd.DataFrame):
    """Of the largest where that has a quarter of the steps; of longer sequences the sample of the same place."""
    both = larger(table, steps=5)
    assert charts.samples(both, SINGLE) == [40_000, 400]
    of_more, of_fewer = charts.curves_of(both, SINGLE), charts.curves_of(both, SINGLE, 400)
    pd.testing.assert_frame_equal(of_more, charts.curves_of(both, SINGLE, 40_000))
    assert of_more.groupby("curve", sort=False)["value"].agg(["count", "max"]).to_numpy().tolist() == [
        [5, pytest.approx(value + 0.01)] for value in (0.25, 0.3, 0.2)
    ]
    pd.testing.assert_frame_equal(of_fewer, charts.curves_of(larger(table, steps=0), SINGLE))
    assert charts.samples(larger(table, steps=2), SINGLE) == [40_000, 400]
    assert charts.samples(larger(table, steps=1), SINGLE) == [400, 40_000]


def test_too_many_samples_are_drawn_as_one(table: pd.DataFrame):
    """Where each step has a sample of its own there is nothing to choose."""
    each = larger(table, steps=0)
    each["sample"] += each["step"]
    assert charts.samples(each, SINGLE) == []
    assert set(charts.curves_of(each, SINGLE)["step"]) == set(range(1, 9))


def test_the_caption_compares_the_ends_of_long_sequences(table: pd.DataFrame):
    """At the last step, with Newcombe's interval of the difference; without two groups it compares nothing."""
    data = charts.curves_of(table, "training")
    said = captions.by_position(data, "training")
    assert said.startswith(
        "In sequences of 128 tokens, positions 64 to 127 are at 20.0 % and positions 0 to 63 at 30.0 %: a difference "
        "of -10.0 points (-19.4 to +0.7). "
    )
    assert "masked as in training" in said and said.endswith("positions 64 to 127 100.")
    short = captions.by_position(data[data["curve"].str.startswith("64")], "training")
    assert short.startswith("Share of masked pieces")
