"""Weights that transformers saved in several parts: an index beside config.json names the part of every tensor.

A run reads one file for a checkpoint, so the parts are joined into one when they are copied.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.reading import refusal
from embryo_core.runs.schema import PartsIndex
from embryo_core.runs.weight_files import WEIGHTS, check_weights

INDEXES = tuple(f"{name}.index.json" for name in WEIGHTS)


def part_names(index: Path) -> list[str]:
    """The files beside an index that hold the tensors; the path is free of links. Raises BrokenCheckpoint."""
    return sorted({*_part_of(index).values()})


def join(index: Path, parts: Iterable[Path], sizes: runs.Architecture, file: Path) -> None:
    """Write the tensors that an index names as one file of safetensors; `parts` as `part_names` has them.

    Paths are free of links. Raises BrokenCheckpoint where a part cannot be read, or lacks a tensor.
    """
    from safetensors.torch import save_file  # torch takes a second

    part_of = _part_of(index)
    tensors = {}
    for name, path in zip(part_names(index), parts, strict=True):
        check_weights(path, path.parent, sizes)
        tensors |= _of_part(path, [tensor for tensor, part in part_of.items() if part == name])
    save_file(tensors, file)


def _part_of(index: Path) -> Mapping[str, str]:
    """The file of each tensor."""
    return runs.read_json(index, index.parent, PartsIndex, BrokenCheckpoint).weight_map


def _of_part(path: Path, names: Iterable[str]) -> dict:
    """These tensors of a part, each with memory of its own: in a file they may share it."""
    from embryo_core.engine.tensor_files import read_file

    tensors = read_file(path, path.parent)
    if lacking := [name for name in names if name not in tensors]:
        raise refusal(path, f"lacks {runs.shown(lacking[0])}, which the index says it holds", BrokenCheckpoint)
    return {name: tensors[name].clone().contiguous() for name in names}
