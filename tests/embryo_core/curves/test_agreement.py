"""Tests of the agreement of two rankings: the correlation is scipy's, and the interval that of its formula."""

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from embryo_core.curves.agreement import rank_agreement


@pytest.mark.parametrize("n", [4, 9, 40])
def test_interval_is_that_of_bonett_and_wright(n: int):
    """The ends are Fisher's z of rho plus and minus 1.96 roots of (1 + rho^2 / 2) / (n - 3); ties are mean ranks."""
    random = np.random.default_rng(n)
    first = random.permutation(n) // 2
    second = first + random.normal(0, n / 4, n).round()
    rho = spearmanr(first, second).statistic
    reach = norm.ppf(0.975) * ((1 + rho**2 / 2) / (n - 3)) ** 0.5
    agreement = rank_agreement(first, second)
    assert (agreement.rho, agreement.n) == (pytest.approx(rho), n) and 0 < abs(rho) < 1
    assert (agreement.low, agreement.high) == pytest.approx([np.tanh(np.arctanh(rho) + end) for end in (-reach, reach)])


def test_agreement_needs_four_items_and_two_orders():
    """A ranking in which all items are tied has no order."""
    assert rank_agreement([1, 2, 3], [1, 2, 3]) is None
    assert rank_agreement([1, 1, 1, 1], [1, 2, 3, 4]) is None


def test_equal_or_reversed_rankings_have_a_zero_width_interval():
    """Both ends are 1, or -1 if one ranking is reversed."""
    for second, rho in (([1, 2, 3, 4, 5], 1), ([5, 4, 3, 2, 1], -1)):
        agreement = rank_agreement([1, 2, 3, 4, 5], second)
        assert (agreement.rho, agreement.low, agreement.high) == pytest.approx((rho, rho, rho), abs=1e-6)
