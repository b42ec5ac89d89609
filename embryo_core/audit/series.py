"""The tensors of a run's checkpoints, and the geometry of their path through training."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MIN_CHANCE_COSINE = -0.08  # smallest cosine that two unrelated moves have by chance


@dataclass(frozen=True, eq=False)
class TensorSeries:
    """T tensors at S steps, in the order of steps; `distances(i, j)` returns their distances between two steps, [T].

    `sketched_distances(i, j)` returns approximate distances, whose errors are similar for nearby steps. Exact distances
    are only compared with exact ones, sketched ones with sketched ones.
    """

    steps: tuple[int, ...]
    names: tuple[str, ...]
    sizes: np.ndarray  # [T] numbers in a tensor
    resolution: np.ndarray  # [T] relative spacing of numbers in the tensor's dtype
    norms: np.ndarray  # [T, S] Euclidean norms
    distances: Callable[[int, int], np.ndarray]  # exact to the two steps before and to the first, else sketched
    sketched_distances: Callable[[int, int], np.ndarray]

    def cosines(self, i: int, j: int) -> np.ndarray:
        """Return the cosine between the tensors at two steps, [T]; 0 for a tensor of zeros."""
        norms_i, norms_j = self.norms[:, i], self.norms[:, j]
        product = (norms_i**2 + norms_j**2 - self.distances(i, j) ** 2) / 2
        return product / np.where(norms_i * norms_j > 0, norms_i * norms_j, np.inf)

    def distances_to_negated(self, i: int, j: int) -> np.ndarray:
        """Return the distances between the tensors at one step and the negated tensors at the other, [T]."""
        square = 2 * self.norms[:, i] ** 2 + 2 * self.norms[:, j] ** 2 - self.distances(i, j) ** 2
        return np.sqrt(np.maximum(square, 0))

    def large_tensors(self, indices: Sequence[int]) -> "TensorSeries":
        """Return the moving tensors above the median size, whose directions are the least noisy.

        Each is measured in units of its median move between neighbouring steps, so that no tensor dominates.
        """
        moves = [self.sketched_distances(i, j) for i, j in itertools.pairwise(indices)]
        unit = np.median(moves, axis=0)
        is_large = (self.sizes > np.median(self.sizes)) & (unit > 0)
        is_large = is_large if is_large.any() else unit > 0
        return self.select(is_large, unit)

    def select(self, mask: np.ndarray, unit: np.ndarray) -> "TensorSeries":
        """Return the tensors of the `mask` [T], with sketched distances, each in units of its `unit` [T]."""
        names = tuple(name for name, keep in zip(self.names, mask, strict=True) if keep)
        scaled_distance = lru_cache(maxsize=None)(lambda i, j: self.sketched_distances(i, j)[mask] / unit[mask])
        norms = self.norms[mask] / unit[mask, None]
        return TensorSeries(
            self.steps, names, self.sizes[mask], self.resolution[mask], norms, scaled_distance, scaled_distance
        )


def move_ratio(move: np.ndarray, previous_move: np.ndarray) -> float:
    """Return the ratio of a `move` to the `previous_move`, both [T]: the median over tensors that made both."""
    is_moving = (move > 0) & (previous_move > 0)
    return float(np.median(move[is_moving] / previous_move[is_moving])) if is_moving.any() else 0.0


def turn(ab: np.ndarray, bc: np.ndarray, ac: np.ndarray) -> np.ndarray:
    """Return how far paths from a through b to c turn back at b: dot product of the moves over the shorter's square.

    It is 0 for moves at right angles, as in a random walk, and -1/2 if a is equally far from b and c, so that their
    order is unknown; below -1/2, the order is wrong. It is also 0 for a move of 0, and for an angle that may be chance.
    """
    product, shorter = (ac**2 - ab**2 - bc**2) / 2, np.minimum(ab, bc)
    cosine = product / np.where(shorter > 0, shorter, 1.0) ** 2
    return np.where((shorter > 0) & (product < MIN_CHANCE_COSINE * ab * bc), cosine, np.maximum(cosine, 0.0))


def residual(ab: np.ndarray, bc: np.ndarray, ac: np.ndarray, fraction: float) -> np.ndarray:
    """Return the distance of b from the point at `fraction` of the way from a to c (Stewart's theorem)."""
    square = (1 - fraction) * ab**2 + fraction * bc**2 - fraction * (1 - fraction) * ac**2
    return np.sqrt(np.maximum(square, 0))
