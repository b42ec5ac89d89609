"""The tensors of a run's checkpoints as an audit sees them, and the geometry of their way through training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

RIGHT_ANGLE = -0.08  # cosine of two moves that may be unrelated


@dataclass(frozen=True, eq=False)
class Series:
    """T tensors at S steps, in the order of steps; `apart(i, j)` is how far each moved between two of them, [T]."""

    steps: tuple[int, ...]
    names: tuple[str, ...]
    sizes: np.ndarray  # [T] numbers in a tensor
    resolution: np.ndarray  # [T] relative difference of neighbouring numbers of its type
    norms: np.ndarray  # [T, S] Euclidean
    apart: Callable[[int, int], np.ndarray]

    def cosines(self, i: int, j: int) -> np.ndarray:
        """Cosine between the tensors at two steps, [T]; 0 for a tensor of zeros."""
        one, other = self.norms[:, i], self.norms[:, j]
        product = (one**2 + other**2 - self.apart(i, j) ** 2) / 2
        return product / np.where(one * other > 0, one * other, np.inf)

    def flipped(self, i: int, j: int) -> np.ndarray:
        """How far each tensor would have moved between two steps had the sign of one been changed, [T]."""
        square = 2 * self.norms[:, i] ** 2 + 2 * self.norms[:, j] ** 2 - self.apart(i, j) ** 2
        return np.sqrt(np.maximum(square, 0))

    def typical(self, among: Sequence[int]) -> Callable[[int, int], float]:
        """How far the whole model moved between two steps: the median over its larger tensors.

        Those are the ones above the median size, whose directions are least a matter of chance. Each counts in units of
        its median move between neighbours `among` the steps, so that no large one decides, and a wrong one hardly
        changes anything.
        """
        moves = np.array([self.apart(i, j) for i, j in zip(among, among[1:], strict=False)])
        unit = np.median(moves, axis=0) if len(moves) else np.zeros(len(self.names))
        large = (self.sizes > np.median(self.sizes)) & (unit > 0)
        large = large if large.any() else unit > 0
        if not large.any():
            return lambda i, j: 0.0
        return lru_cache(maxsize=None)(lambda i, j: float(np.median(self.apart(i, j)[large] / unit[large])))


def turn(ab: float, bc: float, ac: float) -> float:
    """How far a way from a over b to c turns back at b: the product of its two moves over the square of the smaller.

    0 for moves at right angles, as of a random walk; -1/2 where c is as near to a as b is, or a to c, so that nothing
    tells their order; below, the order is another one. A move of 0, and an angle that chance may give, is no turn.
    """
    product = (ac**2 - ab**2 - bc**2) / 2
    if min(ab, bc) == 0 or product > RIGHT_ANGLE * ab * bc:
        return max(product, 0.0)
    return product / min(ab, bc) ** 2


def residual(ab: np.ndarray, bc: np.ndarray, ac: np.ndarray, share: float) -> np.ndarray:
    """Distance of b from the point that lies at a `share` of the way from a to c (Stewart's theorem)."""
    square = (1 - share) * ab**2 + share * bc**2 - share * (1 - share) * ac**2
    return np.sqrt(np.maximum(square, 0))
