"""Tests of the tables of head patterns: stored scores, and the step from which a pattern is present."""

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
    """Return the scores as the page uses them."""
    return patterns.behaviour_curves(scores)


def test_scores_become_rows_of_layers_and_heads(frame):
    """The group of a score is its head; the group of the baseline is its offset."""
    own = patterns.select_pattern(frame, "previous")
    got = {(row.layer, row.head, row.step): row.value for row in own.itertuples()}
    assert got == {(*head, step): v for head, values in PREVIOUS.items() for step, v in zip(STEPS, values)}
    assert patterns.baseline(frame) == (0.3, 1)
    assert set(frame["what"]) == {"previous", "entropy", "dependent_to_head", "fixed_offset"}


def test_strongest_pattern_has_the_highest_last_weight(frame):
    """Entropy does not count, because it is not a weight."""
    head = max(PREVIOUS, key=lambda head: PREVIOUS[head][-1])
    assert patterns.strongest(frame) == ("previous", *head)
    assert patterns.strongest(frame[frame["what"] == "entropy"]) is None


def since(frame, what, change) -> dict:
    """Return the step from which each (layer, head) shows the pattern, or None."""
    return {
        (r.layer, r.head): None if pd.isna(r.step) else r.step
        for r in patterns.appearances(frame, what, change).itertuples()
    }


@pytest.mark.parametrize(
    ("pattern", "change", "step"),
    [
        ("previous", 0.05, 8),  # risen by 0.05
        ("entropy", -0.5, 16),  # fallen: a head with low entropy is sharp
        ("dependent_to_head", None, 16),  # at the baseline, the best fixed offset on the same words
    ],
)
def test_pattern_is_present_once_it_has_changed_for_good(frame, pattern, change, step):
    """A change that is lost again does not count: head 1.2 changes at step 8, back, and for good at step 700."""
    assert since(frame, pattern, change) == {(1, 1): None, (1, 2): 700, (2, 1): step, (2, 2): None}


def test_changes_of_a_pattern_have_one_direction():
    """Every pattern either rises or falls, and no change is offered twice."""
    for pattern in PATTERNS.values():
        signs = {np.sign(change) for change in pattern.changes if change is not None}
        assert len(signs) == 1 and len(set(pattern.changes)) == len(pattern.changes)
        assert pattern.falls == (signs == {-1})


def test_profile_of_a_head_has_its_values_at_the_step(frame):
    """It has one row per measured pattern, whose appearance follows from the default change."""
    table = patterns.profile(frame, 2, 1, 16).set_index("what")
    assert list(table.index) == ["previous", "entropy", "dependent_to_head"]
    assert table.loc["previous", ["first", "now", "last", "appears"]].tolist() == ["0.02", "0.30", "0.30", 8]
    assert table.loc["dependent_to_head", ["now", "appears"]].tolist() == ["30%", 16]
    values = [value for head in PREVIOUS.values() for value in head]
    scaled = [(value - min(values)) / (max(values) - min(values)) for value in PREVIOUS[2, 1]]
    assert table.loc["previous", "history"] == pytest.approx(scaled)  # all heads share a scale
