"""Measure the tensors of a run's checkpoints one by one: hashes, norms, and distances between steps.

Distances to the first checkpoint and to the preceding two are exact. All other distances come from sketches: the
numbers of a tensor get random signs, the same at every step, and are folded into m sums. The distance of two sketches
estimates the distance of the tensors to about 1 / sqrt(2 m) (Charikar, Chen and Farach-Colton 2002), and is exact for a
tensor of at most m numbers.
"""

import hashlib
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.tensor_files import broken_error, free_pages, is_finite, read_tensors
from embryo_core.types import Checkpoint

MAX_NUMBERS = 2**26  # numbers in all sketches together
MIN_SUMS, MAX_SUMS = 256, 2**16  # sums of one sketch
CHUNK_SIZE = 2**17  # numbers of a tensor that are processed together, so that they fit into the processor's cache
MAX_EXACT = 2  # preceding checkpoints with exact distances

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class TensorStatistics:
    """Statistics of the T tensors of one checkpoint; `moved` has the exact distances [T] from some earlier steps."""

    step: int
    shapes: Shapes
    sha256: tuple[str, ...]
    infinite: tuple[str, ...]  # names of tensors with NaN or infinity
    norms: np.ndarray  # [T]
    resolution: np.ndarray  # [T] machine epsilon of the stored type
    sketches: np.ndarray  # [T, m] float32
    moved: Mapping[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Tensors:
    """The floating-point tensors of a checkpoint in the order of their names, mapped from its files."""

    step: int
    by_name: dict[str, Tensor]
    mapped: list[mmap.mmap]

    @property
    def shapes(self) -> Shapes:
        """Return the name and shape of each tensor."""
        return tuple((name, tuple(tensor.shape)) for name, tensor in self.by_name.items())


class TensorMeter:
    """A meter of checkpoints in the order of steps, which has only a few tensors in memory at a time."""

    def __init__(self, checkpoints: int) -> None:
        """Prepare for a number of checkpoints; fewer checkpoints get finer sketches."""
        self._checkpoints = checkpoints
        self._sums = 0  # sums per sketch; set at the first checkpoint
        self._kept: list[_Tensors] = []  # tensors of the first and the last two checkpoints

    def measure(self, checkpoint: Checkpoint) -> TensorStatistics:
        """Measure a checkpoint, including its generator. Raises BrokenCheckpoint, MissingWeights."""
        current = _read(checkpoint)
        names, shapes = [*current.by_name], current.shapes
        self._sums = self._sums or max(MIN_SUMS, min(MAX_SUMS, MAX_NUMBERS // max(self._checkpoints * len(names), 1)))
        comparable = [earlier for earlier in self._kept if earlier.shapes == shapes]
        distances = {earlier.step: np.zeros(len(names)) for earlier in comparable}
        hashes, infinite = [], []
        norms, sketches = np.zeros(len(names)), np.zeros((len(names), self._sums), np.float32)
        for i, (name, tensor) in enumerate(current.by_name.items()):
            hashes.append(_sha256(tensor))
            infinite += [] if is_finite(tensor) else [name]
            norms[i], sketches[i] = _distance(tensor), _sketch(tensor, self._sums)
            for earlier in comparable:
                distances[earlier.step][i] = _distance(tensor, earlier.by_name[name])
            for checkpoint_tensors in (current, *comparable):
                free_pages(checkpoint_tensors.mapped)
        self._kept = [*self._kept[:1], *self._kept[1:][-(MAX_EXACT - 1) :], current]
        resolution = np.array([torch.finfo(tensor.dtype).eps for tensor in current.by_name.values()])
        return TensorStatistics(
            checkpoint.step, shapes, tuple(hashes), tuple(infinite), norms, resolution, sketches, distances
        )


def _read(checkpoint: Checkpoint) -> _Tensors:
    """Map the tensors of floating-point numbers, in the order of their names."""
    runs.verify(checkpoint)
    mappings: list[mmap.mmap] = []
    tensors = read_tensors(checkpoint, mappings)
    if not any(tensor.is_floating_point() for tensor in tensors.values()):
        raise broken_error(checkpoint, f"{runs.weights_file(checkpoint).name} holds no tensors by name")
    if generator := runs.generator(checkpoint):
        runs.verify(generator)
        tensors |= {f"generator.{name}": tensor for name, tensor in read_tensors(generator, mappings).items()}
    floats = {name: tensors[name] for name in sorted(tensors) if tensors[name].is_floating_point()}
    return _Tensors(checkpoint.step, floats, mappings)


def _distance(tensor: Tensor, reference: Tensor | None = None) -> float:
    """Return the Euclidean distance of two tensors, or the norm of one, computed in pieces and summed in float64."""
    pieces = [operand.reshape(-1).split(CHUNK_SIZE) for operand in (tensor, reference) if operand is not None]
    total = 0.0
    for piece, *reference_pieces in zip(*pieces):
        difference = _widen(piece) - _widen(reference_pieces[0]) if reference_pieces else _widen(piece)
        total += torch.dot(difference := difference.double(), difference).item()
    return math.sqrt(total)


def _widen(piece: Tensor) -> Tensor:
    """Return a piece in float32, or unchanged if it is float64."""
    return piece if piece.dtype == torch.float64 else piece.float()


def _sha256(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's bytes."""
    return hashlib.sha256(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()


def _sketch(tensor: Tensor, sums: int) -> np.ndarray:
    """Return m sums of the numbers with random signs; number i is added to sum i mod m."""
    flat, total = tensor.reshape(-1), np.zeros(sums)
    size = sums * max(CHUNK_SIZE // sums, 1)
    for piece, signs in zip(flat.split(size), _signs(len(flat)).split(size), strict=True):
        terms = torch.nn.functional.pad(_widen(piece) * signs, (0, -len(piece) % sums))
        total += terms.reshape(-1, sums).sum(0).numpy()
    return total


@lru_cache(maxsize=32)
def _signs(count: int) -> Tensor:
    """Return random signs [count], always the same for a count."""
    return 2 * torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(count), dtype=torch.int8) - 1
