"""The figure of divergences draws the stored means with their intervals."""

import pandas as pd
import pytest

from embryo_core.figures import ngrams as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.captions import ngrams as captions
from embryo_core.types import StepUnit


@pytest.fixture
def data() -> pd.DataFrame:
    """Three steps: near to unigrams at 8, to bigrams at 16, then away from both."""
    values = {("unigram", 0): 2.0, ("unigram", 8): 0.01, ("unigram", 16): 1.5}
    values |= {("bigram", 0): 3.0, ("bigram", 8): 0.9, ("bigram", 16): 0.5}
    scores = pd.DataFrame([(*key, value, 70) for key, value in values.items()], columns=["group", "step", "value", "n"])
    return charts.divergences(scores, scores.assign(value=0.1))


def test_intervals_are_two_standard_errors_and_never_negative(data: pd.DataFrame):
    """1.96 standard errors to both sides; a divergence cannot be below 0."""
    rows = data.set_index(["group", "step"])
    assert rows.loc[("unigram", 0), ["low", "high"]].tolist() == pytest.approx([1.804, 2.196], abs=1e-4)
    assert rows.loc[("unigram", 8), "low"] == 0


def test_the_figure_draws_both_curves(data: pd.DataFrame):
    """Each with its band, and a hover that tells n."""
    figure = charts.divergence_figure(data, StepAxis("linear", step_unit=StepUnit.UPDATES))
    lines = {line.name: line for line in figure.data if line.mode == "lines+markers"}
    assert {name: list(line.y) for name, line in lines.items()} == {"unigram": [2, 0.01, 1.5], "bigram": [3, 0.9, 0.5]}
    assert [row[3] for row in lines["bigram"].customdata] == [70] * 3
    assert sum("95 % band" in line.name for line in figure.data) == 2


def test_the_caption_tells_which_phases_show(data: pd.DataFrame):
    """The step nearest to unigrams; the steps surely nearer to bigrams, or that there are none."""
    words = captions.divergence(data, "70 masked pieces", StepUnit.UPDATES)
    assert "single pieces at step 8 (0.01 nats): the unigram phase" in words and "70 masked pieces" in words
    assert "surely nearer to what follows the piece before (bigrams) than to these at step 16." in words
    assert "the first that was evaluated" not in words
    assert "at step 8 (0.01 nats), the first that was evaluated, so" in captions.divergence(
        data[data["step"] >= 8], "", StepUnit.UPDATES
    )
    assert "At no step are they surely nearer" in captions.divergence(data[data["step"] < 16], "", StepUnit.UPDATES)
