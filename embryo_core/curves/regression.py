"""Linear regression by least squares, with an interval for each coefficient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TAIL = 0.975  # quantile of Student's distribution for 95 % intervals


@dataclass(frozen=True)
class Coefficient:
    """The change of a value per unit of a predictor, with the other predictors held fixed, and its 95 % interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Regression:
    """The coefficients, the explained share of the variance, and the number of cases."""

    coefficients: tuple[Coefficient, ...]
    r2: float
    n: int


def regress(
    values: NDArray[np.floating], numbers: Mapping[str, NDArray[np.floating]], classes: Sequence[Any] = ()
) -> Regression | None:
    """Regress values [n] on standardised `numbers`, [n] each, and on `classes` [n] relative to the largest class.

    Constant numbers are left out. Intervals are Student's. Return None if there are too few cases or no predictors, or
    if the predictors are collinear.
    """
    columns, names = [np.ones(len(values))], [""]
    for name, predictor in numbers.items():
        if np.ptp(predictor) > 0:  # the deviation of equal numbers may be above 0 by rounding
            columns.append((predictor - predictor.mean()) / predictor.std())
            names.append(name)
    levels = sorted({*classes}, key=lambda level: (-list(classes).count(level), str(level)))
    for level in levels[1:]:
        columns.append(np.array([label == level for label in classes], float))
        names.append(f"{level}, not {levels[0]}")
    design = np.stack(columns, axis=1)
    freedom = len(values) - design.shape[1]
    if freedom < 1 or len(names) == 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    from scipy.special import stdtrit  # imported only here: the import takes as long as the rest of a page

    inverse_gram = np.linalg.inv(design.T @ design)
    coefficients = inverse_gram @ design.T @ values
    residuals = values - design @ coefficients
    half_widths = stdtrit(freedom, TAIL) * np.sqrt(np.diag(inverse_gram) * (residuals @ residuals) / freedom)
    total = float(((values - values.mean()) ** 2).sum())
    columns = [coefficients, coefficients - half_widths, coefficients + half_widths]
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return Regression(
        tuple(Coefficient(*row) for row in rows if row[0]),
        1 - float(residuals @ residuals) / total if total else 0.0,
        len(values),
    )
