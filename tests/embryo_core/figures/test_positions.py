"""Figures of positions draw the stored scores, a line for each table of embeddings or each layer."""

import pandas as pd
import pytest

from embryo_core.figures import positions as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.captions import positions as captions
from embryo_core.types import StepUnit

STEPS = [0, 8, 16]


def rows(metric: str, values: list[float], group: str | None = None, layer: int | None = None) -> pd.DataFrame:
    """Scores at three steps."""
    return pd.DataFrame({"metric": metric, "group": group, "layer": layer, "step": STEPS, "value": values, "n": 9})


@pytest.fixture
def scores() -> pd.DataFrame:
    """A model of 128 positions, of two layers."""
    deviations = {
        "words": [0.02, 0.1, 0.2],
        "positions": [0.02, 0.04, 0.1],
        "positions 0 to 63": [0.02, 0.03, 0.14],
        "positions 64 to 127": [0.02, 0.02, 0.02],
    }
    tables = [rows(charts.DEVIATION, values, group=group) for group, values in deviations.items()]
    layers = [rows(charts.COSINE, values, layer=i) for i, values in enumerate([[0.1, 0.2, 0.3], [0.4, 0.9, 0.5]])]
    return pd.concat([*tables, *layers], ignore_index=True)


@pytest.mark.parametrize("metric", [charts.DEVIATION, charts.COSINE])
def test_every_line_is_what_was_measured(scores: pd.DataFrame, metric: str):
    """By its name, at its steps, with n in the hover."""
    data = charts.curves_of(scores, metric)
    figure = charts.figure(data, metric, StepAxis("linear", step_unit=StepUnit.UPDATES))
    drawn = {line.name: list(line.y) for line in figure.data if line.mode == "lines+markers"}
    stored = scores[scores["metric"] == metric]
    by = "group" if metric == charts.DEVIATION else "layer"
    expected = {name: list(own["value"]) for name, own in stored.groupby(by) if name != charts.POSITIONS}
    assert drawn == {charts.label(name if isinstance(name, str) else int(name)): y for name, y in expected.items()}
    points = [line.customdata.tolist() for line in figure.data if line.mode == "lines+markers"]
    assert points == [[[step, 9] for step in STEPS]] * len(drawn)


def test_positions_in_one_group_are_one_line(scores: pd.DataFrame):
    """All together and the only group would be the same line twice."""
    few = scores[scores["group"] != "positions 64 to 127"]
    assert set(charts.curves_of(few, charts.DEVIATION)["curve"]) == {"words", "positions"}


def test_runs_beside_one_another_have_the_same_curves(scores: pd.DataFrame):
    """With a colour for each table or layer, whatever their order."""
    for metric in (charts.DEVIATION, charts.COSINE):
        data = charts.curves_of(scores, metric)
        found = charts.overlay_curves(metric).rows(data)
        assert found["value"].tolist() == data["value"].tolist()
        assert len(set(charts.styles([*dict.fromkeys(found["curve"])]).values())) == found["curve"].nunique()


def test_the_captions_tell_the_turn(scores: pd.DataFrame):
    """Where positions are least beside words, where states are most alike, and n."""
    words = captions.deviation(charts.curves_of(scores, charts.DEVIATION), StepUnit.UPDATES)
    assert "positions 0 to 63, over that of the words, is least at step 8 (0.30), and 0.70 at step 16, the" in words
    words = captions.cosine(charts.curves_of(scores, charts.COSINE), "12 pairs", StepUnit.UPDATES)
    assert "last layer at step 8 (0.90), and 0.50 at step 16, the last." in words and "n = 9 sentences" in words
    alone = scores[(scores["metric"] == charts.DEVIATION) & (scores["group"] == "words")]
    assert "no embedding for each position" in captions.deviation(
        charts.curves_of(alone, charts.DEVIATION), StepUnit.UPDATES
    )
