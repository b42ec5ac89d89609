"""Tests of ages of acquisition, compared with scipy's curve_fit from many starts and with planted ages."""

import numpy as np
import pytest
from scipy.optimize import curve_fit

from embryo_core.curves.ages import (
    AFTER_LAST_STEP,
    BEFORE_FIRST_STEP,
    FEW_OCCURRENCES,
    FEW_STEPS,
    NOT_BELOW_CHANCE,
    find_ages,
    fit_sigmoids,
)

STEPS = np.array([0, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384])
X = np.log10(STEPS[1:])


def sigmoid(x, top, bottom, rate, middle):
    return bottom + (top - bottom) / (1 + np.exp(np.clip(rate * (x - middle), -500, 500)))


def slow_fit(values):
    """Return the least sum of squares, and its parameters, of curve_fit from a grid of starts."""
    best = None
    for middle in np.linspace(X[0], X[-1], 5):
        for rate in (2, 5, 12):
            try:
                parameters, _ = curve_fit(sigmoid, X, values, [values.max(), values.min(), rate, middle], maxfev=5000)
            except RuntimeError:
                continue
            rest = float(((sigmoid(X, *parameters) - values) ** 2).sum())
            best = min(best or (np.inf, parameters), (rest, parameters), key=lambda fit: fit[0])
    return best


def word(rng, middle, rate=4.0, n=30, top=13.0, bottom=5.0):
    """Return surprisals of n occurrences [S, n] that fall from top to bottom around a middle."""
    own = sigmoid(X, top, bottom, rate, middle)[:, None] + rng.normal(0, 1.5, n) + rng.normal(0, 1, (len(X), n))
    return np.concatenate([np.full((1, n), 13.0), own])


@pytest.mark.filterwarnings("ignore::scipy.optimize.OptimizeWarning")
def test_fits_and_ages_match_a_slow_search():
    """The sum of squares is at most a tenth above the least, and the age is within 0.005 on the log10 scale."""
    rng = np.random.default_rng(0)
    words = [word(rng, middle, rate) for middle in (2, 2.5, 3, 3.3) for rate in (3.0, 5.0, 8.0)]
    ages = find_ages(STEPS, words, [13.0] * len(words))
    for i, own in enumerate(words):
        values = own[1:].mean(axis=1)
        rest, best = slow_fit(values)
        assert ((ages.fits.at(STEPS[1:])[i] - values) ** 2).sum() <= 1.1 * rest + 1e-6
        level = (13.0 + values.min()) / 2
        x = np.linspace(X[0], X[-1], 100_001)
        crossing = x[np.abs(sigmoid(x, *best) - level).argmin()]
        assert np.log10(ages.step[i]) == pytest.approx(crossing, abs=0.005)
        assert ages.earliest[i] <= ages.step[i] <= ages.latest[i]


def test_intervals_cover_the_age_of_the_population():
    """At least 86 of 100 intervals from samples of a large population of occurrences do; 95 are expected."""
    rng = np.random.default_rng(1)
    population = word(rng, 2.7, n=4000)
    whole = find_ages(STEPS, [population], [13.0]).step[0]
    samples = [population[:, rng.choice(4000, 40, replace=False)] for _ in range(100)]
    ages = find_ages(STEPS, samples, [13.0] * 100)
    held = (ages.earliest <= whole) & (whole <= ages.latest)
    assert 86 <= held.sum() <= 100


def test_words_without_an_age_have_a_reason():
    """Their age is NaN."""
    rng = np.random.default_rng(2)
    rising = np.tile(np.linspace(13, 15, len(STEPS))[:, None], 10) + rng.normal(0, 0.3, (len(STEPS), 10))
    known = np.full((len(STEPS), 10), 3.0)
    late = np.tile(np.r_[[13.0] * (len(STEPS) - 1), 12.0][:, None], 10)
    ages = find_ages(STEPS, [rising, known, late, word(rng, 3)[:, :3], word(rng, 3)], [13.0] * 5)
    assert ages.reasons == (NOT_BELOW_CHANCE, BEFORE_FIRST_STEP, ages.reasons[2], FEW_OCCURRENCES, "")
    assert ages.reasons[2] in (AFTER_LAST_STEP, "")
    assert np.isnan(ages.step[[0, 1, 3]]).all() and np.isfinite(ages.step[4])
    assert find_ages(STEPS[:4], [word(rng, 3)[:4]], [13.0]).reasons == (FEW_STEPS,)


def test_rising_or_constant_curve_gets_a_flat_fit():
    """Its level is the mean."""
    fits = fit_sigmoids(STEPS[1:], [np.linspace(1, 5, len(X)), np.full(len(X), 4.0)])
    assert fits.at(STEPS[1:]) == pytest.approx(np.full((2, len(X)), [[3.0], [4.0]]))


def test_lowest_surprisal_is_that_of_all_steps():
    """A single step of a long series that is not among the thinned ones lowers the level, and so raises the age."""
    steps = np.arange(1, 2001)
    own = sigmoid(np.log10(steps), 13.0, 5.0, 5.0, 2.0)[:, None] + np.random.default_rng(3).normal(0, 0.5, 20)
    before = find_ages(steps, [own], [13.0])
    lower = own.copy()
    lower[1982] -= 4.0
    ages = find_ages(steps, [lower], [13.0])
    assert ages.fits.at(steps) == pytest.approx(before.fits.at(steps))
    level = (13.0 + lower.mean(axis=1).min()) / 2
    assert ages.fits.log_step_at([level]) == pytest.approx(np.log10(ages.step)) and ages.step[0] > before.step[0] + 10
    assert ages.earliest[0] > before.earliest[0] + 10 and ages.latest[0] > before.latest[0] + 10


def test_long_series_is_thinned_without_changing_its_age():
    """At most 100 steps are read, evenly spaced on a log scale."""
    steps = np.r_[0, np.arange(1, 2001)]
    curve = sigmoid(np.log10(steps[1:]), 13.0, 5.0, 5.0, 2.0)
    own = np.r_[13.0, curve][:, None] + np.random.default_rng(3).normal(0, 0.5, 20)
    ages = find_ages(steps, [own], [13.0])
    assert ages.step[0] == pytest.approx(
        steps[np.abs(own.mean(axis=1) - (13 + own.mean(axis=1).min()) / 2).argmin()], 0.05
    )
