"""Geometry of states: how many dimensions they fill, in which shape, and how similar two sets of states are.

X are the states of n words in D dimensions, sigma the singular values of X, and lambda the eigenvalues of its
covariance, largest first.

    rank_me         exp(-sum p log p), p = sigma / sum(sigma) + 1e-7: effective rank (RankMe: Garrido et al., 2023,
                    https://arxiv.org/abs/2210.02885)
    alpha_req       the exponent a of lambda_i ~ i^-a (alpha-ReQ: Agrawal et al., 2022), a fit of log lambda_i to log i
                    from rank 11 to 100 with weights 1 / i (as Stringer et al., 2019, fit it)
    participation   (sum lambda)^2 / sum(lambda^2): participation ratio (Gao et al., 2017)
    two_nn          intrinsic dimension from the distances r1, r2 to the two nearest neighbours: the slope through zero
                    of -log(1 - i / n) over the i-th smallest log(r2 / r1), without the largest tenth (Facco et al.,
                    2017, https://www.nature.com/articles/s41598-017-11873-y)
    cka             linear CKA (Kornblith et al., 2019) with the unbiased HSIC of Song et al. (2012); unlike biased
                    CKA, it does not rise with D (Murphy et al., 2024, https://arxiv.org/abs/2405.01012)

A measure that is undefined, for example because all states are equal, is None.
"""

from collections.abc import Sequence

import numpy as np

from embryo_core.curves.scores import Floats, Z

EPSILON = 1e-7  # added to each p of RankMe
FITTED_RANKS = slice(10, 100)  # the eigenvalues that alpha-ReQ fits, by rank from 0
MIN_RANKS = 10  # least number of positive eigenvalues in FITTED_RANKS for a fit
FITTED_SHARE = 0.9  # share of the ratios that TwoNN fits
MIN_POINTS = 20  # least number of distinct states for TwoNN
PACKED_DTYPE = np.dtype("<f2")  # type of packed products
RESOLUTION = 1e-6  # share of the largest norm: closer states are equal in float32


def rank_me(states: Floats) -> float | None:
    """Return the effective rank of states [n, D], from 1 to min(n, D); None if all are zero."""
    singular_values = np.linalg.svd(states, compute_uv=False)
    if not singular_values.any():
        return None
    p = singular_values / singular_values.sum() + EPSILON
    return float(np.exp(-(p * np.log(p)).sum()))


def eigenvalues(states: Floats) -> Floats:
    """Return the eigenvalues of the covariance of states [n, D] that exceed float32 rounding, largest first."""
    centred = states - states.mean(axis=0)
    singular_values = np.linalg.svd(centred, compute_uv=False)
    noise = max(states.shape) * np.finfo(np.float32).eps * max(singular_values[0], np.abs(states).max(initial=0.0))
    significant = singular_values[singular_values > noise]
    return significant**2 / max(1, len(states) - 1)


def alpha_req(spectrum: Floats) -> float | None:
    """Return the exponent with which `eigenvalues` decay; None if FITTED_RANKS has fewer than MIN_RANKS of them."""
    logarithms = np.log(spectrum[FITTED_RANKS])
    if len(logarithms) < MIN_RANKS:
        return None
    ranks = np.arange(1 + FITTED_RANKS.start, 1 + FITTED_RANKS.start + len(logarithms))
    slope, _ = np.polyfit(np.log(ranks), logarithms, 1, w=ranks**-0.5)  # polyfit squares its weights
    return float(-slope)


def participation(spectrum: Floats) -> float | None:
    """Return the participation ratio of `eigenvalues`, from 1 to min(n - 1, D); None without eigenvalues."""
    return float(spectrum.sum() ** 2 / (spectrum**2).sum()) if len(spectrum) else None


def two_nn(states: Floats) -> tuple[float, int] | None:
    """Return the intrinsic dimension of states [n, D] and the number of distinct states; None if these are too few."""
    centred = states - states.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squared_distances = np.maximum(norms[:, None] + norms - 2 * centred @ centred.T, 0)
    tolerance = RESOLUTION**2 * max(1e-300, (states**2).sum(axis=1).max(initial=0.0))
    is_distinct = ~np.tril(squared_distances <= tolerance, -1).any(axis=1)  # the first of each group of equal states
    distinct_count = int(is_distinct.sum())
    if distinct_count < MIN_POINTS:
        return None
    squared_distances = squared_distances[np.ix_(is_distinct, is_distinct)]
    np.fill_diagonal(squared_distances, np.inf)
    first, second = np.partition(squared_distances, 1, axis=1)[:, :2].T
    x = np.sort(np.log(second / first) / 2)
    fit_count = int(FITTED_SHARE * distinct_count)
    y = -np.log1p(-np.arange(1, 1 + fit_count) / distinct_count)
    x = x[:fit_count]
    return (float(x @ y / (x @ x)), distinct_count) if x.any() else None


# === Similarity of two sets of states of the same words ===


def gram(states: Floats) -> Floats | None:
    """Return the U-centred Gram matrix [n, n] of states [n, D], n > 3, from which CKA is computed; None if it is zero.

    Its diagonal is zero, its rows sum to zero, and it is scaled so that its HSIC with itself is 1 (Song et al., 2012).
    """
    centred = states - states.mean(axis=0)
    centred_gram = u_centre(centred @ centred.T)
    scale = np.sqrt((centred_gram**2).sum() / (len(centred_gram) * (len(centred_gram) - 3)))
    noise = np.finfo(np.float32).eps * (states**2).sum(axis=1).max(initial=0.0)
    return centred_gram / scale if scale > noise else None


def u_centre(products: Floats) -> Floats:
    """Return the U-centred form of a Gram matrix [n, n], whose diagonal is ignored."""
    n = len(products)
    off_diagonal = products - np.diag(np.diag(products))
    means = off_diagonal.sum(axis=0) / (n - 2)
    centred = off_diagonal - means - means[:, None] + means.sum() / (n - 1)
    np.fill_diagonal(centred, 0)
    return centred


def cka(first: Floats, second: Floats) -> float:
    """Return the debiased linear CKA of two sets of states from their `gram` matrices [n, n].

    It is 1 for sets that are equal up to rotation and scale, and about 0 for unrelated sets, where the unbiased
    estimate may be slightly negative.
    """
    n = len(first)
    return float((first * second).sum() / (n * (n - 3)))


def cka_interval(first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Return CKA of S pairs of sets of states with its 95 % interval (value, low, high, each [S]).

    `first` [S, n, n] and `second` [n, n] or [S, n, n] are `gram` matrices. The interval is a jackknife over words:
    without word i, the rows of a U-centred K sum to -K_i and all of K to 0, so that HSIC follows from K_i . L_i (Song
    et al., 2012, equation 3).
    """
    second = np.broadcast_to(second, first.shape)
    n = first.shape[-1]
    m = n - 1
    pairs = ((first, second), (first, first), (second, second))
    shares = [np.einsum("sij,sij->si", gram_matrix, other) for gram_matrix, other in pairs]  # [S, n], of each word
    hsic, first_hsic, other = ((word_shares.sum(axis=1) / (n * (n - 3))) for word_shares in shares)
    value = hsic / np.sqrt(first_hsic * other)
    held_out = [
        (word_shares.sum(axis=1)[:, None] - 2 * word_shares * (m - 1) / (m - 2)) / (m * (m - 3))
        for word_shares in shares
    ]
    jackknife = held_out[0] / np.sqrt(np.maximum(held_out[1] * held_out[2], np.finfo(float).tiny))  # [S, n]
    error = np.sqrt(m / n * ((jackknife - jackknife.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    return value, value - Z * error, np.minimum(1.0, value + Z * error)


def pack(products: Floats) -> bytes:
    """Return the lower triangle of a `gram` matrix [n, n] without its diagonal, row by row in float16."""
    return products[np.tril_indices(len(products), -1)].astype(PACKED_DTYPE).tobytes()


def unpack(packed: Sequence[bytes], n: int) -> Floats:
    """Return the `gram` matrices [S, n, n] that `pack` packed."""
    products = np.zeros((len(packed), n, n))
    rows, columns = np.tril_indices(n, -1)
    for matrix, triangle in zip(products, packed, strict=True):
        matrix[rows, columns] = matrix[columns, rows] = np.frombuffer(triangle, PACKED_DTYPE)
    return products
