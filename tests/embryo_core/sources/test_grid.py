"""Tests of planned steps, which are inferred from the steps of a foreign run."""

import pytest

from embryo_core.sources.source_series import complete_grid


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
        ([0, 1, 2, 4], set()),
        ([0, 2, 4, 8], set()),
        ([0, 4, 8, 32], {16}),
        ([0, 3, 7, 19, 50], set()),
        ([0, 1000, 2000, 3000, 3500], set()),
        ([0, 10, 20, 40, 80, 160, 320], set()),
        ([0, 10, 20, 30, 10**12], set()),
        ([*range(0, 100, 10), 100, 200, 300, 500, 600, 700], {400}),
    ],
)
def test_gaps_in_even_or_doubling_grids_are_found(steps, missing):
    """Irregular steps form no grid, and a last step off the grid makes no gap."""
    assert set(complete_grid(steps)) - set(steps) == missing


@pytest.mark.parametrize(
    ("steps", "every", "missing"),
    [
        ([500, 1500], 500, {1000}),
        ([500, 1500, 1720], 500, {1000}),
        ([512, 1024, 2048], 512, {1536}),
        ([500, 2500], 500, set()),
        ([7, 19], 500, set()),
        ([500], 500, set()),
        ([], 500, set()),
        ([0, 10, 30, 40], 500, {20}),
    ],
)
def test_recorded_save_interval_defines_short_grid(steps, every, missing):
    """Two thirds of the grid must exist, since a Trainer may keep only the best and the last checkpoints."""
    assert set(complete_grid(steps, every)) - set(steps) == missing
