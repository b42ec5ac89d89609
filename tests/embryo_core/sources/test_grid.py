"""The planned steps of a foreign run are read off those at hand."""

import pytest

from embryo_core.sources.source_series import planned


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        ([], set()),
        ([5], set()),
        ([0, 10, 20, 30], set()),
        ([0, 10, 30, 40], {20}),
        ([10, 20, 40, 50, 60, 90], {30, 70, 80}),
        ([0, 1, 2, 4, 16, 32, 64, 100, 200, 300, 500], {8, 400}),
        ([1, 2, 8, 16], {4}),
        ([0, 3, 7, 19, 50], set()),
        ([0, 1000, 2000, 3000, 3500], set()),
        ([0, 10, 20, 40, 80, 160, 320], set()),
        ([0, 10, 20, 30, 10**12], set()),
        ([*range(0, 100, 10), 100, 200, 300, 500, 600, 700], {400}),
    ],
)
def test_what_lacks_on_an_even_grid_or_one_of_doublings(steps, missing):
    """Irregular steps have no grid, and a last step beside the grid is no gap."""
    assert set(planned(steps)) - set(steps) == missing


@pytest.mark.parametrize(
    ("steps", "every", "missing"),
    [
        ([500, 1500], 500, {1000}),
        ([500, 1500, 1720], 500, {1000}),
        ([500, 2500], 500, set()),
        ([7, 19], 500, set()),
        ([500], 500, set()),
        ([], 500, set()),
        ([0, 10, 30, 40], 500, {20}),
    ],
)
def test_the_distance_that_a_training_noted_makes_a_short_grid(steps, every, missing):
    """Two thirds of it have to be there: a Trainer may keep the best step and the last ones alone."""
    assert set(planned(steps, every)) - set(steps) == missing
