"""Tests of odd tensors: one with the wrong sign is named, however small, and one that turns in training is not."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from embryo_core import runs
from embryo_core.audit.odd_tensors import find_odd_tensors
from embryo_core.audit.series import TensorSeries
from tests.demo import FOLDER

FEWEST = 100  # with this size, a cosine of 1/2 is not due to chance
TOWARDS_ZERO = torch.finfo(torch.float16).eps


def series_of(vectors: list[list[np.ndarray]], steps: tuple[int, ...], names: tuple[str, ...] = ()) -> TensorSeries:
    """Return a series of tensors [S][T] with exact distances."""
    distances = lru_cache(maxsize=None)(
        lambda i, j: np.array([np.linalg.norm(one - other) for one, other in zip(vectors[i], vectors[j], strict=True)])
    )
    sizes = np.array([vector.size for vector in vectors[0]], dtype=float)
    norms = np.array([[np.linalg.norm(vector) for vector in step] for step in vectors]).T
    names = names or tuple(f"tensor {i}" for i in range(len(sizes)))
    return TensorSeries(steps, names, sizes, np.full(len(sizes), TOWARDS_ZERO), norms, distances, distances)


def negate_tensor(series: TensorSeries, tensor: int, step: int) -> TensorSeries:
    """Return the series with one tensor negated at one step, computed from norms and distances."""

    def distances(i: int, j: int) -> np.ndarray:
        moves = series.distances(i, j)
        if i == j or step not in (i, j):
            return moves
        return np.where(np.arange(len(moves)) == tensor, series.distances_to_negated(i, j), moves)

    return replace(series, distances=distances, sketched_distances=distances)


SERIES = [path for path in sorted((FOLDER / "runs").iterdir()) if len([*path.glob("checkpoints/*/*.safetensors")]) > 20]


@pytest.fixture(scope="module", params=SERIES, ids=lambda path: path.name)
def demo(request: pytest.FixtureRequest) -> TensorSeries:
    """Return the tensors of a demo run that has the weights of many steps."""
    checkpoints = runs.loadable_checkpoints(runs.read_run(request.param))
    tensors = [load_file(checkpoint.path / "model.safetensors") for checkpoint in checkpoints]
    names = tuple(sorted(tensors[0]))
    vectors = [[step[name].double().flatten().numpy() for name in names] for step in tensors]
    return series_of(vectors, tuple(checkpoint.step for checkpoint in checkpoints), names)


@pytest.mark.slow
def test_every_negated_steady_tensor_of_the_demo_is_named(demo: TensorSeries):
    """Tensors are negated one at a time, at every third inner step, and no other one is named."""
    every = tuple(range(len(demo.steps)))
    assert find_odd_tensors(demo, every) == []
    tried = 0
    for step in every[2:-2:3]:
        cosines = [demo.cosines(*pair) for pair in ((step - 1, step), (step, step + 1), (step - 1, step + 1))]
        around = [demo.cosines(i, i + 1) for i in every[max(0, step - 3) : step + 3] if i + 1 in every]
        steady = (np.min(cosines, axis=0) > 0.5) & (np.min(around, axis=0) > 0) & (demo.sizes >= FEWEST)
        for tensor in np.flatnonzero(steady):
            assert find_odd_tensors(negate_tensor(demo, tensor, step), every) == [(tensor, step)], (
                demo.names[tensor],
                step,
            )
            tried += 1
    assert tried > 60


@pytest.fixture
def walk() -> list[list[np.ndarray]]:
    """Return three tensors of 200 numbers at nine steps: two random walks with drift, and one that starts at zero."""
    rng = np.random.default_rng(0)
    ways = [np.cumsum(rng.normal(size=(9, 200)) + 2 * rng.normal(size=200), axis=0) for _ in range(3)]
    ways[2] -= ways[2][0]
    return [[way[step] for way in ways] for step in range(9)]


@pytest.mark.parametrize(("tensor", "step"), [(2, 1), (2, 4), (0, 8)])
def test_negated_tensor_is_named_at_any_step(walk: list[list[np.ndarray]], tensor: int, step: int):
    """The steps are the first after zeros, an inner one, and the last."""
    steps = tuple(2**i for i in range(9))
    assert find_odd_tensors(series_of(walk, steps), range(9)) == []
    walk[step][tensor] = -walk[step][tensor]
    assert find_odd_tensors(series_of(walk, steps), range(9)) == [(tensor, step)]


def test_oscillating_tensor_is_no_fault(walk: list[list[np.ndarray]]):
    """The parameters of the sentence loss oscillate together in this way."""
    line = np.random.default_rng(1).normal(size=200)
    for step, along in enumerate((0.5, 0.3, -0.4, 0.3, -0.5, 0.4, -0.3, 0.5, 0.4)):
        walk[step][0] = along * line
    assert find_odd_tensors(series_of(walk, tuple(2**i for i in range(9))), range(9)) == []
