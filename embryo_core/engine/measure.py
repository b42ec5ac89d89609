"""Measures the tensors of every checkpoint for an audit: hashes, numbers that are not finite, and distances.

Distances between all pairs of steps are computed from sketches: the numbers of a tensor get random signs, the same at
every step, and are folded into SKETCH sums. The distance of two sketches is that of the tensors to about
1 / sqrt(2 SKETCH), 3 % (Charikar, Chen and Farach-Colton 2002), and exact for a tensor of no more numbers.
"""

import hashlib
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from embryo_core import runs
from embryo_core.engine.stored import is_finite, read_tensors
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.runs import Fault, Measured
from embryo_core.runs.audit import Distance
from embryo_core.types import Run

SKETCH = 512


def audit(run: Run, progress: bool = False) -> list[Fault]:
    """Every fault of a run's checkpoints; kept beside run.json for the pages."""
    measured, sketches, unreadable = [], {}, [Fault(0, "unreadable", reason) for _, reason in runs.broken(run)]
    with_weights = [checkpoint for checkpoint in runs.checkpoints(run) if checkpoint.has_weights]
    for checkpoint in tqdm(with_weights, desc=run.name, unit="checkpoint", disable=not progress):
        try:
            runs.verify(checkpoint)
            tensors = read_tensors(checkpoint)
        except (BrokenCheckpoint, MissingWeights) as reason:
            unreadable.append(Fault(checkpoint.step, "unreadable", str(reason)))
            continue
        infinite = tuple(name for name, tensor in tensors.items() if not is_finite(tensor))
        measured.append(Measured(checkpoint.step, {name: _sha256(tensor) for name, tensor in tensors.items()}, infinite))
        if not infinite:
            sketches[checkpoint.step] = {name: _sketch(tensor) for name, tensor in tensors.items()}
    names = sorted({name for sketch in sketches.values() for name in sketch})
    shared = [name for name in names if all(name in sketch for sketch in sketches.values())]
    of_tensor = {name: _distance({step: sketch[name] for step, sketch in sketches.items()}) for name in shared}
    whole = _distance({step: np.concatenate([sketch[name] for name in shared]) for step, sketch in sketches.items()})
    faults = runs.judge(run, measured, whole, of_tensor, unreadable)
    runs.write_audit(run, faults)
    return faults


def _distance(sketches: dict[int, np.ndarray]) -> Distance:
    return lambda one, other: float(np.linalg.norm(sketches[one] - sketches[other]))


def _sha256(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy() if tensor.ndim else bytes(str(tensor), "ascii")).hexdigest()


def _sketch(tensor: Tensor) -> np.ndarray:
    """Sums [SKETCH] of the numbers with random signs, number i in sum i modulo SKETCH."""
    flat = tensor.reshape(-1).to(torch.float32)
    signed = torch.nn.functional.pad(flat * _signs(len(flat)), (0, -len(flat) % SKETCH))
    return signed.reshape(-1, SKETCH).sum(0, dtype=torch.float64).numpy()


@lru_cache(maxsize=32)
def _signs(count: int) -> Tensor:
    return 2 * torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(count), dtype=torch.int8) - 1
