"""The weight that averaged attention maps give to fixed positions (Figure 4)."""

import numpy as np
from numpy.typing import NDArray

POSITIONS = ("same", "previous", "next", "first")


def position_weights(maps: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the mean weight on each of POSITIONS [..., 4] of maps A [..., L, L], L at least 2.

    Each is a mean over the rows i that have the position: A[i, i], A[i, i-1], A[i, i+1] and A[i, 0]. The first position
    leaves out row 0, where it equals the same position.
    """
    diagonals = [np.diagonal(maps, offset, -2, -1) for offset in (0, -1, 1)]
    means = [entries.mean(axis=-1, dtype=np.float64) for entries in (*diagonals, maps[..., 1:, 0])]
    return np.stack(means, axis=-1).astype(np.float32)
