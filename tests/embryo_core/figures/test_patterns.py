"""Tables of what heads do hold the stored scores, and say since when a pattern is present."""

import numpy as np
import pandas as pd
import pytest

from embryo_core.figures import patterns
from embryo_core.figures.patterns import PATTERNS
from tests.behaving import PREVIOUS, STEPS, behaviour_scores


@pytest.fixture
def scores() -> pd.DataFrame:
    return behaviour_scores()


@pytest.fixture
def frame(scores) -> pd.DataFrame:
    """Return the same, as the page uses them."""
    return patterns.behaviour_curves(scores)


def test_scores_become_layers_and_heads(frame):
    """The group of a score is the head; of the baseline it is the offset."""
    own = patterns.select_pattern(frame, "previous")
    got = {(row.layer, row.head, row.step): row.value for row in own.itertuples()}
    assert got == {(*head, step): v for head, values in PREVIOUS.items() for step, v in zip(STEPS, values)}
    assert patterns.baseline(frame) == (0.3, 1)
    assert set(frame["what"]) == {"previous", "entropy", "dependent_to_head", "fixed_offset"}


def test_the_strongest_pattern_is_the_highest_weight_at_the_last_step(frame):
    """Entropy is higher and no weight."""
    head = max(PREVIOUS, key=lambda head: PREVIOUS[head][-1])
    assert patterns.strongest(frame) == ("previous", *head)
    assert patterns.strongest(frame[frame["what"] == "entropy"]) is None


def since(frame, what, change) -> dict:
    """Step by layer and head."""
    return {
        (r.layer, r.head): None if pd.isna(r.step) else r.step
        for r in patterns.appearances(frame, what, change).itertuples()
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


def test_the_profile_of_a_head_has_its_values_at_the_step(frame):
    """One row per measured pattern, each by its usual change."""
    table = patterns.profile(frame, 2, 1, 16).set_index("what")
    assert list(table.index) == ["previous", "entropy", "dependent_to_head"]
    assert table.loc["previous", ["first", "now", "last", "appears"]].tolist() == ["0.02", "0.30", "0.30", 8]
    assert table.loc["dependent_to_head", ["now", "appears"]].tolist() == ["30%", 16]
    values = [value for head in PREVIOUS.values() for value in head]
    scaled = [(value - min(values)) / (max(values) - min(values)) for value in PREVIOUS[2, 1]]
    assert table.loc["previous", "history"] == pytest.approx(scaled)  # one scale for all heads
