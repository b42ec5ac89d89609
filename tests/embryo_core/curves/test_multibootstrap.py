"""Tests of the multi-bootstrap over seeds and cases, compared with a slow loop over draws."""

import numpy as np
import pytest

from embryo_core.curves.multibootstrap import DRAW_COUNT, design_difference_interval, draw_cases, draw_shares

RANDOM = np.random.default_rng(7)


def slow(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Draw cases, which all runs share, and seeds of each design; return the interval of the difference of means."""
    differences = []
    for _ in range(4000):
        cases = RANDOM.integers(first.shape[1], size=first.shape[1])
        means = []
        for design in (first, second):
            rows = [design[RANDOM.integers(len(design))] for _ in design]
            means.append(np.mean([row[cases].mean() for row in rows]))
        differences.append(means[1] - means[0])
    return np.percentile(differences, [2.5, 97.5])


def test_interval_equals_that_of_a_loop_over_draws():
    """Seeds differ by more than the cases explain, so both sources of variance count."""
    first = (RANDOM.random((3, 200)) < np.array([[0.3], [0.4], [0.5]])).astype(float)
    second = (RANDOM.random((2, 200)) < np.array([[0.6], [0.7]])).astype(float)
    draws = draw_cases(np.concatenate([first, second]))
    assert draws.shape == (DRAW_COUNT, 5)
    assert design_difference_interval(draws[:, :3], draws[:, 3:]) == pytest.approx(slow(first, second), abs=0.02)


def test_cases_are_shared_by_all_runs():
    """Runs with equal answers differ by nothing, whatever cases are drawn."""
    right = np.repeat((RANDOM.random((1, 50)) < 0.5).astype(float), 2, axis=0)
    draws = draw_cases(right)
    assert design_difference_interval(draws[:, :1], draws[:, 1:]) == (0, 0)
    assert draws[:, 0].std() == pytest.approx(np.sqrt(right[0].mean() * (1 - right[0].mean()) / 50), rel=0.1)


def test_counts_are_drawn_from_binomial_distributions():
    """Each run has its own number of cases; a share of 0 or 1 stays as it is."""
    draws = draw_shares([0.2, 0.5, 0.0, 1.0], [100, 400, 9, 9])
    assert draws.mean(axis=0) == pytest.approx([0.2, 0.5, 0, 1], abs=0.01)
    assert draws.std(axis=0) == pytest.approx([0.04, 0.025, 0, 0], abs=0.004)


def test_single_seed_adds_no_variance_of_seeds():
    """Two seeds that differ by more than the cases explain widen the interval."""
    counts = draw_shares([0.5, 0.3, 0.7], [10_000] * 3)
    alone, spread = (
        design_difference_interval(counts[:, :1], counts[:, :1]),
        design_difference_interval(counts[:, :1], counts[:, 1:]),
    )
    assert alone == (0, 0) and spread[0] < -0.15 and spread[1] > 0.15
