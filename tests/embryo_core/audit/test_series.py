"""Made-up ways of weights through training: what is swapped is named, what is noise is not."""

import gc
import weakref
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from embryo_core.audit.equal import Twins, equal_steps, equal_tensors
from embryo_core.audit.odd_tensors import odd_tensors
from embryo_core.audit.order import Misplaced, foreign_steps, misplaced
from embryo_core.audit.series import Series, growth, residual, turn

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 100, 200, 300, 400)
SIZES = (900, 870, 850, 820, 800, *[20] * 5)
ALL = tuple(range(len(STEPS)))


def series(tensors: list[np.ndarray]) -> Series:
    """Return a series of tensors [S, n]."""

    def apart(i: int, j: int) -> np.ndarray:
        return np.array([np.linalg.norm(tensor[i] - tensor[j]) for tensor in tensors])

    names = tuple(f"tensor {k}" for k in range(len(tensors)))
    norms = np.array([np.linalg.norm(tensor, axis=1) for tensor in tensors])
    sizes = np.array([tensor.shape[1] for tensor in tensors])
    return Series(STEPS[: len(tensors[0])], names, sizes, np.full(len(tensors), 1e-7), norms, apart, apart)


def walk(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a random walk with a drift, its speed that of the log of steps."""
    moves = rng.normal(0.3, 1, (len(STEPS), size)) * np.diff(np.log1p([0, *STEPS]))[:, None] * 0.1
    return rng.normal(0, 1, size) + np.cumsum(moves, axis=0)


def drift(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a straight way, even in steps, with a little noise."""
    return rng.normal(0, 1, size) + np.outer(STEPS, rng.normal(0, 0.01, size)) + rng.normal(0, 1e-4, (len(STEPS), size))


def noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a point with noise around it: no order."""
    return rng.normal(0, 1, size) + rng.normal(0, 0.1, (len(STEPS), size))


def decay(rng: np.random.Generator, size: int, rate: float = 0.03) -> np.ndarray:
    """Return a way that weight decay pulls to 0 until noise alone is left, which it forgets as fast."""
    way = [rng.normal(0, 1, size)]
    for kept in np.exp(-rate * np.diff(STEPS)):
        way.append(kept * way[-1] + 0.05 * np.sqrt(1 - kept**2) * rng.normal(0, 1, size))
    return np.array(way)


Kind = Callable[[np.random.Generator, int], np.ndarray]


def made(kind: Kind, seed: int = 0) -> list[np.ndarray]:
    """Tensors of a made-up run."""
    rng = np.random.default_rng(seed)
    return [kind(rng, size) for size in SIZES]


@pytest.mark.parametrize("kind", [walk, drift, noise])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_where_nothing_is_wrong(kind, seed):
    """Neither an order nor a tensor."""
    found = series(made(kind, seed))
    assert misplaced(found, ALL) == Misplaced() and odd_tensors(found, ALL) == []


@pytest.mark.parametrize("kind", [walk, drift])
@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 11), (3, 4), (2, 9), (10, 11)])
def test_swapped_steps(kind, one, other):
    """Neighbours, steps far apart, and those at the ends."""
    order = list(ALL)
    order[one], order[other] = other, one
    assert misplaced(series([tensor[order] for tensor in made(kind)]), ALL) == Misplaced(((one, other),))


@pytest.mark.parametrize("step", [0, 5, 11])
@pytest.mark.parametrize("kind", [walk, drift])
def test_a_tensor_of_the_wrong_sign(kind, step):
    """At the ends too; the order is not touched by it."""
    tensors = made(kind)
    tensors[1][step] *= -1
    found = series(tensors)
    assert odd_tensors(found, ALL) == [(1, step)] and misplaced(found, ALL) == Misplaced()


@pytest.mark.parametrize("seed", range(5))
def test_a_tensor_that_swings_along_a_line_is_no_fault(seed):
    """As what only the sentence loss trains does: all its numbers move together, to and fro."""
    rng = np.random.default_rng(seed)
    tensors = made(walk)
    swing = np.outer(rng.uniform(0.1, 0.2, len(STEPS)) * (-1) ** np.arange(len(STEPS)), rng.normal(0, 1, SIZES[0]))
    tensors[0] = tensors[0][0] + swing + rng.normal(0, 1e-3, tensors[0].shape)
    assert odd_tensors(series(tensors), ALL) == []


def test_what_is_known_to_be_wrong_is_no_neighbour():
    """Nor is it reported again."""
    tensors = made(drift)
    tensors[1][5] *= -1
    assert odd_tensors(series(tensors), ALL, {(1, 5)}) == []


def test_a_turn_is_shown_apart_from_its_exchange():
    """Straight on, at right angles, back; and where nothing moved."""
    straight, right, back, still = (np.array([move]) for move in (2.0, np.sqrt(2), 0.0, 1.0))
    assert [float(turn(still, still, ac)[0]) for ac in (straight, right, back)] == pytest.approx([1, 0, -1])
    assert turn(np.zeros(1), still, still)[0] == 0


def test_distances_tell_what_the_numbers_do():
    """Cosines, how far a tensor is from another's negative, and from a point on the way between two."""
    tensors = made(walk)
    found = series(tensors)
    for i, j, k in ((0, 3, 7), (11, 5, 2)):
        ab, bc, ac = found.apart(i, j), found.apart(j, k), found.apart(i, k)
        for t, tensor in enumerate(tensors):
            a, b, c = tensor[[i, j, k]]
            assert found.cosines(i, j)[t] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
            assert found.flipped(i, j)[t] == pytest.approx(np.linalg.norm(a + b))
            for share in (0.0, 0.3, 1.0):
                aside = np.linalg.norm(b - a - share * (c - a))
                assert residual(ab, bc, ac, share)[t] == pytest.approx(aside, abs=1e-6)


def test_moves_grow_as_those_of_most_tensors_do():
    """Of those that made both moves."""
    assert growth(np.array([2.0, 0.0, 6.0, 5.0, 4.0]), np.array([1.0, 3.0, 2.0, 0.0, 1.0])) == 3.0
    assert growth(np.array([2.0, 0.0]), np.array([0.0, 3.0])) == 0.0


def test_large_tensors_are_measured_by_their_own_moves():
    """Those above the median size, each in units of its median move between neighbours; not one that does not move."""
    tensors = made(walk)[:9]  # of which the fifth is of the median size
    tensors[1][:] = tensors[1][0]
    found = series(tensors)
    among = (0, 2, 5, 6, 11)
    large = found.large(among)
    assert large.names == tuple(f"tensor {k}" for k in (0, 2, 3)) and large.sizes.tolist() == [900, 850, 820]
    for place, k in enumerate((0, 2, 3)):
        moves = [np.linalg.norm(tensors[k][i] - tensors[k][j]) for i, j in pairwise(among)]
        distance = np.linalg.norm(tensors[k][1] - tensors[k][9])
        assert large.sketched(1, 9)[place] == pytest.approx(distance / np.median(moves))
        assert large.norms[place, 4] == pytest.approx(np.linalg.norm(tensors[k][4]) / np.median(moves))


def test_nothing_of_a_series_stays_behind():
    """Its distances, 170 MB of a long run of many tensors, go with it."""
    tensors = made(drift)
    tensors[0][[3, 4]] = tensors[0][[4, 3]]
    found = series(tensors)
    kept = weakref.ref(found)
    misplaced(found, ALL)
    del found
    gc.collect()
    assert kept() is None


def test_equal_steps_in_a_row_may_be_explained():
    """As by a learning rate of 0; others may not."""
    contents = [("a",), ("a",), ("b",), ("a",)]
    assert equal_steps(contents, lambda i, j: False) == [(0, 1, 3)]
    assert equal_steps(contents, lambda i, j: (i, j) == (0, 1)) == [(0, 3)]


def twins(tensors: list[np.ndarray]) -> list[Twins]:
    """Tensors with the numbers of another step."""
    hashes = [tuple(tensor[step].tobytes().hex() for tensor in tensors) for step in ALL]
    return equal_tensors(series(tensors), hashes, ALL)


@pytest.mark.parametrize("kind", [walk, drift])
@pytest.mark.parametrize(("step", "like"), [(7, 3), (3, 7), (6, 4), (4, 6), (5, 4), (4, 5), (0, 6), (11, 4), (11, 10)])
def test_a_tensor_with_the_numbers_of_another_step(kind: Kind, step: int, like: int):
    """It is reported at the step where it does not belong, at the ends too; one of fewer than eight numbers is not."""
    tensors = made(kind)
    tensors[5], tensors[6] = tensors[5][:, :8], tensors[6][:, :7]
    assert twins(tensors) == []
    for tensor in (tensors[1], tensors[5], tensors[6]):
        tensor[step] = tensor[like]
    assert twins(tensors) == [Twins((1, 5), step, like)]


def test_a_tensor_that_stood_still_may_do_so_longer():
    """Where it did not move just before, or just after, its next step is equal by right."""
    tensors = made(drift)
    tensors[1][:5] = tensors[1][0]
    tensors[2][7:] = tensors[2][7]
    assert twins(tensors) == []


# === Descent ===


def large(kind: Kind, seed: int = 0) -> list[np.ndarray]:
    """Return tensors that are too large for chance to hide what they keep."""
    return made(lambda rng, size: kind(rng, 16 * size), seed)


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.1])
def test_what_decay_forgets_is_of_the_same_training(rate):
    """Though a step keeps nothing of the one before it, the intervals beside forget as fast."""
    assert foreign_steps(series(large(lambda rng, size: decay(rng, size, rate))), ALL) == []


@pytest.mark.parametrize("kind", [walk, drift, lambda rng, size: decay(rng, size, 0.001)])
@pytest.mark.parametrize("planted", [(0,), (0, 1), (0, 1, 2), (10, 11), (11,)])
def test_steps_of_another_training(kind, planted):
    """Another seed's first or last steps; the path shows one inside."""
    tensors = [
        np.array([other[i] if i in planted else one[i] for i in ALL])
        for one, other in zip(large(kind), large(kind, 1), strict=True)
    ]
    assert [group.steps for group in foreign_steps(series(tensors), ALL)] == [planted]
