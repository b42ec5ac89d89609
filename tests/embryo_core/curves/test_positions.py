"""Tests of attention weights on fixed positions: each is the mean that its formula states."""

import numpy as np
import pytest

from embryo_core.curves.scores import POSITIONS, position_weights


@pytest.mark.parametrize("length", [2, 3, 7])
def test_each_position_is_the_mean_of_its_entries(length: int):
    """A batch may have any shape; in maps of two positions each mean has one or two entries."""
    maps = np.random.default_rng(length).random((3, 2, length, length)).astype(np.float32) ** 4
    actual = position_weights(maps)
    assert actual.shape == (3, 2, len(POSITIONS)) and actual.dtype == np.float32
    for where in np.ndindex(3, 2):
        a = maps[where].astype(float)
        expected = {
            "same": np.mean([a[i, i] for i in range(length)]),
            "previous": np.mean([a[i, i - 1] for i in range(1, length)]),
            "next": np.mean([a[i, i + 1] for i in range(length - 1)]),
            "first": np.mean([a[i, 0] for i in range(1, length)]),
        }
        assert dict(zip(POSITIONS, actual[where].tolist(), strict=True)) == pytest.approx(expected, rel=1e-6)
