"""Tests of where curves turn, by the same items at every step."""

import numpy as np
import pytest

from embryo_core.curves.turns import Stretch, falls_after_rise, find_turns, stretches


def right(shares: list[float], n: int = 100) -> np.ndarray:
    """Return which of n items are right at each step; the first ones are, so that right items stay the same."""
    return (np.arange(n)[:, None] < np.round(np.array(shares) * n)).astype(float)


@pytest.mark.parametrize(
    ("shares", "shape", "points"),
    [
        ([0.5, 0.5, 0.5], "flat", ()),
        ([0.5, 0.6, 0.9], "rises", (0, 2)),
        ([0.9, 0.9, 0.4], "falls", (0, 2)),
        ([0.5, 0.2, 0.2, 0.8], "falls, rises", (0, 1, 3)),
        ([0.5, 0.9, 0.85, 0.4, 0.4], "rises, falls", (0, 1, 3)),
        ([0.2, 0.8, 0.3, 0.9], "rises, falls, rises", (0, 1, 2, 3)),
        ([0.2, 0.8, 0.3, 0.9, 0.1], "turns 3 times, last falls", (0, 1, 2, 3, 4)),
    ],
)
def test_shape_is_named_by_its_rises_and_falls(shares, shape, points):
    """The turning points are the lowest and the highest steps, the first one among ties."""
    turns = find_turns(right(shares))
    assert (turns.shape, turns.points) == (shape, points)
    assert falls_after_rise(turns) == ("rises, falls" in shape or "turns" in shape)


def test_turning_points_are_the_extremes():
    """The curve is lowest at step 2, but its fall is significant only at step 3, where fewer items changed."""
    curve = np.zeros((100, 4))
    curve[:80, 1:] = 1
    curve[:20, 2], curve[80:90, 2], curve[20:28, 3] = 0, 1, 0  # 70 right at step 2, 72 at step 3
    assert find_turns(curve).points == (0, 1, 2) and find_turns(1 - curve).points == (0, 1, 2)


def test_changes_are_tested_on_the_same_items():
    """Ten of a hundred items that all improve are a rise; the same shares on changing items are not."""
    rng = np.random.default_rng(0)
    same = np.stack([np.arange(100) < 50, np.arange(100) < 60], axis=1).astype(float)
    assert find_turns(same).shape == "rises"
    other = same.copy()
    other[:, 1] = rng.permutation(other[:, 1])
    assert find_turns(other).shape == "flat"


def test_random_curve_seldom_has_a_turn():
    """Of 200 curves of coin tosses at 30 steps at most 5 % turn."""
    rng = np.random.default_rng(1)
    turned = [find_turns(rng.integers(0, 2, (100, 30))).shape != "flat" for _ in range(200)]
    assert np.mean(turned) <= 0.05


def test_tie_counts_as_half():
    """Twenty items that go from a tie to right are a rise."""
    assert find_turns(np.tile([0.5, 1.0], (20, 1))).shape == "rises"
    assert find_turns(np.ones((5, 1))).shape == "flat"


def test_stretches_are_changes_of_more_than_a_tenth():
    """Stretches run from lowest to highest and back; smaller changes are ignored."""
    actual = stretches([0, 1, 2, 4, 8], [20, 5, 40, 42, 30])
    assert actual == [Stretch("compresses", 0, 1), Stretch("grows", 1, 4), Stretch("compresses", 4, 8)]
    assert stretches([0, 1], [20, 23]) == [Stretch("grows", 0, 1)]
    assert stretches([0, 1], [20, 21.9]) == stretches([0, 1, 2], [20, 21, 19.5]) == [] == stretches([], [])
