"""Measure the tensors of a run's checkpoints in turn: hashes, norms, and how far they move between steps.

Distances to the first checkpoint and to the two before are exact. Distances between any other two come from sketches:
the numbers of a tensor get random signs, the same at every step, and are folded into m sums. The distance of two
sketches is that of the tensors to about 1 / sqrt(2 m) (Charikar, Chen and Farach-Colton 2002), and exact for a tensor
of at most m numbers.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.tensor_files import broken, is_finite, read_tensors
from embryo_core.types import Checkpoint

MAX_NUMBERS = 2**26  # of all sketches together
MIN_SUMS, MAX_SUMS = 256, 2**16  # of one sketch
EXACT = 2  # preceding checkpoints to which distances are exact

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class TensorStatistics:
    """Statistics of the T tensors of one checkpoint; `moved` has exact distances [T] from earlier steps."""

    step: int
    shapes: Shapes
    sha256: tuple[str, ...]
    infinite: tuple[str, ...]  # names of tensors with NaN or infinity
    norms: np.ndarray  # [T]
    resolution: np.ndarray  # [T] machine epsilon of the stored type
    sketches: np.ndarray  # [T, m] float32
    moved: Mapping[int, np.ndarray]


class TensorMeter:
    """Measures checkpoints in the order of steps; keeps the tensors of the first and the last two meanwhile."""

    def __init__(self, checkpoints: int) -> None:
        """Prepare for a number of checkpoints; fewer checkpoints get finer sketches."""
        self._checkpoints = checkpoints
        self._sums = 0  # of a sketch; set at the first checkpoint
        self._kept: list[tuple[int, dict[str, Tensor]]] = []

    def measure(self, checkpoint: Checkpoint) -> TensorStatistics:
        """Measure a checkpoint, its generator included. Raises BrokenCheckpoint, MissingWeights."""
        tensors = _read(checkpoint)
        shapes = _shapes(tensors)
        moved = {step: _distances(tensors, kept) for step, kept in self._kept if _shapes(kept) == shapes}
        values = tensors.values()
        sketches = max(self._checkpoints * len(tensors), 1)
        self._sums = self._sums or max(MIN_SUMS, min(MAX_SUMS, MAX_NUMBERS // sketches))
        self._kept = [*self._kept[:1], *self._kept[1:][-(EXACT - 1) :], (checkpoint.step, tensors)]
        return TensorStatistics(
            checkpoint.step,
            shapes,
            tuple(map(_sha256, values)),
            tuple(name for name, tensor in tensors.items() if not is_finite(tensor)),
            np.array([tensor.double().norm().item() for tensor in values]),
            np.array([torch.finfo(tensor.dtype).eps for tensor in values]),
            np.array([_sketch(tensor, self._sums) for tensor in values], np.float32),
            moved,
        )


def _read(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read the tensors of floating-point numbers, in the order of their names."""
    runs.verify(checkpoint)
    tensors = read_tensors(checkpoint)
    if not any(tensor.is_floating_point() for tensor in tensors.values()):
        raise broken(checkpoint, f"{runs.shown(runs.weights_file(checkpoint)[0].name)} holds no tensors by name")
    if generator := runs.generator(checkpoint):
        runs.verify(generator)
        tensors |= {f"generator.{name}": tensor for name, tensor in read_tensors(generator).items()}
    return {name: tensors[name] for name in sorted(tensors) if tensors[name].is_floating_point()}


def _shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    """Return the name and shape of each tensor."""
    return tuple((name, tuple(tensor.shape)) for name, tensor in tensors.items())


def _distances(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> np.ndarray:
    """Return the Euclidean distance [T] between the tensors of the same name."""
    return np.array([(one[name].double() - other[name].double()).norm().item() for name in one])


def _sha256(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's bytes."""
    return hashlib.sha256(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()


def _sketch(tensor: Tensor, sums: int) -> np.ndarray:
    """Add the numbers with random signs into sums [m], number i into sum i modulo m."""
    flat = tensor.reshape(-1).double()
    signed = torch.nn.functional.pad(flat * _signs(len(flat)), (0, -len(flat) % sums))
    return signed.reshape(-1, sums).sum(0).numpy()


@lru_cache(maxsize=32)
def _signs(count: int) -> Tensor:
    """Return random signs, the same for the same count."""
    return 2 * torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(count), dtype=torch.int8) - 1
