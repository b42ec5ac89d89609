"""Tests of the audit on synthetic series: swapped steps and odd tensors are named, and noise is not."""

import gc
import weakref
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from embryo_core.audit.equal import Twins, find_equal_steps, find_equal_tensors
from embryo_core.audit.odd_tensors import find_odd_tensors
from embryo_core.audit.order import MisplacedSteps, find_foreign_steps, find_misplaced_steps
from embryo_core.audit.series import TensorSeries, move_ratio, residual, turn

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 100, 200, 300, 400)
SIZES = (900, 870, 850, 820, 800, *[20] * 5)
ALL = tuple(range(len(STEPS)))


def series(tensors: list[np.ndarray]) -> TensorSeries:
    """Return a series of tensors [S, n]."""

    def apart(i: int, j: int) -> np.ndarray:
        return np.array([np.linalg.norm(tensor[i] - tensor[j]) for tensor in tensors])

    names = tuple(f"tensor {k}" for k in range(len(tensors)))
    norms = np.array([np.linalg.norm(tensor, axis=1) for tensor in tensors])
    sizes = np.array([tensor.shape[1] for tensor in tensors])
    return TensorSeries(STEPS[: len(tensors[0])], names, sizes, np.full(len(tensors), 1e-7), norms, apart, apart)


def walk(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a random walk with drift whose speed is that of the logarithm of steps."""
    moves = rng.normal(0.3, 1, (len(STEPS), size)) * np.diff(np.log1p([0, *STEPS]))[:, None] * 0.1
    return rng.normal(0, 1, size) + np.cumsum(moves, axis=0)


def drift(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a straight path, linear in steps, with a little noise."""
    return rng.normal(0, 1, size) + np.outer(STEPS, rng.normal(0, 0.01, size)) + rng.normal(0, 1e-4, (len(STEPS), size))


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a point with noise around it, which has no order."""
    return rng.normal(0, 1, size) + rng.normal(0, 0.1, (len(STEPS), size))


def decay(rng: np.random.Generator, size: int, rate: float = 0.03) -> np.ndarray:
    """Return a path that weight decay pulls to 0 until only noise is left, which it forgets at the same rate."""
    way = [rng.normal(0, 1, size)]
    for kept in np.exp(-rate * np.diff(STEPS)):
        way.append(kept * way[-1] + 0.05 * np.sqrt(1 - kept**2) * rng.normal(0, 1, size))
    return np.array(way)


Kind = Callable[[np.random.Generator, int], np.ndarray]


def synthetic_run(kind: Kind, seed: int = 0) -> list[np.ndarray]:
    """Return the tensors of a synthetic run."""
    rng = np.random.default_rng(seed)
    return [kind(rng, size) for size in SIZES]


@pytest.mark.parametrize("kind", [walk, drift, noise])
@pytest.mark.parametrize("seed", range(5))
def test_sound_series_has_no_fault(kind, seed):
    """Neither the order of steps nor a tensor is reported."""
    audited = series(synthetic_run(kind, seed))
    assert find_misplaced_steps(audited, ALL) == MisplacedSteps() and find_odd_tensors(audited, ALL) == []


@pytest.mark.parametrize("kind", [walk, drift])
@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 11), (3, 4), (2, 9), (10, 11)])
def test_swapped_steps_are_named(kind, one, other):
    """The steps are neighbours, far apart, or at the ends."""
    order = list(ALL)
    order[one], order[other] = other, one
    assert find_misplaced_steps(series([tensor[order] for tensor in synthetic_run(kind)]), ALL) == MisplacedSteps(
        ((one, other),)
    )


@pytest.mark.parametrize("step", [0, 5, 11])
@pytest.mark.parametrize("kind", [walk, drift])
def test_tensor_of_the_wrong_sign_is_named(kind, step):
    """A negated tensor is found at the ends too, and the order of steps is not affected."""
    tensors = synthetic_run(kind)
    tensors[1][step] *= -1
    audited = series(tensors)
    assert find_odd_tensors(audited, ALL) == [(1, step)] and find_misplaced_steps(audited, ALL) == MisplacedSteps()


@pytest.mark.parametrize("seed", range(5))
def test_oscillating_tensor_is_no_fault(seed):
    """Parameters that only the sentence loss trains behave so: all their numbers move together, back and forth."""
    rng = np.random.default_rng(seed)
    tensors = synthetic_run(walk)
    swing = np.outer(rng.uniform(0.1, 0.2, len(STEPS)) * (-1) ** np.arange(len(STEPS)), rng.normal(0, 1, SIZES[0]))
    tensors[0] = tensors[0][0] + swing + rng.normal(0, 1e-3, tensors[0].shape)
    assert find_odd_tensors(series(tensors), ALL) == []


def test_known_faults_are_not_compared():
    """A known fault neither serves as a neighbour nor is reported again."""
    tensors = synthetic_run(drift)
    tensors[1][5] *= -1
    assert find_odd_tensors(series(tensors), ALL, {(1, 5)}) == []


def test_turn_is_cosine_of_two_moves():
    """A turn is 1 straight on, 0 at right angles, -1 back, and 0 if nothing moved."""
    straight, right, back, still = (np.array([move]) for move in (2.0, np.sqrt(2), 0.0, 1.0))
    assert [float(turn(still, still, ac)[0]) for ac in (straight, right, back)] == pytest.approx([1, 0, -1])
    assert turn(np.zeros(1), still, still)[0] == 0


def test_distances_agree_with_the_vectors():
    """Cosines, distances to a tensor's negative, and distances to a point between two tensors are compared."""
    tensors = synthetic_run(walk)
    audited = series(tensors)
    for i, j, k in ((0, 3, 7), (11, 5, 2)):
        ab, bc, ac = audited.distances(i, j), audited.distances(j, k), audited.distances(i, k)
        for t, tensor in enumerate(tensors):
            a, b, c = tensor[[i, j, k]]
            assert audited.cosines(i, j)[t] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
            assert audited.distances_to_negated(i, j)[t] == pytest.approx(np.linalg.norm(a + b))
            for share in (0.0, 0.3, 1.0):
                aside = np.linalg.norm(b - a - share * (c - a))
                assert residual(ab, bc, ac, share)[t] == pytest.approx(aside, abs=1e-6)


def test_growth_is_median_over_moving_tensors():
    """A tensor that did not move in one of the two intervals is ignored."""
    assert move_ratio(np.array([2.0, 0.0, 6.0, 5.0, 4.0]), np.array([1.0, 3.0, 2.0, 0.0, 1.0])) == 3.0
    assert move_ratio(np.array([2.0, 0.0]), np.array([0.0, 3.0])) == 0.0


def test_large_tensors_are_measured_by_their_own_moves():
    """Tensors above the median size are measured in units of their median move; one that never moves is left out."""
    tensors = synthetic_run(walk)[:9]  # the fifth has the median size
    tensors[1][:] = tensors[1][0]
    audited = series(tensors)
    among = (0, 2, 5, 6, 11)
    large = audited.large_tensors(among)
    assert large.names == tuple(f"tensor {k}" for k in (0, 2, 3)) and large.sizes.tolist() == [900, 850, 820]
    for index, k in enumerate((0, 2, 3)):
        moves = [np.linalg.norm(tensors[k][i] - tensors[k][j]) for i, j in pairwise(among)]
        distance = np.linalg.norm(tensors[k][1] - tensors[k][9])
        assert large.sketched_distances(1, 9)[index] == pytest.approx(distance / np.median(moves))
        assert large.norms[index, 4] == pytest.approx(np.linalg.norm(tensors[k][4]) / np.median(moves))


def test_series_is_freed_after_use():
    """The distances of a long run with many tensors take 170 MB."""
    tensors = synthetic_run(drift)
    tensors[0][[3, 4]] = tensors[0][[4, 3]]
    audited = series(tensors)
    kept = weakref.ref(audited)
    find_misplaced_steps(audited, ALL)
    del audited
    gc.collect()
    assert kept() is None


def test_zero_rates_explain_equal_neighbours():
    """A learning rate of 0 explains two or more equal neighbours, but not an equal step elsewhere."""
    contents = [("a",), ("a",), ("b",), ("a",)]
    assert find_equal_steps(contents, lambda i, j: False) == [(0, 1, 3)]
    assert find_equal_steps(contents, lambda i, j: (i, j) == (0, 1)) == [(0, 3)]
    contents = [("b",), ("a",), ("a",), ("a",), ("b",)]
    assert find_equal_steps(contents, lambda i, j: True) == [(0, 4)]


def twins(tensors: list[np.ndarray]) -> list[Twins]:
    """Return the tensors that have the numbers of another step."""
    hashes = [tuple(tensor[step].tobytes().hex() for tensor in tensors) for step in ALL]
    return find_equal_tensors(series(tensors), hashes, ALL)


@pytest.mark.parametrize("kind", [walk, drift])
@pytest.mark.parametrize(("step", "like"), [(7, 3), (3, 7), (6, 4), (4, 6), (5, 4), (4, 5), (0, 6), (11, 4), (11, 10)])
def test_tensor_with_numbers_of_another_step_is_named(kind: Kind, step: int, like: int):
    """The fault is at the step where the tensor is wrong, also at the ends; tensors below eight numbers are ignored."""
    tensors = synthetic_run(kind)
    tensors[5], tensors[6] = tensors[5][:, :8], tensors[6][:, :7]
    assert twins(tensors) == []
    for tensor in (tensors[1], tensors[5], tensors[6]):
        tensor[step] = tensor[like]
    assert twins(tensors) == [Twins((1, 5), step, like)]


def test_tensor_that_stands_still_is_no_fault():
    """If it did not move just before or just after, equal numbers at the next step are expected."""
    tensors = synthetic_run(drift)
    tensors[1][:5] = tensors[1][0]
    tensors[2][7:] = tensors[2][7]
    assert twins(tensors) == []


# === Descent ===


def large(kind: Kind, seed: int = 0) -> list[np.ndarray]:
    """Return tensors large enough that chance cannot hide what they preserve."""
    return synthetic_run(lambda rng, size: kind(rng, 16 * size), seed)


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.1])
def test_decaying_weights_belong_to_the_same_training(rate):
    """A step may preserve nothing of the previous one, if the neighbouring intervals forget as fast."""
    assert find_foreign_steps(series(large(lambda rng, size: decay(rng, size, rate))), ALL) == []


@pytest.mark.parametrize("kind", [walk, drift, lambda rng, size: decay(rng, size, 0.001)])
@pytest.mark.parametrize("planted", [(0,), (0, 1), (0, 1, 2), (10, 11), (11,)])
def test_steps_of_another_training_are_named(kind, planted):
    """The first or last steps come from another seed; a foreign step inside the series shows in the path."""
    tensors = [
        np.array([other[i] if i in planted else one[i] for i in ALL])
        for one, other in zip(large(kind), large(kind, 1), strict=True)
    ]
    assert [group.steps for group in find_foreign_steps(series(tensors), ALL)] == [planted]
