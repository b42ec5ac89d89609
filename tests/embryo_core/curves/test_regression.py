"""Tests of linear regression: coefficients are scikit-learn's, and intervals those of the textbook."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from embryo_core.curves.regression import regress


def test_coefficients_and_intervals_match_a_plain_computation():
    """Numbers are standardised, each class is compared with the largest one, and constant numbers are left out."""
    rng = np.random.default_rng(0)
    n = 60
    first, second = rng.normal(2, 3, n), rng.normal(0, 1, n)
    classes = ["a"] * 30 + ["b"] * 20 + ["c"] * 10
    values = 0.5 * first + np.array([0.0 if label == "a" else 1.0 for label in classes]) + rng.normal(0, 1, n)
    regression = regress(values, {"first": first, "second": second, "constant": np.ones(n)}, classes)
    design = np.column_stack(
        [(first - first.mean()) / first.std(), (second - second.mean()) / second.std()]
        + [[label == name for label in classes] for name in "bc"]
    ).astype(float)
    model = LinearRegression().fit(design, values)
    rest = values - model.predict(design)
    whole = np.column_stack([np.ones(n), design])
    free = n - whole.shape[1]
    errors = np.sqrt(np.diag(np.linalg.inv(whole.T @ whole)) * (rest @ rest) / free)[1:]
    assert [coefficient.name for coefficient in regression.coefficients] == ["first", "second", "b, not a", "c, not a"]
    assert [coefficient.value for coefficient in regression.coefficients] == pytest.approx(model.coef_.tolist())
    reach = stats.t.ppf(0.975, free) * errors
    assert [coefficient.high for coefficient in regression.coefficients] == pytest.approx(
        (model.coef_ + reach).tolist()
    )
    assert (regression.r2, regression.n) == (pytest.approx(model.score(design, values)), n)


def test_constant_number_is_left_out_although_its_mean_is_rounded():
    """The mean of thirty equal logarithms differs from them in the last digit."""
    x = np.arange(30.0)
    constant = np.full(30, np.log(9))
    assert constant.std() > 0
    found = regress(x**2, {"x": x, "constant": constant})
    assert [coefficient.name for coefficient in found.coefficients] == ["x"]


def test_unsolvable_regression_returns_none():
    """There are too few cases, the predictors are collinear, or no predictor varies."""
    x = np.arange(3.0)
    assert regress(x, {"x": x, "square": x**2}) is None
    many = np.arange(20.0)
    assert regress(many, {"x": many, "twice": 2 * many}) is None
    assert regress(many, {"x": np.ones(20)}) is None
