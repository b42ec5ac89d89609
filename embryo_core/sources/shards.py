"""Weights that transformers saved in several shards, with an index that maps every tensor to its shard.

A run that points to its weights points to all shards; a run that copies them joins them in one file.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.schema import ShardIndex
from embryo_core.runs.trust import refusal

INDEXES = tuple(f"{name}.index.json" for name in WEIGHTS)


def shard_names(index: Path) -> list[str]:
    """Return the sorted names of an index's shards; the index's path must be resolved. Raises BrokenCheckpoint."""
    return sorted({*_shard_of(index).values()})


def check_shards(index: Path, shards: Sequence[Path]) -> None:
    """Raise BrokenCheckpoint if a shard, in the order of `shard_names`, lacks a tensor of the index.

    Pickled shards are not checked here but when they are read.
    """
    for path, names in _tensors_of(index, shards):
        if not runs.is_pickled(path, path.parent):
            _refuse_lacking(path, names, runs.read_header(path, path.parent)[0])


def join_shards(index: Path, shards: Sequence[Path], file: Path) -> None:
    """Write all tensors of an index to one safetensors file; `shards` are in the order of `shard_names`.

    Raises BrokenCheckpoint if a shard cannot be read or lacks a tensor.
    """
    from safetensors.torch import save_file  # torch takes a second to import

    from embryo_core.engine.tensor_files import read_file

    tensors: dict[str, Any] = {}
    for path, names in _tensors_of(index, shards):
        shard_tensors = read_file(path, path.parent)
        _refuse_lacking(path, names, shard_tensors)
        # cloned, since safetensors refuses tensors that share memory
        tensors |= {name: shard_tensors[name].clone().contiguous() for name in names}
    save_file(tensors, file)


def _tensors_of(index: Path, shards: Sequence[Path]) -> list[tuple[Path, list[str]]]:
    """Return each shard's path with the names of its tensors, according to the index."""
    shard_of = _shard_of(index)
    paths = dict(zip(sorted({*shard_of.values()}), shards, strict=True))
    return [(path, [tensor for tensor, shard in shard_of.items() if shard == name]) for name, path in paths.items()]


def _shard_of(index: Path) -> Mapping[str, str]:
    """Return the name of each tensor's shard. Raises BrokenCheckpoint."""
    return runs.read_json(index, index.parent, ShardIndex, BrokenCheckpoint).weight_map


def _refuse_lacking(path: Path, names: Iterable[str], present: Container[str]) -> None:
    if lacking := [name for name in names if name not in present]:
        raise refusal(path, f"lacks {lacking[0]}, which its index lists", BrokenCheckpoint)
