"""Weights that transformers saved in several shards: an index next to config.json names the shard of every tensor.

A run reads one file for each checkpoint, so shards are joined when they are copied.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.checkpoint_files import WEIGHTS, check_weights
from embryo_core.runs.schema import ShardIndex
from embryo_core.runs.trust import refusal

INDEXES = tuple(f"{name}.index.json" for name in WEIGHTS)


def shard_names(index: Path) -> list[str]:
    """Return the shards of an index, a path without links. Raises BrokenCheckpoint."""
    return sorted({*_shard_of(index).values()})


def join(index: Path, shards: Iterable[Path], sizes: runs.Architecture, file: Path) -> None:
    """Write the tensors of an index as one safetensors file; `shards` in the order of `shard_names`.

    Paths have no links. Raises BrokenCheckpoint if a shard cannot be read or lacks a tensor.
    """
    from safetensors.torch import save_file  # torch takes a second

    shard_of = _shard_of(index)
    tensors: dict[str, Any] = {}
    for name, path in zip(shard_names(index), shards, strict=True):
        check_weights(path, path.parent, sizes)
        tensors |= _read_shard(path, [tensor for tensor, shard in shard_of.items() if shard == name])
    save_file(tensors, file)


def _shard_of(index: Path) -> Mapping[str, str]:
    """Return the shard of each tensor."""
    return runs.read_json(index, index.parent, ShardIndex, BrokenCheckpoint).weight_map


def _read_shard(path: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return these tensors of a shard, copied, because tensors of a file may share memory."""
    from embryo_core.engine.tensor_files import read_file

    tensors = read_file(path, path.parent)
    if lacking := [name for name in names if name not in tensors]:
        raise refusal(path, f"lacks {runs.shown(lacking[0])}, which its index promises", BrokenCheckpoint)
    return {name: tensors[name].clone().contiguous() for name in names}
