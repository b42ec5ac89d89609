"""Figures of what heads do hold the stored scores, and say from which step on a pattern is there."""

import numpy as np
import pandas as pd
import pytest

from app.charts import head_behaviour as charts
from app.charts.head_behaviour import PATTERNS
from app.charts.step_axis import StepAxis
from embryo_core.curves import SCALES

STEPS = [0, 8, 16, 700]
PREVIOUS = {  # of each layer and head, at each step
    (1, 1): [0.10, 0.10, 0.12, 0.11],
    (1, 2): [0.10, 0.20, 0.10, 0.40],  # rises, falls back, and rises for good
    (2, 1): [0.02, 0.07, 0.30, 0.30],
    (2, 2): [0.50, 0.40, 0.30, 0.20],
}


@pytest.fixture
def scores() -> pd.DataFrame:
    """Scores as the store reads them: the weight on the previous token, entropy, one link, and the baseline."""
    rows = []
    for (layer, head), values in PREVIOUS.items():
        for step, value in zip(STEPS, values):
            here = {"step": step, "layer": layer, "group": str(head), "n": 50}
            rows.append(here | {"metric": "head_behaviour_previous", "value": value})
            rows.append(here | {"metric": "head_behaviour_entropy", "value": 3 - 2 * value})
            rows.append(here | {"metric": "head_behaviour_dependent_to_head", "value": value, "n": 40})
    for step in STEPS:
        rows.append({"metric": "head_behaviour_fixed_offset", "step": step, "group": "+1", "value": 0.3, "n": 40})
    rows.append({"metric": "mask_prediction", "step": 0, "group": "noun", "value": 0.3, "n": 40})
    return pd.DataFrame(rows).astype({"layer": "Int64"})


@pytest.fixture
def frame(scores) -> pd.DataFrame:
    """The same, as the page uses them."""
    return charts.behaviour_curves(scores)


def test_scores_become_layers_and_heads(frame):
    """The group of a score is the head; of the baseline it is the offset; other metrics are left out."""
    own = charts.of_pattern(frame, "previous")
    got = {(row.layer, row.head, row.step): row.value for row in own.itertuples()}
    assert got == {(*head, step): v for head, values in PREVIOUS.items() for step, v in zip(STEPS, values)}
    assert charts.baseline(frame) == (0.3, 1)
    assert set(frame["what"]) == {"previous", "entropy", "dependent_to_head", "fixed_offset"}


def test_the_strongest_pattern_is_the_highest_weight_at_the_last_step(frame):
    """Entropy is higher and no weight."""
    head = max(PREVIOUS, key=lambda head: PREVIOUS[head][-1])
    assert charts.strongest(frame) == ("previous", *head)
    assert charts.strongest(frame[frame["what"] == "entropy"]) is None


def since(frame, what, change) -> dict:
    """Step by layer and head."""
    return {
        (r.layer, r.head): None if pd.isna(r.step) else r.step
        for r in charts.appearances(frame, what, change).itertuples()
    }


def test_a_pattern_is_there_from_where_it_has_risen_for_good(frame):
    """A rise that is lost again does not count; one that is lost in the end is none."""
    assert since(frame, "previous", 0.05) == {(1, 1): None, (1, 2): 700, (2, 1): 8, (2, 2): None}


def test_a_falling_score_is_there_from_where_it_has_fallen(frame):
    """Entropy sharpens."""
    assert since(frame, "entropy", -0.5) == {(1, 1): None, (1, 2): 700, (2, 1): 16, (2, 2): None}


def test_syntax_is_there_from_where_it_comes_up_to_the_baseline(frame):
    """The baseline is the best fixed offset on the same words, whatever the head did at first."""
    assert since(frame, "dependent_to_head", None) == {(1, 1): None, (1, 2): 700, (2, 1): 16, (2, 2): None}


def test_the_usual_change_is_one_to_choose_and_of_one_direction():
    """Every pattern either rises or falls."""
    for pattern in PATTERNS.values():
        signs = {np.sign(change) for change in pattern.changes if change is not None}
        assert len(signs) == 1 and len(set(pattern.changes)) == len(pattern.changes)
        assert pattern.falls == (signs == {-1})


def test_the_grid_shows_each_head_in_its_place(frame):
    """Rows are layers, the lowest at the top; a click on a cell brings its layer and head."""
    rows = charts.of_pattern(frame, "previous")
    figure = charts.value_figure(rows, "previous", 16, (2, 1))
    heatmap, points = figure.data
    assert heatmap.z.tolist() == [[0.12, 0.10], [0.30, 0.30]]
    assert heatmap.text.tolist() == [["0.12", "0.10"], ["0.30", "0.30"]]
    assert (heatmap.zmin, heatmap.zmax) == (0.02, 0.5)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    for x, y, (layer, head) in zip(points.x, points.y, points.customdata):
        assert (x, y) == (head, layer)
    (outline,) = figure.layout.shapes
    assert (outline.x0, outline.x1, outline.y0, outline.y1) == (0.5, 1.5, 1.5, 2.5)


def test_the_grid_of_appearances_is_brighter_the_earlier(frame):
    """A head without the pattern has no colour and a dash."""
    figure = charts.appearance_figure(charts.appearances(frame, "previous", 0.05), STEPS, (1, 1))
    z = figure.data[0].z
    assert np.isnan(z[0][0]) and np.isnan(z[1][1])
    assert z[1][0] > z[0][1]
    assert figure.data[0].text.tolist() == [["–", "700"], ["8", "–"]]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-3, -1)
    assert [note.text for note in figure.layout.annotations] == ["–", "–"]


def test_appearances_in_no_head_are_drawn_empty(frame):
    """Nothing appears, nothing fails."""
    figure = charts.appearance_figure(charts.appearances(frame, "previous", 0.9), STEPS, (1, 1))
    assert np.isnan(figure.data[0].z).all()


@pytest.mark.parametrize("scale", SCALES)
def test_curves_hold_every_head_once_and_the_chosen_one_by_itself(frame, scale):
    """Points carry layer, head and step; the star stands at the step from which the pattern is there."""
    rows = charts.of_pattern(frame, "previous")
    figure = charts.curves_figure(rows, charts.baseline(frame), "previous", 0.05, (2, 1), StepAxis(scale))
    *lines, star = figure.data
    points = {tuple(about[:3]): y for line in lines for about, y in zip(line.customdata, line.y) if len(about)}
    assert points == {(*head, step): v for head, values in PREVIOUS.items() for step, v in zip(STEPS, values)}
    own = next(line for line in lines if line.name == "layer 2, head 1")
    assert list(own.y) == PREVIOUS[2, 1]
    assert (star.name, list(star.x), list(star.y)) == ("present since step 8", [8], [0.07])
    without = charts.curves_figure(rows, charts.baseline(frame), "previous", 0.05, (1, 1), StepAxis(scale))
    assert len(without.data) == len(lines)


def test_the_profile_of_a_head_has_its_values_at_the_step(frame):
    """One row per measured pattern, each by its usual change."""
    table = charts.profile(frame, 2, 1, 16).set_index("what")
    assert list(table.index) == ["previous", "entropy", "dependent_to_head"]
    assert table.loc["previous", ["first", "now", "last", "appears"]].tolist() == ["0.02", "0.30", "0.30", 8]
    assert table.loc["dependent_to_head", ["now", "appears"]].tolist() == ["30%", 16]
    values = [value for head in PREVIOUS.values() for value in head]
    scaled = [(value - min(values)) / (max(values) - min(values)) for value in PREVIOUS[2, 1]]
    assert table.loc["previous", "history"] == pytest.approx(scaled)  # one scale for all heads
